//! A response for a person: the console, the value, and in a line or two how the cell ended.

use serde_json::Value;
use zerostack::contracts::ZeroKernelResponse;
use zerostack::contracts::response::{Disposition, Phase, ResponseError};

/// The response in as few lines as say it all, but for the ledger.
pub fn text(response: &ZeroKernelResponse) -> String {
    let mut text = String::new();
    let mut paragraph = |part: &str| {
        if !part.is_empty() {
            text += part.trim_end_matches('\n');
            text += "\n";
        }
    };
    paragraph(&response.console);
    match response.value.as_ref().map(|value| &value.0) {
        None => {}
        Some(Value::String(value)) => paragraph(value),
        Some(value) => paragraph(&format!("{value:#}")),
    }
    if let Some(error) = &response.error {
        paragraph(&failure(error));
    }
    for conflict in &response.effects.conflicts {
        paragraph(&format!("conflict at {}: {}", conflict.path, conflict.detail));
    }
    paragraph(&end(response));
    seen(&text)
}

/// A text for a terminal: characters that would steer it, which a file or a command may have brought along, are written out.
fn seen(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        match character {
            '\n' | '\t' => seen.push(character),
            steering if steering.is_control() => seen += &format!("\\u{:04x}", u32::from(steering)),
            other => seen.push(other),
        }
    }
    seen
}

fn failure(error: &ResponseError) -> String {
    let mut text = error.kind.to_string();
    if let Some(at) = &error.location {
        text += &format!(" at line {}, column {}", at.line, at.column);
    }
    text += &format!(": {}", error.detail);
    if let Some(path) = error.path.as_ref().filter(|path| !error.detail.contains(*path)) {
        text += &format!(" ({path})");
    }
    if !error.accepted.is_empty() {
        text += &format!("\n  accepted: {}", error.accepted.join(" | "));
    }
    if error.retryable {
        text += "\n  the same cell may succeed later";
    }
    text
}

/// How it ended, and what became of its effects.
fn end(response: &ZeroKernelResponse) -> String {
    let effects = &response.effects;
    let paths = match effects.receipts {
        1 => "1 path".to_owned(),
        n => format!("{n} paths"),
    };
    let what = match effects.disposition {
        Disposition::None if response.state.unchanged => "nothing changed".to_owned(),
        Disposition::None => "facts of the session changed".to_owned(),
        Disposition::Committed => format!("{paths} changed"),
        Disposition::Restored => format!("{paths} restored"),
        Disposition::NeverAdmitted => "nothing was done".to_owned(),
    };
    let ran = match response.error.as_ref().map(|error| error.phase) {
        Some(Phase::Rejected) => "before it ran".to_owned(),
        _ => format!("in {:.0} ms", response.ledger.wall_ms),
    };
    let mut text = format!("-- {:?} {ran}, {what}", response.outcome);
    if let Some(event) = &response.event {
        text += &format!("; {event}");
    }
    text
}
