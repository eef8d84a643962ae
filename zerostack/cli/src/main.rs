//! `zero-kernel`: one-cell diagnostics and health checks of the ZeroStack kernel.
//!
//! Standard output carries exactly one JSON document (with `mcp`, the protocol's messages; with `log`, and with `exec` on a terminal,
//! lines for people unless JSON is asked for); everything else goes to standard error. Exit codes: 0 Completed or healthy, 1 Failed or unhealthy, 2
//! usage, 130 Cancelled.

mod doctor;
mod effects;
mod exec;
mod log;
mod mcp;
mod plan;
mod source;
mod store;
mod undo;
mod verify;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use zerostack::contracts::{Error, SessionName};
use zerostack::{KernelConfig, StoreLocation};

/// What the help of the whole program ends with.
const ENDS: &str = "\
Exit codes: 0 completed or healthy, 1 failed or unhealthy, 2 usage, 130 cancelled.

Stores lie below $XDG_STATE_HOME/zerostack (~/.local/state/zerostack), one a workspace, unless --store names another.
ZERO_KERNEL_LOG=debug tells on standard error what goes on; ZEROSTACK_SUPERVISOR names the program zero-supervisor where it
is not beside this one.";

/// Runs cells of the ZeroStack kernel, and looks after what they left.
#[derive(Parser)]
#[command(name = "zero-kernel", version, about, after_help = ENDS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run one cell and print its response.
    ///
    /// The cell, the body of an async function in JavaScript or TypeScript, comes from standard input without `--file`.
    Exec(exec::Exec),
    /// Say which calls of `z` a cell can make, without running it.
    ///
    /// The cell comes from standard input without `--file`.
    Plan(plan::Plan),
    /// Print the session's latest events.
    Log(log::Log),
    /// Take back the changes of files that a cell committed.
    ///
    /// Whole, or with `--path` in part. What was changed since is left and listed among the conflicts, and the exit code is 1.
    /// The undo has an event of its own, by which it is undone. Facts of the session stay as they are.
    Undo(undo::Undo),
    /// Check a file of evidence, or with --root a store and its chains.
    ///
    /// A file is what `log --event` or `log --chain` printed, or a receipt. Of a store every object, journal frame and chain of
    /// events is checked.
    Verify(verify::Verify),
    /// Remove what nothing in the store refers to any more.
    Gc(store::Gc),
    /// Bring an older store to the format of this build.
    Migrate(store::Migrate),
    /// List, reconcile, abandon or retry effects on the outside world.
    Effects(effects::EffectsCommand),
    /// Serve the Model Context Protocol on standard input and output, with one tool: execute_cell.
    Mcp(mcp::Mcp),
    /// Say what this machine allows and how the store is.
    Doctor(doctor::Doctor),
}

/// Which workspace.
#[derive(Args)]
struct Workspace {
    /// The workspace root.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// The session.
    #[arg(long, value_name = "NAME", default_value = "default")]
    session: String,
    /// The store's directory; without it one in the user's state directory.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

impl Workspace {
    fn config(&self) -> Result<KernelConfig, Error> {
        let mut config = KernelConfig::new(&self.root);
        config.session = SessionName::new(&self.session)?;
        if let Some(store) = &self.store {
            config.store = StoreLocation::At(store.clone());
        }
        Ok(config)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_env("ZERO_KERNEL_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    match cli.command {
        Command::Exec(exec) => exec.run(),
        Command::Plan(plan) => plan.run(),
        Command::Log(log) => log.run(),
        Command::Undo(undo) => undo.run(),
        Command::Verify(verify) => verify.run(),
        Command::Gc(gc) => gc.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::Effects(effects) => effects.run(),
        Command::Mcp(mcp) => mcp.run(),
        Command::Doctor(doctor) => doctor.run(),
    }
}

/// Prints the one JSON document.
fn print<T: serde::Serialize>(document: &T) -> bool {
    use std::io::Write;
    let text = serde_json::to_string_pretty(document).unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"));
    // A reader that has gone away cannot be told anything.
    writeln!(std::io::stdout().lock(), "{text}").is_ok()
}

/// Reports what kept a command from its work.
fn fail(error: &Error) -> ExitCode {
    print(&serde_json::json!({ "error": error }));
    eprintln!("zero-kernel: {error}");
    ExitCode::from(1)
}
