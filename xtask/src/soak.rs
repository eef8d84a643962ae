//! `cargo xtask soak`: the slow sweeps, which the ordinary tests only sample.

use anyhow::{Result, bail};

use crate::cargo::{cargo, run};

/// One sweep: tests that are ignored otherwise, at a larger scale.
struct Soak {
    name: &'static str,
    package: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

const SOAKS: &[Soak] = &[
    Soak {
        name: "frame",
        package: "zerostack",
        environment: &[],
    },
    Soak {
        name: "fs",
        package: "fszero",
        environment: &[("FSZERO_PROGRAMS", "100000"), ("FSZERO_SWEEP", "full")],
    },
    Soak {
        name: "process",
        package: "zero-supervisor",
        environment: &[("ZEROSTACK_SOAK", "50")],
    },
    Soak {
        name: "graph",
        package: "graphzero",
        environment: &[("GRAPHZERO_TRIALS", "10000")],
    },
    Soak {
        name: "tokens",
        package: "tokenzero",
        environment: &[("TOKENZERO_SOAK", "1")],
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
        let mut command = cargo(&["test", "--release", "--package", soak.package, "--lib", "--tests", "--"]);
        command
            .args(["--include-ignored", "--nocapture"])
            .envs(soak.environment.iter().copied());
        run(&mut command)?;
    }
    Ok(())
}
