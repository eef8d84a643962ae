//! What JavaScript gives, as typed data. Unknown names are refused with the accepted ones listed.
//!
//! A function of JavaScript arrives as `true` in its place: the function itself stays there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use zerostack::StoreLocation;
use zerostack::contracts::files::Durability;
use zerostack::contracts::{Budgets, Error, SessionName};
use zerostack::evidence::SigningKey;

use crate::channel::Effects;
use crate::functions::Functions;
use crate::mount::MountOptions;

/// How a kernel is opened.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KernelConfig {
    /// The workspace: the directory that cells work in.
    root: PathBuf,
    /// The session whose state cells see and whose chain their events join; `default` if absent.
    session: Option<SessionName>,
    /// The same by the name that harnesses have for it; one of the two.
    session_id: Option<SessionName>,
    /// Where objects, journal and sessions lie: a directory outside the workspace, or `transient` for a temporary one that goes
    /// with the kernel. Without it, one under the user's state directory.
    store: Option<PathBuf>,
    /// Budgets of a cell that names none.
    budgets: Option<Budgets>,
    /// How long a command may take to obey a request to end before it is killed; 500 if absent.
    grace_ms: Option<u64>,
    /// What `z.read` may read outside the workspace: anything (the default), nothing, or what lies below directories.
    external_reads: Option<ExternalReads>,
    /// Whether `z.run` may run commands; it may by default.
    commands: Option<Commands>,
    /// How effects of commands are captured: in a private view where this machine allows one (the default), in nothing else, or
    /// by comparing the tree before and after.
    capture: Option<Capture>,
    /// Directories outside the workspace that commands may write to, beside the documented tool-chain caches.
    #[serde(default)]
    writable_paths: Vec<PathBuf>,
    /// What a commit survives; `power` by default.
    durability: Option<Durability>,
    /// Cells that run at once; more wait. 16 if absent.
    concurrent_cells: Option<usize>,
    /// May deny any call before it happens.
    #[serde(default)]
    policy: bool,
    /// Effects on the outside world that cells may ask for; none without it.
    effects: Option<Effects>,
    /// Further trees that cells see as `mount:NAME/path`, by name, and nothing can change.
    #[serde(default)]
    mounts: BTreeMap<String, MountOptions>,
    /// Signs every event: the 32 secret bytes of an Ed25519 key, or their 64 hexadecimal digits.
    signing_key: Option<String>,
}

/// How effects of commands are captured.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Capture {
    PreferPrivate,
    RequirePrivate,
    Baseline,
}

/// `allow`, `deny`, or what lies below these directories.
#[derive(Deserialize)]
#[serde(untagged, expecting = "\"allow\", \"deny\" or a list of directories")]
enum ExternalReads {
    Word(Permission),
    Roots(Vec<PathBuf>),
}

/// Whether commands may be run.
#[derive(Deserialize)]
struct Commands(Permission);

/// Whether something may be done.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Permission {
    Allow,
    Deny,
}

impl KernelConfig {
    /// Gives the kernel's configuration.
    ///
    /// # Errors
    /// `invalid_input` that names the option.
    pub fn config(self, supervisor: &Path, functions: &Functions) -> Result<zerostack::KernelConfig, Error> {
        let mut config = zerostack::KernelConfig::new(self.root);
        config.supervisor = Some(supervisor.to_owned());
        config.store = match self.store {
            None => config.store,
            Some(word) if word.as_os_str() == "transient" => StoreLocation::Transient,
            Some(path) => StoreLocation::At(path),
        };
        config.session = match (self.session, self.session_id) {
            (Some(_), Some(_)) => {
                let why = "`session` and `sessionId` are two names of one option: give one of them";
                return Err(Error::invalid(why).with_path("sessionId"));
            }
            (given, None) | (None, given) => given.unwrap_or(config.session),
        };
        if let Some(budgets) = self.budgets {
            config.budgets = budgets;
        }
        if let Some(ms) = self.grace_ms {
            config.grace = Duration::from_millis(ms);
        }
        match self.external_reads {
            None => {}
            Some(ExternalReads::Word(Permission::Allow)) => config.external_reads = zerostack::ExternalReads::Allow,
            Some(ExternalReads::Word(Permission::Deny)) => config.external_reads = zerostack::ExternalReads::Deny,
            Some(ExternalReads::Roots(roots)) => config.external_reads = zerostack::ExternalReads::Roots(roots),
        }
        match self.commands {
            None => {}
            Some(Commands(Permission::Allow)) => config.commands = zerostack::Commands::Allow,
            Some(Commands(Permission::Deny)) => config.commands = zerostack::Commands::Deny,
        }
        match self.capture {
            None => {}
            Some(Capture::PreferPrivate) => config.capture = zerostack::Capture::PreferPrivate,
            Some(Capture::RequirePrivate) => config.capture = zerostack::Capture::RequirePrivate,
            Some(Capture::Baseline) => config.capture = zerostack::Capture::Baseline,
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
        if let Some(effects) = self.effects {
            config.effects = effects.effects(functions)?;
        }
        for (name, mount) in self.mounts {
            let view = Arc::new(mount.view(name.clone(), functions));
            config.mounts.insert(name, view);
        }
        config.signing_key = self.signing_key.as_deref().map(SigningKey::from_hex).transpose()?;
        Ok(config)
    }
}
