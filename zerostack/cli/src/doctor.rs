//! `zero-kernel doctor` and `verify`: what this machine allows, and how the store is.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use zerostack::contracts::response::{CaptureTier, Outcome};
use zerostack::contracts::{CONTRACT_VERSION, CancelToken, Error, contract_digest};
use zerostack::{KernelConfig, StoreLocation, StoreReport, ZeroKernel};

use crate::print;

/// Says what this machine allows, by trying it in a temporary workspace; with `--root` also how that store is.
#[derive(Args)]
pub struct Doctor {
    /// A workspace whose store is checked, too.
    #[arg(long, value_name = "DIR")]
    root: Option<std::path::PathBuf>,
    /// The store's directory; without it one in the user's state directory.
    #[arg(long, value_name = "DIR", requires = "root")]
    store: Option<std::path::PathBuf>,
}

/// One thing that was tried.
#[derive(Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    detail: String,
}

impl Check {
    fn of(name: &'static str, tried: Result<String, String>) -> Self {
        let ok = tried.is_ok();
        Self {
            name,
            ok,
            detail: tried.unwrap_or_else(|why| why),
        }
    }
}

impl Doctor {
    /// Runs every check; the exit code is 0 if all are well.
    pub fn run(self) -> ExitCode {
        let mut checks = vec![
            Check::of("supervisor", supervisor()),
            Check::of(
                "frame",
                cell("return 6 * 7", |response| {
                    response.value.as_ref().is_some_and(|v| v.0 == 42)
                }),
            ),
            Check::of(
                "transaction",
                cell("await z.edit('a/b', {create: 'x'}); return z.read('a/b')", |response| {
                    response.outcome == Outcome::Completed && response.effects.receipts > 0
                }),
            ),
            Check::of("commands", commands()),
        ];
        checks.push(Check::of("privateView", self.private_view()));
        let mut store_report = None;
        if let Some(root) = &self.root {
            let mut config = KernelConfig::new(root);
            if let Some(store) = &self.store {
                config.store = StoreLocation::At(store.clone());
            }
            let (check, report) = store(&config);
            checks.push(Check::of("store", check));
            store_report = report;
        }
        let healthy = checks.iter().all(|check| check.ok);
        let mut document = serde_json::json!({
            "healthy": healthy,
            "checks": checks,
            "contract": { "version": CONTRACT_VERSION, "digest": contract_digest() },
        });
        if let Some(report) = store_report {
            document["store"] = serde_json::json!(report);
        }
        print(&document);
        if healthy { ExitCode::SUCCESS } else { ExitCode::from(1) }
    }
}

impl Doctor {
    /// Whether commands get a private view: of the given workspace, or of a temporary one. That they do not is no fault.
    fn private_view(&self) -> Result<String, String> {
        let scratch = Scratch::new()?;
        let kernel = match &self.root {
            None => scratch.kernel(),
            Some(root) => {
                let mut config = KernelConfig::new(root);
                if let Some(store) = &self.store {
                    config.store = StoreLocation::At(store.clone());
                }
                ZeroKernel::open(config)
            }
        };
        let why = kernel.and_then(|kernel| kernel.why_no_private_view());
        Ok(match why.map_err(|e| e.to_string())? {
            None => "commands work in a private view: the live tree sees nothing of them before the commit".to_owned(),
            Some(why) => format!("not available, commands work in the live tree (tier baseline): {why}"),
        })
    }
}

fn supervisor() -> Result<String, String> {
    zero_supervisor::locate::locate(None)
        .map(|path| path.display().to_string())
        .map_err(|e| e.to_string())
}

/// Runs a cell in a temporary workspace.
fn cell(
    source: &str,
    is_well: impl FnOnce(&zerostack::contracts::ZeroKernelResponse) -> bool,
) -> Result<String, String> {
    let workspace = Scratch::new()?;
    let kernel = workspace.kernel().map_err(|e| e.to_string())?;
    let response = kernel.execute_cell(source);
    match (&response.error, is_well(&response)) {
        (None, true) => Ok(format!("{:.1} ms", response.ledger.wall_ms)),
        (Some(error), _) => Err(format!("{}: {}", error.kind, error.detail)),
        (None, false) => Err("the cell answered something else than it should".to_owned()),
    }
}

fn commands() -> Result<String, String> {
    let workspace = Scratch::new()?;
    let kernel = workspace.kernel().map_err(|e| e.to_string())?;
    let response = kernel.execute_cell("return (await z.run(['true'])).exitCode");
    if let Some(error) = &response.error {
        return Err(format!("{}: {}", error.kind, error.detail));
    }
    let tier = &response.ledger.confinement;
    let capture = match response.effects.capture {
        CaptureTier::Private => "private",
        CaptureTier::Baseline => "baseline",
        CaptureTier::None | CaptureTier::UnattributedWrites => "none",
    };
    let named = |tier: &Option<String>| tier.clone().unwrap_or_else(|| "none".into());
    Ok(format!(
        "files: {}, tree: {}, capture: {capture}",
        named(&tier.files),
        named(&tier.tree)
    ))
}

/// How a workspace's store is, in a line and whole.
fn store(config: &KernelConfig) -> (Result<String, String>, Option<StoreReport>) {
    match zerostack::examine(config, &CancelToken::new()) {
        Err(error) => (Err(error.to_string()), None),
        Ok(report) => {
            let line = if report.healthy {
                Ok(report.store.display().to_string())
            } else {
                Err(format!(
                    "{} thing(s) are lost and {} part(s) damaged; {} event(s) and {} commit(s) can still be read",
                    report.lost.len(),
                    report.damage.len(),
                    report.readable.events,
                    report.readable.commits
                ))
            };
            (line, Some(report))
        }
    }
}

/// A temporary workspace.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Result<Self, String> {
        tempfile::Builder::new()
            .prefix("zero-kernel-doctor-")
            .tempdir()
            .map(Self)
            .map_err(|e| e.to_string())
    }

    fn kernel(&self) -> Result<ZeroKernel, Error> {
        ZeroKernel::open(KernelConfig {
            store: StoreLocation::Transient,
            ..KernelConfig::new(self.0.path())
        })
    }
}
