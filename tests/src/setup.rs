//! What a scenario needs and files in a folder cannot say.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use zerostack::contracts::{Budgets, CancelToken, ErrorKind, Operation, ZeroKernelResponse};
use zerostack::{CellOptions, Commands, ExternalReads, KernelConfig, Policy, ZeroKernel};

use crate::failing::FailingStructure;
use crate::processes;
use crate::tree::Node;

/// `setup.json`: how the workspace, the host and the cell's options differ from the plain case.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Setup {
    /// Permission bits, in octal, that files of the input have beyond what a checkout keeps.
    modes: BTreeMap<PathBuf, String>,
    /// Permission bits, in octal, that files must have afterwards.
    expected_modes: BTreeMap<PathBuf, String>,
    /// Names of the input that are FIFOs.
    fifos: Vec<PathBuf>,
    /// Further names of one file: `[existing, new]`.
    hard_links: Vec<[PathBuf; 2]>,
    /// Files beside the workspace; the cell finds their directory in `input.outside`.
    outside: BTreeMap<PathBuf, String>,
    /// Symlinks of the input that lead to such a file.
    links_outside: BTreeMap<PathBuf, PathBuf>,
    /// Values that the cell sees as `input`.
    input: BTreeMap<String, Value>,
    /// The cell's wall-clock time.
    timeout_ms: Option<u64>,
    /// The host cancels the cell after this time.
    cancel_after_ms: Option<u64>,
    /// Budgets that differ from the defaults, by name.
    budgets: BTreeMap<String, u64>,
    /// `allow` or `deny`.
    commands: Option<String>,
    /// `allow` or `deny`.
    external_reads: Option<String>,
    /// Operations that the host's policy denies.
    deny: Vec<Operation>,
    /// A cell that another kernel runs meanwhile and that makes the file `ready` in `input.outside` when it is under way.
    holder: Option<String>,
    /// The supervisor above this command line is killed as soon as that command runs.
    kill_supervisor_of: Option<String>,
    /// What another program writes while the cell runs, in this order: `[path, content]`.
    elsewhere: Vec<(PathBuf, String)>,
    /// The workspace is opened anew before the last cell.
    reopened: bool,
    /// Every stored object is damaged before the last cell.
    damaged_objects: bool,
    /// The process of the cell is killed before each change of the disk in turn, and the workspace opened anew: it must
    /// then be as before or as expected, and as expected once nothing is killed. Of the rest, only modes are heeded.
    pub(crate) killed_at_every_step: bool,
    /// The structure engine fails with this kind of error.
    failing_structure: Option<ErrorKind>,
}

/// Waits for something that another process brings about; what follows fails if it never does.
fn wait_for(mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !there() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

struct Denying(Vec<Operation>);

impl Policy for Denying {
    fn check(&self, operation: Operation, _: &[Value], _: &CancelToken) -> Result<(), String> {
        if self.0.contains(&operation) {
            Err(format!("this host does not allow z.{operation}"))
        } else {
            Ok(())
        }
    }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn octal(text: &str) -> io::Result<u32> {
    u32::from_str_radix(text, 8).map_err(|e| invalid(format!("mode {text:?}: {e}")))
}

impl Setup {
    /// Reads a scenario's `setup.json`, if it has one.
    ///
    /// # Errors
    /// From the file system, and for what is not of this form.
    pub fn read(scenario: &Path) -> io::Result<Self> {
        let path = scenario.join("setup.json");
        if !path.exists() {
            return Ok(Self::default());
        }
        serde_json::from_slice(&fs::read(&path)?).map_err(|e| invalid(format!("{}: {e}", path.display())))
    }

    pub(crate) fn prepare(&self, root: &Path, outside: &Path) -> io::Result<()> {
        fs::create_dir(outside)?;
        for (path, content) in &self.outside {
            fs::write(outside.join(path), content)?;
        }
        for (link, target) in &self.links_outside {
            std::os::unix::fs::symlink(outside.join(target), root.join(link))?;
        }
        for [existing, new] in &self.hard_links {
            fs::hard_link(root.join(existing), root.join(new))?;
        }
        for path in &self.fifos {
            let made = std::process::Command::new("mkfifo").arg(root.join(path)).status()?;
            if !made.success() {
                return Err(io::Error::other(format!("mkfifo {}: {made}", path.display())));
            }
        }
        for (path, mode) in &self.modes {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(octal(mode)?))?;
        }
        Ok(())
    }

    pub(crate) fn configure(&self, mut config: KernelConfig) -> KernelConfig {
        if self.commands.as_deref() == Some("deny") {
            config.commands = Commands::Deny;
        }
        if self.external_reads.as_deref() == Some("deny") {
            config.external_reads = ExternalReads::Deny;
        }
        if !self.deny.is_empty() {
            config.policy = Some(Arc::new(Denying(self.deny.clone())));
        }
        if let Some(kind) = self.failing_structure {
            config.engines.structure = Some(Arc::new(FailingStructure(kind)));
        }
        config
    }

    /// # Errors
    /// For a budget that there is not.
    pub(crate) fn options(&self, outside: &Path) -> io::Result<CellOptions> {
        let mut input = self.input.clone();
        if !self.outside.is_empty() || self.holder.is_some() {
            input.insert("outside".into(), json!(outside));
        }
        let mut budgets = serde_json::to_value(Budgets::default())?;
        for (name, value) in &self.budgets {
            match budgets.get_mut(name) {
                Some(budget) => *budget = json!(value),
                None => return Err(invalid(format!("there is no budget {name:?}"))),
            }
        }
        Ok(CellOptions {
            timeout: self.timeout_ms.map(Duration::from_millis),
            budgets: Some(serde_json::from_value(budgets)?),
            input: Some(input),
            ..CellOptions::default()
        })
    }

    /// Runs the cell that is judged, with everything that is to happen meanwhile.
    pub(crate) fn run(
        &self,
        config: &KernelConfig,
        options: CellOptions,
        outside: &Path,
        cell: impl FnOnce(CellOptions) -> ZeroKernelResponse,
    ) -> io::Result<ZeroKernelResponse> {
        let token = CancelToken::new();
        let over = CancelToken::new();
        std::thread::scope(|scope| {
            if let Some(source) = &self.holder {
                let kernel = ZeroKernel::open(KernelConfig {
                    session: "holder".parse().map_err(io::Error::other)?,
                    writable_paths: vec![outside.to_owned()],
                    ..config.clone()
                })
                .map_err(io::Error::other)?;
                let held = CellOptions {
                    cancel: Some(over.clone()),
                    input: options.input.clone(),
                    ..CellOptions::default()
                };
                scope.spawn(move || kernel.execute_cell_with(source, held));
                wait_for(|| outside.join("ready").exists());
            }
            if let Some(command) = &self.kill_supervisor_of {
                scope.spawn(|| {
                    wait_for(|| over.is_cancelled() || processes::kill_supervisor_of(command));
                });
            }
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                for (path, content) in &self.elsewhere {
                    // The cell waits for what is written last; if that never comes, it does not end as it says.
                    let _ = fs::write(config.root.join(path), content);
                }
            });
            if let Some(after) = self.cancel_after_ms {
                let token = token.clone();
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(after));
                    token.cancel();
                });
            }
            let response = cell(CellOptions {
                cancel: Some(token),
                ..options
            });
            over.cancel();
            Ok(response)
        })
    }

    /// Whether the workspace is opened anew before the last cell.
    pub(crate) fn reopens(&self) -> bool {
        self.reopened || self.damaged_objects
    }

    /// Changes one byte of every object of a store, as a failing disk would, if that is asked for.
    pub(crate) fn damage(&self, store: &Path) -> io::Result<()> {
        if !self.damaged_objects {
            return Ok(());
        }
        let mut damaged = 0;
        let mut open = vec![store.join("objects")];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                if path.is_dir() {
                    open.push(path);
                    continue;
                }
                let mut bytes = fs::read(&path)?;
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
                    fs::write(&path, bytes)?;
                    damaged += 1;
                }
            }
        }
        if damaged == 0 {
            return Err(invalid("there is no object to damage".into()));
        }
        Ok(())
    }

    pub(crate) fn expect_modes(&self, wanted: &mut BTreeMap<PathBuf, Node>) -> io::Result<()> {
        for (path, mode) in &self.expected_modes {
            let node = wanted
                .get_mut(path)
                .ok_or_else(|| invalid(format!("expectedModes names {}, which is not there", path.display())))?;
            node.mode = Some(octal(mode)?);
        }
        Ok(())
    }
}
