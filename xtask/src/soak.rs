//! `cargo xtask soak`: the slow sweeps, which the ordinary tests only sample.

use anyhow::{Result, bail};

use crate::cargo::{cargo, run};

/// One sweep: ordinary tests at a larger scale, and those that are ignored otherwise.
struct Soak {
    name: &'static str,
    package: &'static str,
    /// Features beyond the default ones.
    features: &'static str,
    /// What scales the tests.
    environment: &'static [(&'static str, &'static str)],
    /// For the test harness: which tests, and how.
    arguments: &'static [&'static str],
}

const SOAKS: &[Soak] = &[
    Soak {
        name: "frame",
        package: "zerostack",
        features: "",
        environment: &[("ZEROSTACK_FRAMES", "10000")],
        arguments: &["frame_soak", "--include-ignored"],
    },
    Soak {
        name: "cell",
        package: "zerostack",
        features: "",
        environment: &[("ZEROSTACK_FUZZ_SECONDS", "600"), ("ZEROSTACK_PROGRAMS", "20000")],
        arguments: &[
            "hub_fuzz",
            "hub_plan",
            "frame_typescript",
            "a_byte_of_source",
            "--include-ignored",
        ],
    },
    Soak {
        name: "shell",
        package: "zerostack",
        features: "",
        environment: &[("ZEROSTACK_SHELL_PROGRAMS", "500")],
        arguments: &["hub_shell"],
    },
    Soak {
        name: "outbox",
        package: "zerostack",
        // Two hosts of 1,000 cells each, killed 20 times; every pair of steps to die at, on both stores.
        environment: &[
            ("ZEROSTACK_CELLS", "1000"),
            ("ZEROSTACK_KILLS", "20"),
            ("ZEROSTACK_SOAK", "1"),
        ],
        arguments: &["outbox", "--test-threads=2"],
        features: "postgres,object-store",
    },
    Soak {
        name: "fs",
        package: "fszero",
        features: "",
        environment: &[("FSZERO_PROGRAMS", "100000"), ("FSZERO_SWEEP", "full")],
        arguments: &[],
    },
    Soak {
        name: "process",
        package: "zero-supervisor",
        features: "",
        environment: &[("ZEROSTACK_SOAK", "50")],
        // One at a time: each test counts the children of its process.
        arguments: &["--test-threads=1"],
    },
    Soak {
        name: "graph",
        package: "graphzero",
        features: "all-languages",
        environment: &[("GRAPHZERO_CASES", "10000")],
        arguments: &[],
    },
    Soak {
        name: "tokens",
        package: "tokenzero",
        features: "",
        environment: &[("TOKENZERO_CASES", "3000")],
        arguments: &["--include-ignored"],
    },
];

/// Runs one sweep, or all of them.
pub fn soak(name: &str) -> Result<()> {
    let chosen: Vec<_> = SOAKS.iter().filter(|soak| name == "all" || soak.name == name).collect();
    if chosen.is_empty() {
        let names: Vec<_> = SOAKS.iter().map(|soak| soak.name).collect();
        bail!("`{name}` is not a soak; the soaks are all, {}", names.join(", "));
    }
    run(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "zero-supervisor",
        "--bins",
    ]))?;
    for soak in chosen {
        let mut command = cargo(&[
            "test",
            "--release",
            "--package",
            soak.package,
            "--features",
            soak.features,
            "--lib",
            "--tests",
            "--",
            "--nocapture",
        ]);
        command.args(soak.arguments).envs(soak.environment.iter().copied());
        run(&mut command)?;
    }
    Ok(())
}
