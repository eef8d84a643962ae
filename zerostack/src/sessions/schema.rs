//! The schema of the session database, and how an older one becomes the present one.

use rusqlite::{Connection, TransactionBehavior};
use zero_contracts::{Error, ErrorKind};

use super::sql;
use crate::config::Result;

/// Version of the schema, kept in SQLite's `user_version`.
///
/// 1: sessions and events. 2: a session knows how many of its events were pruned, and the digest of the last of them.
pub(super) const VERSION: i64 = 2;

const SCHEMA: &str = "
    CREATE TABLE journal (applied INTEGER NOT NULL);
    INSERT INTO journal VALUES (0);
    CREATE TABLE sessions (
        name TEXT PRIMARY KEY,
        state BLOB,
        event BLOB,
        anchor BLOB,
        pruned INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        cell TEXT NOT NULL UNIQUE,
        digest BLOB NOT NULL
    );
    CREATE INDEX events_by_session ON events (session, id);
";

/// What makes version N + 1 of version N, for N from 1 on: one statement a step.
const MIGRATIONS: [&[&str]; 1] = [&[
    "ALTER TABLE sessions ADD COLUMN anchor BLOB",
    "ALTER TABLE sessions ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0",
]];

/// Makes a new database's tables, and refuses one of another version.
///
/// # Errors
/// `unsupported` for another version, with what to do about it; `corrupt`, `io`, `busy`.
pub(super) fn prepare(connection: &mut Connection) -> Result<()> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sql)?;
    match version(&transaction)? {
        0 => {
            transaction.execute_batch(SCHEMA).map_err(sql)?;
            transaction.pragma_update(None, "user_version", VERSION).map_err(sql)?;
        }
        VERSION => {}
        older if older < VERSION => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the store has sessions of version {older}, this build reads version {VERSION}: run `zero-kernel migrate`"
                ),
            )
            .with_path("store"));
        }
        newer => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the store has sessions of version {newer}, this build reads version {VERSION}: use a build at least as \
                     new as the one that wrote it"
                ),
            )
            .with_path("store"));
        }
    }
    transaction.commit().map_err(sql)
}

/// Brings an older database to the present version, all or nothing. `step` is called before each step and before the
/// commit. Returns the versions before and after.
///
/// # Errors
/// `unsupported` for a newer version; `corrupt`, `io`, `busy`.
pub(super) fn migrate(connection: &mut Connection, step: &mut dyn FnMut(&str)) -> Result<(i64, i64)> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sql)?;
    let before = version(&transaction)?;
    if !(1..=VERSION).contains(&before) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the store has sessions of version {before}; this build migrates versions 1 to {VERSION}"),
        )
        .with_path("store"));
    }
    for (statements, version) in MIGRATIONS.iter().zip(2..).filter(|(_, version)| *version > before) {
        for statement in *statements {
            step(statement);
            transaction.execute_batch(statement).map_err(sql)?;
        }
        transaction.pragma_update(None, "user_version", version).map_err(sql)?;
    }
    step("commit");
    transaction.commit().map_err(sql)?;
    step("done");
    Ok((before, VERSION))
}

fn version(connection: &Connection) -> Result<i64> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(sql)
}
