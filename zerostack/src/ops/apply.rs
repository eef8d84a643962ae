//! `z.apply`: an atomic change of many files, checked on the staged tree; or an effect request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use zero_contracts::apply::{ApplyOptions, ApplyReceipts, ApplyResult, EffectRequest, FileOperation, Verify};
use zero_contracts::edit::EditReceipt;
use zero_contracts::read::EntryKind;
use zero_contracts::run::{Command, EndReason, RunOptions, RunRequest, Termination};
use zero_contracts::{CancelToken, Error, ErrorKind, Result, SourceView, TextRange, WorkspacePath, json};

use super::edit::stage;
use super::run::run_command;
use super::{named, reply};
use crate::cell::Cell;
use crate::frame::CallReply;

/// Answers `z.apply`.
pub(crate) fn apply(cell: &Arc<Cell>, arguments: Vec<Value>, token: &CancelToken) -> Result<CallReply> {
    let mut fields = named("apply", &["operations", "options"], arguments)?;
    let options: ApplyOptions = fields
        .remove("options")
        .map_or(Ok(ApplyOptions::default()), json::from_value)
        .map_err(|e| below("options", e))?;
    // Read by shape rather than as a union, so that an error names the operation and field it is about.
    let operations: Vec<FileOperation> = match fields.remove("operations") {
        Some(operations @ Value::Array(_)) => json::from_value(operations).map_err(|e| below("operations", e))?,
        Some(effect @ Value::Object(_)) if effect.get("effect").is_some() => {
            let effect: EffectRequest = json::from_value(effect)?;
            if options.verify.is_some() {
                return Err(
                    Error::invalid("`verify` is for changes of files; an effect is sent after the commit")
                        .with_path("options.verify"),
                );
            }
            return reply(&ApplyResult::Effect(crate::outbox::stage(cell, effect, token)?));
        }
        _ => {
            return Err(
                Error::invalid("z.apply takes an array of operations, or an effect request")
                    .with_path("operations")
                    .with_accepted(["[operation, …]", "{effect, key, payload, scope?}"]),
            );
        }
    };
    let Some(verify) = options.verify else {
        let receipts = stage(cell, &operations, token)?;
        return reply(&ApplyResult::Files(ApplyReceipts { receipts }));
    };
    let before = cell.view();
    let savepoint = cell.with_transaction(|transaction| Ok(transaction.savepoint()))?;
    let receipts = stage(cell, &operations, token)?;
    if let Err(why) = check(cell, &verify, &receipts, &*before, token) {
        // Unstaging must happen even if the call was cancelled meanwhile.
        let taken_back =
            cell.with_transaction(|transaction| transaction.roll_back_to(savepoint, &CancelToken::new()))?;
        return match taken_back.conflicts.first() {
            None => Err(why),
            Some(conflict) => Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "{}; and while it was unstaged `{}` was not as left: {}",
                    why.detail, conflict.path, conflict.detail
                ),
            )
            .with_path(&conflict.path)),
        };
    }
    reply(&ApplyResult::Files(ApplyReceipts { receipts }))
}

/// Says which argument an error's place is in.
fn below(argument: &str, error: Error) -> Error {
    let path = match &error.path {
        Some(path) if path.starts_with('[') => format!("{argument}{path}"),
        Some(path) => format!("{argument}.{path}"),
        None => argument.to_owned(),
    };
    error.with_path(path)
}

fn check(
    cell: &Arc<Cell>,
    verify: &Verify,
    receipts: &[EditReceipt],
    before: &dyn SourceView,
    token: &CancelToken,
) -> Result<()> {
    if verify.parse {
        let after = cell.view();
        for receipt in receipts {
            parses(cell, &receipt.path, before, &*after, token)?;
        }
    }
    let Some(argv) = &verify.command else { return Ok(()) };
    if argv.is_empty() {
        return Err(
            Error::invalid("`verify.command` is an argument vector and cannot be empty").with_path("verify.command"),
        );
    }
    let result = run_command(
        cell,
        RunRequest {
            command: Command::Argv(argv.clone()),
            options: RunOptions {
                timeout_ms: verify.timeout_ms,
                env: BTreeMap::new(),
                ..RunOptions::default()
            },
        },
        token,
    )?;
    if result.termination == Termination::Exited && result.exit_code == Some(0) && result.reason == EndReason::Natural {
        return Ok(());
    }
    let how = match (result.exit_code, &result.signal, &result.detail) {
        (Some(code), _, _) => format!("exited with {code}"),
        (None, Some(signal), _) => format!("was ended by {signal}"),
        (None, None, detail) => format!("could not be started: {}", detail.as_deref().unwrap_or("unknown")),
    };
    let output = if result.stderr.is_empty() {
        &result.stdout
    } else {
        &result.stderr
    };
    Err(Error::new(
        ErrorKind::Conflict,
        format!(
            "verify: `{}` {how}; nothing was staged. Its output:\n{output}",
            argv.join(" ")
        ),
    )
    .with_path("verify.command"))
}

/// Fails if a file has more syntax errors after than before.
fn parses(
    cell: &Cell,
    path: &WorkspacePath,
    before: &dyn SourceView,
    after: &dyn SourceView,
    token: &CancelToken,
) -> Result<()> {
    let errors = |view: &dyn SourceView| -> Result<Vec<TextRange>> {
        match view.resolve(path)? {
            Some(entry) if entry.kind == EntryKind::File => {
                let content = view.read(path, token)?;
                Ok(cell
                    .kernel
                    .structure
                    .syntax_errors(path, &content.bytes, token)?
                    .unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    };
    let found = errors(after)?;
    if found.is_empty() || found.len() <= errors(before)?.len() {
        return Ok(());
    }
    let places: Vec<String> = found
        .iter()
        .take(5)
        .map(|range| format!("{}:{}", range.start.line, range.start.column))
        .collect();
    Err(Error::new(
        ErrorKind::Conflict,
        format!(
            "verify: `{path}` would gain a syntax error (now at {}); nothing was staged",
            places.join(", ")
        ),
    )
    .with_path(path))
}
