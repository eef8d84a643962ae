//! Bringing an older store to the format of this build.

use serde::Serialize;
use zero_contracts::{Error, ErrorKind};

use crate::config::{KernelConfig, Result};
use crate::kernel::resolve_root;
use crate::{location, sessions};

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// The version that was found.
    pub from: i64,
    /// The version that the store has now.
    pub to: i64,
}

/// Brings the store of a workspace to the format of this build, all or nothing: who is killed in the middle finds the older
/// store as it was. A store that is of this format already is left alone.
///
/// # Errors
/// `not_found` if there is no store; `busy` while a cell works in the workspace; `unsupported` for a newer store;
/// `corrupt`, `io`.
#[tracing::instrument(level = "debug", skip_all, fields(root = %config.root.display()))]
pub fn migrate(config: &KernelConfig) -> Result<Migrated> {
    migrate_by_steps(config, &mut |_| {})
}

fn migrate_by_steps(config: &KernelConfig, step: &mut dyn FnMut(&str)) -> Result<Migrated> {
    let root = resolve_root(config)?;
    let store = location::named(&config.store, &root)?
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "a transient store has no earlier format"))?;
    let (from, to) = sessions::migrate(&store, step)?;
    Ok(Migrated { from, to })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;
    use crate::{StoreLocation, ZeroKernel};
    use zero_contracts::{SessionName, UndoOptions};

    const STORE: &str = "ZEROSTACK_TEST_STORE";
    const STEP: &str = "ZEROSTACK_TEST_STEP";

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }

    /// A copy of the store that the first format left, and its workspace as it was left.
    struct Old {
        root: tempfile::TempDir,
        store: tempfile::TempDir,
    }

    impl Old {
        fn new() -> Self {
            let (root, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            copy(
                &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1"),
                store.path(),
            );
            std::fs::write(root.path().join("a"), "ONE\ntwo\n").unwrap();
            std::fs::write(root.path().join("b"), "new").unwrap();
            Self { root, store }
        }

        fn config(&self) -> KernelConfig {
            config(self.root.path(), self.store.path())
        }
    }

    fn config(root: &Path, store: &Path) -> KernelConfig {
        KernelConfig {
            store: StoreLocation::At(store.to_owned()),
            ..KernelConfig::new(root)
        }
    }

    /// Everything that the store of the first format held is there.
    fn check(old: &Old) {
        let kernel = ZeroKernel::open(old.config()).unwrap();
        let names: Vec<_> = kernel.sessions().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["default", "other"]);
        assert_eq!(kernel.log(10).unwrap().len(), 3);
        assert_eq!(kernel.session().get("k").unwrap(), Some(serde_json::json!({"n": 1})));
        for name in ["default", "other"] {
            let chain = kernel.verify_chain(&SessionName::new(name).unwrap(), None).unwrap();
            assert!(chain.valid, "{chain:#?}");
        }
        let first = kernel.log(10).unwrap().pop().unwrap().handle;
        let undone = kernel.undo(&first, &UndoOptions::default()).unwrap();
        assert!(undone.conflicts.is_empty(), "{undone:#?}");
        assert_eq!(
            std::fs::read_to_string(old.root.path().join("a")).unwrap(),
            "one\ntwo\n"
        );
        assert_eq!(kernel.execute_cell("return z.state.get('k')").value.unwrap().0["n"], 1);
    }

    #[test]
    fn a_store_of_the_first_format_is_migrated_by_command_only() {
        let old = Old::new();
        let error = ZeroKernel::open(old.config()).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.detail.contains("zero-kernel migrate"), "{error}");
        assert_eq!(migrate(&old.config()).unwrap(), Migrated { from: 1, to: 2 });
        assert_eq!(migrate(&old.config()).unwrap(), Migrated { from: 2, to: 2 });
        check(&old);
    }

    /// Killed before a step of the migration.
    #[test]
    #[ignore = "started by the test below"]
    fn child_that_is_killed() {
        let (Some(store), Some(step)) = (std::env::var_os(STORE), std::env::var(STEP).ok()) else {
            return;
        };
        let store = PathBuf::from(store);
        let root = tempfile::tempdir().unwrap();
        let (mut left, step): (u32, u32) = (0, step.parse().unwrap());
        let killed = migrate_by_steps(&config(root.path(), &store), &mut |_| {
            if left == step {
                let me = rustix::process::getpid();
                let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
            }
            left += 1;
        });
        println!("steps {left} {}", killed.is_ok());
    }

    #[test]
    fn a_migration_that_is_killed_leaves_the_older_store_or_the_newer_one() {
        let mut killed = 0;
        for step in 0.. {
            let old = Old::new();
            let output = Command::new(std::env::current_exe().unwrap())
                .args([
                    "migrate::tests::child_that_is_killed",
                    "--exact",
                    "--ignored",
                    "--nocapture",
                ])
                .env(STORE, old.store.path())
                .env(STEP, step.to_string())
                .output()
                .unwrap();
            if output.status.success() {
                assert!(String::from_utf8_lossy(&output.stdout).contains("true"), "{output:?}");
                break;
            }
            killed += 1;
            let migrated = migrate(&old.config()).unwrap();
            assert_eq!(migrated.to, 2);
            check(&old);
        }
        // Both statements, the commit, and after it.
        assert_eq!(killed, 4);
    }
}
