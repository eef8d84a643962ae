//! The outbox in the workspace's own store: one SQLite file, no set-up.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params_from_iter};
use zero_contracts::files::Durability;
use zero_contracts::{Error, ErrorKind, Result};

use super::sql::{Access, Database, Row, SCHEMA, SCHEMA_VERSION, SqlStore, Statements, Value, Work};
use super::store::FleetStore;
use crate::record::now_ms;

/// The file's name in the store.
const FILE: &str = "outbox.sqlite";

/// Opens the outbox in a store's directory, making it if absent.
///
/// With [`Durability::Power`] every change is flushed before its call returns: an effect that is sent was marked durably
/// as dispatched before.
///
/// # Errors
/// `unsupported` for a file of another version; `corrupt`, `io`, `busy`.
pub fn open(directory: &Path, durability: Durability) -> Result<impl FleetStore + use<>> {
    let file = directory.join(FILE);
    connect(&file, durability)
        .and_then(|connection| prepare(connection, Some(file.clone())))
        .map_err(|error| with_remedy(error, Some(&file)))
}

fn connect(file: &Path, durability: Durability) -> Result<Connection> {
    let connection = Connection::open(file).map_err(failed)?;
    connection.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "wal").map_err(failed)?;
    let synchronous = match durability {
        Durability::Power => "full",
        Durability::Process => "normal",
    };
    connection
        .pragma_update(None, "synchronous", synchronous)
        .map_err(failed)?;
    Ok(connection)
}

/// Looks at the outbox in a store's directory, if there is one, without changing it.
///
/// # Errors
/// `corrupt` if it is damaged; `io`, `busy`.
pub(super) fn examine(directory: &Path) -> Result<()> {
    let file = directory.join(FILE);
    if !file.exists() {
        return Ok(());
    }
    let look = || -> Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&file, flags).map_err(failed)?;
        connection.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
        let said: String = connection
            .pragma_query_value(None, "quick_check", |row| row.get(0))
            .map_err(failed)?;
        match said.as_str() {
            "ok" => Ok(()),
            _ => Err(Error::new(ErrorKind::Corrupt, format!("the store's outbox: {said}"))),
        }
    };
    look().map_err(|error| with_remedy(error, Some(&file)))
}

/// Says of a damaged outbox which file it is, and what to do. It is not made anew unasked: the journal knows what was asked
/// for, and nothing of what was sent.
fn with_remedy(mut error: Error, file: Option<&Path>) -> Error {
    if let (ErrorKind::Corrupt, None, Some(file)) = (error.kind, &error.path, file) {
        let name = file.display();
        error.detail += &format!(
            ". Put a copy of `{name}` back, or move it away (and `-wal` and `-shm` of its name): the next opening takes what it \
             lacks from the journal. Whether those effects were done is unknown then: their channel's probe is asked, and without \
             one they are not sent again but counted and given up. With an older copy those sent meanwhile are sent again, \
             unless a probe tells of them or their receiver refuses a repeated key"
        );
        error.path = Some(name.to_string());
    }
    error
}

/// Makes an outbox that goes with its kernel.
///
/// # Errors
/// `io`.
pub(super) fn in_memory() -> Result<impl FleetStore + use<>> {
    prepare(Connection::open_in_memory().map_err(failed)?, None)
}

/// Makes a new outbox's tables, and refuses one of another version.
fn prepare(mut connection: Connection, file: Option<PathBuf>) -> Result<SqlStore<Sqlite>> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    let version: i64 = transaction
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(failed)?;
    match version {
        0 => {
            transaction.execute_batch(SCHEMA).map_err(failed)?;
            transaction
                .pragma_update(None, "user_version", SCHEMA_VERSION)
                .map_err(failed)?;
        }
        SCHEMA_VERSION => {}
        other => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the store's outbox has version {other}, this build reads version {SCHEMA_VERSION}: use the build that \
                     wrote it"
                ),
            ));
        }
    }
    transaction.commit().map_err(failed)?;
    Ok(SqlStore(Sqlite {
        connection: Mutex::new(connection),
        file,
    }))
}

struct Sqlite {
    connection: Mutex<Connection>,
    /// None in memory.
    file: Option<PathBuf>,
}

fn failed(error: rusqlite::Error) -> Error {
    let kind = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => ErrorKind::Busy,
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => ErrorKind::Corrupt,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("the store's outbox: {error}"))
}

impl Database for Sqlite {
    fn transaction(&self, access: Access, work: Work<'_>) -> Result<()> {
        // A panic while the lock was held leaves no half-done SQL transaction behind: rusqlite rolls it back.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let behavior = match access {
            Access::Read => TransactionBehavior::Deferred,
            Access::Write => TransactionBehavior::Immediate,
        };
        let done = connection
            .transaction_with_behavior(behavior)
            .map_err(failed)
            .and_then(|mut transaction| {
                work(&mut transaction)?;
                transaction.commit().map_err(failed)
            });
        done.map_err(|error| with_remedy(error, self.file.as_deref()))
    }
}

impl Statements for rusqlite::Transaction<'_> {
    fn now_ms(&mut self) -> Result<i64> {
        Ok(i64::try_from(now_ms()).unwrap_or(i64::MAX))
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        let changed = self
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params_from_iter(values)))
            .map_err(failed)?;
        Ok(changed as u64)
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let mut statement = self.prepare_cached(sql).map_err(failed)?;
        let columns = statement.column_count();
        let rows = statement
            .query_map(params_from_iter(values), |row| {
                let value = |at| {
                    Ok(match row.get_ref(at)? {
                        ValueRef::Integer(number) => Value::Integer(number),
                        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                        _ => Value::Null,
                    })
                };
                (0..columns).map(value).collect::<rusqlite::Result<_>>().map(Row)
            })
            .map_err(failed)?;
        rows.collect::<rusqlite::Result<_>>().map_err(failed)
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        match self {
            Self::Null => rusqlite::types::Null.to_sql(),
            Self::Integer(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
        }
    }
}
