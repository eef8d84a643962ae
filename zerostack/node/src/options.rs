//! What JavaScript gives, as typed data. Unknown names are refused with the accepted ones listed.
//!
//! A function of JavaScript arrives as `true` in its place: the function itself stays there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use zerostack::contracts::files::Durability;
use zerostack::contracts::{Budgets, SessionName};
use zerostack::{Commands, ExternalReads, KernelConfig, StoreLocation};

use crate::functions::Functions;

/// How a kernel is opened.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KernelOptions {
    root: PathBuf,
    session_id: Option<SessionName>,
    store: Option<PathBuf>,
    budgets: Option<Budgets>,
    grace_ms: Option<u64>,
    external_reads: Option<ExternalReadsOption>,
    commands: Option<CommandsOption>,
    #[serde(default)]
    writable_paths: Vec<PathBuf>,
    durability: Option<Durability>,
    concurrent_cells: Option<usize>,
    #[serde(default)]
    policy: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "\"allow\", \"deny\" or a list of directories")]
enum ExternalReadsOption {
    Word(CommandsOption),
    Roots(Vec<PathBuf>),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum CommandsOption {
    Allow,
    Deny,
}

impl KernelOptions {
    /// Gives the kernel's configuration.
    pub fn config(self, supervisor: &Path, functions: &Functions) -> KernelConfig {
        let mut config = KernelConfig::new(self.root);
        config.supervisor = Some(supervisor.to_owned());
        config.store = match self.store {
            None => config.store,
            Some(word) if word.as_os_str() == "transient" => StoreLocation::Transient,
            Some(path) => StoreLocation::At(path),
        };
        if let Some(session) = self.session_id {
            config.session = session;
        }
        if let Some(budgets) = self.budgets {
            config.budgets = budgets;
        }
        if let Some(ms) = self.grace_ms {
            config.grace = Duration::from_millis(ms);
        }
        match self.external_reads {
            None => {}
            Some(ExternalReadsOption::Word(CommandsOption::Allow)) => config.external_reads = ExternalReads::Allow,
            Some(ExternalReadsOption::Word(CommandsOption::Deny)) => config.external_reads = ExternalReads::Deny,
            Some(ExternalReadsOption::Roots(roots)) => config.external_reads = ExternalReads::Roots(roots),
        }
        match self.commands {
            None => {}
            Some(CommandsOption::Allow) => config.commands = Commands::Allow,
            Some(CommandsOption::Deny) => config.commands = Commands::Deny,
        }
        config.writable_paths = self.writable_paths;
        if let Some(durability) = self.durability {
            config.durability = durability;
        }
        if let Some(cells) = self.concurrent_cells {
            config.concurrent_cells = cells;
        }
        if self.policy {
            config.policy = Some(Arc::new(functions.clone()));
        }
        config
    }
}
