//! A cell whose process is killed before one change of the disk after the other: whoever opens the workspace next finds
//! all of it or nothing, and nothing beside it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fszero::seam::{Call, Gate};
use fszero::{FsConfig, FsZero};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;
use zerostack::{KernelConfig, StoreLocation, ZeroKernel};

use crate::tree::{self, Node};

/// The ignored test of `tests/it` that the victim runs, and no other.
pub const VICTIM: &str = "a_process_that_is_killed";
const SOURCE: &str = "ZEROSTACK_VICTIM_SOURCE";
const HOME: &str = "ZEROSTACK_VICTIM_HOME";
const STEP: &str = "ZEROSTACK_VICTIM_STEP";

const SIGKILL: i32 = 9;

/// Kills this process before the change of a number.
struct Killer(AtomicI64);

impl Gate for Killer {
    fn before(&self, _: &Call<'_>) -> io::Result<()> {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 0 {
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(())
    }
}

/// Runs the cell in this process, which may not live to its end; what it answered is left in a file.
///
/// # Errors
/// From the file system and the kernel.
pub fn be_the_victim() -> io::Result<()> {
    let told = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(source), Some(home)) = (told(SOURCE), told(HOME)) else {
        // Nobody is to be killed.
        return Ok(());
    };
    let step = std::env::var(STEP)
        .unwrap_or_default()
        .parse()
        .map_err(io::Error::other)?;
    let (root, store) = (home.join("workspace"), home.join("store"));
    let killer = Arc::new(Killer(AtomicI64::new(i64::MAX)));
    let files = FsZero::open(FsConfig::new(&root, &store).gate(killer.clone())).map_err(io::Error::other)?;
    let mut config = KernelConfig {
        store: StoreLocation::At(store),
        ..KernelConfig::new(&root)
    };
    config.engines.files = Some(Arc::new(files));
    let kernel = ZeroKernel::open(config).map_err(io::Error::other)?;
    killer.0.store(step, Ordering::SeqCst);
    let response = kernel.execute_cell(&std::fs::read_to_string(source)?);
    killer.0.store(i64::MAX, Ordering::SeqCst);
    std::fs::write(home.join("response.json"), serde_json::to_vec(&response)?)
}

/// Kills the cell at every step of it, each time in a new workspace that `prepare` fills; returns the response of the run
/// that lived, the tree it left, and what was found amiss in the others.
pub(crate) fn at_every_step(
    source: &Path,
    prepare: impl Fn(&Path) -> io::Result<()>,
    expected: &BTreeMap<PathBuf, Node>,
) -> io::Result<(Value, BTreeMap<PathBuf, Node>, Vec<String>)> {
    let mut misses = Vec::new();
    let mut found = [0, 0];
    for step in 0.. {
        let home = tempfile::tempdir()?;
        let root = home.path().join("workspace");
        std::fs::create_dir(&root)?;
        prepare(&root)?;
        let before = tree::image(&root)?;
        let ended = Command::new(std::env::current_exe()?)
            .args([VICTIM, "--exact", "--ignored"])
            .env(SOURCE, source)
            .env(HOME, home.path())
            .env(STEP, step.to_string())
            .stdout(Stdio::null())
            .status()?;
        if ended.success() {
            if step < 10 || found.contains(&0) {
                misses.push(format!(
                    "{step} steps, {} old and {} new: not killed in its midst",
                    found[0], found[1]
                ));
            }
            let response = serde_json::from_slice(&std::fs::read(home.path().join("response.json"))?)?;
            return Ok((response, tree::image(&root)?, misses));
        }
        if ended.signal() != Some(SIGKILL) {
            misses.push(format!("step {step}: the process ended with {ended}"));
            return Ok((Value::Null, before, misses));
        }
        let kernel = ZeroKernel::open(KernelConfig {
            store: StoreLocation::At(home.path().join("store")),
            ..KernelConfig::new(&root)
        });
        drop(kernel.map_err(io::Error::other)?);
        let after = tree::image(&root)?;
        match (after == before, after == *expected) {
            (true, _) => found[0] += 1,
            (_, true) => found[1] += 1,
            _ => {
                misses.push(format!("killed at step {step}, neither old nor new:"));
                misses.extend(tree::differences(&after, &before));
            }
        }
    }
    Ok((Value::Null, BTreeMap::new(), misses))
}
