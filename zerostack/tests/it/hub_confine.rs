//! What commands may write, and what tool chains need: in the live tree and in a private view.

use serde_json::json;
use zerostack::Capture;

use crate::hub_support::{Workspace, has_private_view};

fn each_tier(test: impl Fn(Capture)) {
    test(Capture::Baseline);
    if has_private_view() {
        test(Capture::RequirePrivate);
    }
}

#[test]
fn a_write_outside_the_confinement_is_refused_and_the_ledger_names_the_tier() {
    let Some(outside) = std::env::home_dir().and_then(|home| tempfile::tempdir_in(home).ok()) else {
        eprintln!("SKIPPED: no writable home directory");
        return;
    };
    let file = outside.path().join("file");
    std::fs::write(&file, "kept\n").unwrap();
    each_tier(|capture| {
        let ws = Workspace::with(&[], |config| config.capture = capture);
        // Both shells' words for EACCES: the first line is of the write, the second of a new name.
        let line = format!(
            "echo x > {0}; echo x > {0}.new; cat {0}; echo inside > inside",
            file.display()
        );
        let response = ws.run(&format!("return z.run({})", json!(line)));
        assert_eq!(response.error, None);
        match response.ledger.confinement.files.as_deref() {
            Some("landlock") => {
                let value = response.value.unwrap().0;
                assert_eq!(
                    value["stderr"].as_str().unwrap().matches("Permission denied").count(),
                    2,
                    "{value}"
                );
                assert_eq!(value["stdout"], "kept\n");
                assert!(!outside.path().join("file.new").exists());
            }
            tier => {
                assert_eq!(tier, Some("none"));
                eprintln!("SKIPPED: no Landlock in this kernel, and the ledger says so");
            }
        }
        assert_eq!(ws.file("inside"), "inside\n");
        // What the host adds to the list may be written to.
        let ws = Workspace::with(&[], |config| {
            config.capture = capture;
            config.writable_paths = vec![outside.path().to_owned()];
        });
        assert_eq!(ws.value(&format!("return (await z.run({})).stderr", json!(line))), "");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
        std::fs::write(&file, "kept\n").unwrap();
        std::fs::remove_file(outside.path().join("file.new")).unwrap();
    });
}

#[test]
fn devices_temporary_files_and_tool_chain_caches_may_be_written() {
    let Some(home) = std::env::home_dir().and_then(|home| tempfile::tempdir_in(home).ok()) else {
        eprintln!("SKIPPED: no writable home directory");
        return;
    };
    for cache in [".cache", ".cargo/registry", "go/pkg", ".npm"] {
        std::fs::create_dir_all(home.path().join(cache)).unwrap();
    }
    // The variables that the host may have for itself would come before the home directory.
    let environment: std::collections::BTreeMap<&str, std::path::PathBuf> = [
        ("HOME", ""),
        ("XDG_CACHE_HOME", ".cache"),
        ("CARGO_HOME", ".cargo"),
        ("GOCACHE", ".cache/go-build"),
        ("GOMODCACHE", "go/pkg"),
        ("npm_config_cache", ".npm"),
    ]
    .map(|(name, below)| (name, home.path().join(below)))
    .into();
    each_tier(|capture| {
        let ws = Workspace::with(&[], |config| config.capture = capture);
        // What `go build`, cargo and npm do to their caches, by the documented defaults beneath the home directory.
        let cell = format!(
            "const run = await z.run('set -e; echo x > /dev/null; mkdir -p ~/.cache/go-build/0a; echo a > ~/.cache/go-build/0a/x-d; mv ~/.cache/go-build/0a/x-d ~/.cache/go-build/0a/x-a; mkdir -p ~/go/pkg/mod/cache; echo m > ~/go/pkg/mod/cache/lock; echo c > ~/.cargo/registry/index; echo n > ~/.npm/_log; t=$(mktemp); rm $t; if (echo o > ~/other) 2>/dev/null; then echo open; fi', {{env: {}}});
             return [run.exitCode, run.stderr, run.stdout]",
            json!(environment)
        );
        let response = ws.run(&cell);
        assert_eq!(response.error, None);
        let confined = response.ledger.confinement.files.as_deref() == Some("landlock");
        let value = response.value.unwrap().0;
        assert_eq!(value, json!([0, "", if confined { "" } else { "open\n" }]));
        assert_eq!(home.path().join("other").exists(), !confined);
        assert!(home.path().join(".cache/go-build/0a/x-a").exists());
    });
}
