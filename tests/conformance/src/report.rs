//! What a suite found.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;

/// How one check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The engine keeps this part of its contract.
    Kept,
    /// The contract lets an engine leave this out, and this one does.
    NotOffered,
    /// It does not: what was seen.
    Broken(String),
}

/// One part of a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What is promised.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
}

/// All checks of one suite against one engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The trait.
    pub suite: &'static str,
    /// Its checks, in order.
    pub checks: Vec<Check>,
}

impl Report {
    /// The checks that the engine does not keep.
    pub fn failures(&self) -> Vec<&Check> {
        self.checks
            .iter()
            .filter(|check| matches!(check.outcome, Outcome::Broken(_)))
            .collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} checks", self.suite, self.checks.len())?;
        for check in &self.checks {
            match &check.outcome {
                Outcome::Kept => writeln!(f, "  ok           {}", check.name)?,
                Outcome::NotOffered => writeln!(f, "  not offered  {}", check.name)?,
                Outcome::Broken(seen) => writeln!(f, "  BROKEN       {}: {seen}", check.name)?,
            }
        }
        Ok(())
    }
}

/// Why a check stops early.
pub(crate) enum Stop {
    NotOffered,
    Broken(String),
}

impl From<zero_contracts::Error> for Stop {
    fn from(error: zero_contracts::Error) -> Self {
        Self::Broken(format!("an unexpected error: {error}"))
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(format!("an unexpected error: {error}"))
    }
}

pub(crate) type Checked = Result<(), Stop>;

/// Named checks of one kind of subject.
pub(crate) type Checks<S> = [(&'static str, fn(&S) -> Checked)];

/// Runs named checks against fresh subjects; a panic is a broken promise like any other.
pub(crate) fn run<S: ?Sized>(suite: &'static str, checks: &Checks<S>, fresh: &dyn Fn() -> Box<S>) -> Report {
    let checks = checks
        .iter()
        .map(|(name, check)| {
            let ended = catch_unwind(AssertUnwindSafe(|| check(&fresh())));
            let outcome = match ended {
                Ok(Ok(())) => Outcome::Kept,
                Ok(Err(Stop::NotOffered)) => Outcome::NotOffered,
                Ok(Err(Stop::Broken(seen))) => Outcome::Broken(seen),
                Err(_) => Outcome::Broken("it panicked".into()),
            };
            Check { name, outcome }
        })
        .collect();
    Report { suite, checks }
}

/// Ends a check as broken unless something holds.
macro_rules! ensure {
    ($holds:expr, $($seen:tt)+) => {
        if !$holds {
            return Err($crate::report::Stop::Broken(format!($($seen)+)));
        }
    };
}
pub(crate) use ensure;

/// Ends a check as broken unless two values are equal.
macro_rules! same {
    ($given:expr, $wanted:expr, $what:expr) => {{
        let (given, wanted) = (&$given, &$wanted);
        if given != wanted {
            return Err($crate::report::Stop::Broken(format!(
                "{}: {given:?}, not {wanted:?}",
                $what
            )));
        }
    }};
}
pub(crate) use same;

/// Ends a check as broken unless a call was refused with one of these kinds.
pub(crate) fn refused<T>(
    result: Result<T, zero_contracts::Error>,
    kinds: &[zero_contracts::ErrorKind],
    what: &str,
) -> Checked {
    match result {
        Ok(_) => Err(Stop::Broken(format!("{what} was not refused"))),
        Err(error) if kinds.contains(&error.kind) => Ok(()),
        Err(error) => Err(Stop::Broken(format!("{what} is {}, not {kinds:?}", error.kind))),
    }
}
