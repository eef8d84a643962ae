//! Sessions and their events: the SQLite database of the store.
//!
//! For cells that touch files the journal is authoritative and this database follows: it knows the journal sequence it has
//! applied, and every reader of a session's head first applies what is missing. For cells without file effects a row here
//! is the commit. Heads change only under the session's head lock.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use zero_contracts::files::CommitRecord;
use zero_contracts::{CancelToken, CellId, Digest, Error, ErrorKind, FileEngine, SessionName};

use crate::config::Result;

/// Version of the database's schema, kept in SQLite's `user_version`.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE journal (applied INTEGER NOT NULL);
    INSERT INTO journal VALUES (0);
    CREATE TABLE sessions (name TEXT PRIMARY KEY, state BLOB, event BLOB) WITHOUT ROWID;
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        cell TEXT NOT NULL UNIQUE,
        digest BLOB NOT NULL
    );
    CREATE INDEX events_by_session ON events (session, id);
";

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Head {
    /// Its state root; none for an empty state.
    pub state: Option<Digest>,
    /// Its last event.
    pub event: Option<Digest>,
}

/// One event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventEntry {
    /// The cell.
    pub cell: CellId,
    /// The event's digest.
    pub event: Digest,
}

/// The database and the head locks of one store.
pub struct Sessions {
    connection: Mutex<Connection>,
    locks: PathBuf,
}

/// Holds a session's head; dropping it lets go.
pub struct HeadLock {
    _file: File,
}

fn sql(error: rusqlite::Error) -> Error {
    let kind = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => ErrorKind::Busy,
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => ErrorKind::Corrupt,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("the store's session database: {error}"))
}

fn digest(bytes: Option<Vec<u8>>) -> Result<Option<Digest>> {
    bytes
        .map(|bytes| {
            <[u8; 32]>::try_from(bytes).map(Digest::from_bytes).map_err(|_| {
                Error::new(
                    ErrorKind::Corrupt,
                    "the session database holds a digest of the wrong length",
                )
            })
        })
        .transpose()
}

impl Sessions {
    /// Opens the database in the store directory, making it if absent.
    ///
    /// # Errors
    /// `unsupported` for a database of another version; `corrupt`, `io`.
    pub fn open(store: &Path) -> Result<Self> {
        let locks = store.join("heads");
        std::fs::create_dir_all(&locks).map_err(|e| Error::from_io(&e, "making the store's lock directory"))?;
        let mut connection = Connection::open(store.join("sessions.sqlite")).map_err(sql)?;
        connection.busy_timeout(Duration::from_secs(10)).map_err(sql)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(sql)?;
        connection.pragma_update(None, "synchronous", "normal").map_err(sql)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sql)?;
        match transaction
            .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
            .map_err(sql)?
        {
            0 => {
                transaction.execute_batch(SCHEMA).map_err(sql)?;
                transaction
                    .pragma_update(None, "user_version", SCHEMA_VERSION)
                    .map_err(sql)?;
            }
            SCHEMA_VERSION => {}
            other => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "the store's session database has version {other}, this build reads version {SCHEMA_VERSION}: \
                         use the build that wrote it"
                    ),
                ));
            }
        }
        transaction.commit().map_err(sql)?;
        Ok(Self {
            connection: Mutex::new(connection),
            locks,
        })
    }

    fn connection(&self) -> std::sync::MutexGuard<'_, Connection> {
        // A panic while the lock was held leaves no half-done SQL transaction behind: rusqlite rolls it back.
        self.connection
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits for a session's head lock.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token; `io`.
    pub fn lock(&self, session: &SessionName, token: &CancelToken) -> Result<HeadLock> {
        let path = self.locks.join(session.as_str());
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|e| Error::from_io(&e, "opening a session's head lock"))?;
        let mut pause = Duration::from_micros(50);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(HeadLock { _file: file }),
                Err(std::fs::TryLockError::WouldBlock) => {
                    token.check()?;
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
                Err(std::fs::TryLockError::Error(e)) => {
                    return Err(Error::from_io(&e, "locking a session's head"));
                }
            }
        }
    }

    /// Applies the journal's commits that this database has not seen.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn catch_up(&self, files: &dyn FileEngine) -> Result<()> {
        let mut connection = self.connection();
        let applied = applied(&connection)?;
        let commits = files.commits_after(applied)?;
        if commits.is_empty() {
            return Ok(());
        }
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sql)?;
        // Another process may have applied some meanwhile.
        let applied = self::applied(&transaction)?;
        for CommitRecord { cell, seal, .. } in commits.iter().filter(|commit| commit.sequence > applied) {
            let head = Head {
                state: seal.state,
                event: Some(seal.event),
            };
            append(&transaction, &seal.session, cell, head)?;
        }
        if let Some(last) = commits.last() {
            transaction
                .execute(
                    "UPDATE journal SET applied = max(applied, ?1)",
                    params![as_sql(last.sequence)],
                )
                .map_err(sql)?;
        }
        transaction.commit().map_err(sql)
    }

    /// Returns where a session stands; the empty head for one that never was.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn head(&self, session: &SessionName) -> Result<Head> {
        let row = self
            .connection()
            .prepare_cached("SELECT state, event FROM sessions WHERE name = ?1")
            .and_then(|mut query| {
                query
                    .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            })
            .map_err(sql)?;
        let Some((state, event)) = row else {
            return Ok(Head::default());
        };
        Ok(Head {
            state: digest(state)?,
            event: digest(event)?,
        })
    }

    /// Tells whether a cell of this name was recorded.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn knows(&self, cell: &CellId) -> Result<bool> {
        self.connection()
            .prepare_cached("SELECT 1 FROM events WHERE cell = ?1")
            .and_then(|mut query| query.exists([cell.as_str()]))
            .map_err(sql)
    }

    /// Records the event of a cell without file effects; the caller holds the session's head lock. With `flush` it
    /// survives a loss of power, otherwise the death of any process.
    ///
    /// # Errors
    /// `io`, `busy`.
    pub fn append(&self, session: &SessionName, cell: &CellId, head: Head, flush: bool) -> Result<()> {
        let mut connection = self.connection();
        // In WAL mode `full` flushes the log at each commit, and with it every earlier one; `normal` only at checkpoints.
        let mode = if flush { "full" } else { "normal" };
        connection.pragma_update(None, "synchronous", mode).map_err(sql)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sql)?;
        append(&transaction, session, cell, head)?;
        transaction.commit().map_err(sql)
    }

    /// Returns the event of a cell; none if it has none yet.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn event_of(&self, cell: &CellId) -> Result<Option<Digest>> {
        let row = self
            .connection()
            .prepare_cached("SELECT digest FROM events WHERE cell = ?1")
            .and_then(|mut query| query.query_row([cell.as_str()], |row| row.get(0)).optional())
            .map_err(sql)?;
        digest(row)
    }

    /// Returns a session's latest events, newest first.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn events(&self, session: &SessionName, limit: u32) -> Result<Vec<EventEntry>> {
        let connection = self.connection();
        let mut query = connection
            .prepare_cached("SELECT cell, digest FROM events WHERE session = ?1 ORDER BY id DESC LIMIT ?2")
            .map_err(sql)?;
        let rows = query
            .query_map(params![session.as_str(), limit], |row| {
                Ok((row.get::<_, String>(0)?, row.get(1)?))
            })
            .map_err(sql)?;
        rows.map(|row| {
            let (cell, event) = row.map_err(sql)?;
            let event = digest(Some(event))?.unwrap_or(Digest::from_bytes([0; 32]));
            Ok(EventEntry {
                cell: CellId::new(cell)?,
                event,
            })
        })
        .collect()
    }
}

/// SQLite's integers are signed; a journal never comes near 2^63 records.
fn as_sql(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

fn applied(connection: &Connection) -> Result<u64> {
    let applied: i64 = connection
        .prepare_cached("SELECT applied FROM journal")
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(sql)?;
    Ok(u64::try_from(applied).unwrap_or(0))
}

fn append(connection: &Connection, session: &SessionName, cell: &CellId, head: Head) -> Result<()> {
    let bytes = |digest: Option<Digest>| digest.map(|digest| digest.as_bytes().to_vec());
    connection
        .prepare_cached(
            "INSERT INTO sessions VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET state = ?2, event = ?3",
        )
        .and_then(|mut query| query.execute(params![session.as_str(), bytes(head.state), bytes(head.event)]))
        .map_err(sql)?;
    if let Some(event) = head.event {
        connection
            .prepare_cached("INSERT OR IGNORE INTO events (session, cell, digest) VALUES (?1, ?2, ?3)")
            .and_then(|mut query| query.execute(params![session.as_str(), cell.as_str(), event.as_bytes()]))
            .map_err(sql)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(n: u32) -> CellId {
        CellId::new(format!("cell-{n}")).unwrap()
    }

    #[test]
    fn heads_and_events_survive_reopening() {
        let store = tempfile::tempdir().unwrap();
        let session = SessionName::default();
        let head = |n: u8| Head {
            state: Some(Digest::of(&[n])),
            event: Some(Digest::of(&[n, n])),
        };
        {
            let sessions = Sessions::open(store.path()).unwrap();
            assert_eq!(sessions.head(&session).unwrap(), Head::default());
            sessions.append(&session, &cell(1), head(1), false).unwrap();
            sessions.append(&session, &cell(2), head(2), true).unwrap();
        }
        let sessions = Sessions::open(store.path()).unwrap();
        assert_eq!(sessions.head(&session).unwrap(), head(2));
        let cells: Vec<_> = sessions
            .events(&session, 10)
            .unwrap()
            .into_iter()
            .map(|entry| entry.cell)
            .collect();
        assert_eq!(cells, [cell(2), cell(1)]);
    }

    #[test]
    fn a_newer_database_is_refused() {
        let store = tempfile::tempdir().unwrap();
        drop(Sessions::open(store.path()).unwrap());
        let connection = Connection::open(store.path().join("sessions.sqlite")).unwrap();
        connection
            .pragma_update(None, "user_version", SCHEMA_VERSION + 1)
            .unwrap();
        assert_eq!(Sessions::open(store.path()).err().unwrap().kind, ErrorKind::Unsupported);
    }

    #[test]
    fn the_head_lock_excludes_and_honours_its_deadline() {
        let store = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(store.path()).unwrap();
        let held = sessions.lock(&SessionName::default(), &CancelToken::new()).unwrap();
        let token = CancelToken::with_timeout(Duration::from_millis(20));
        assert_eq!(
            sessions.lock(&SessionName::default(), &token).err().unwrap().kind,
            ErrorKind::Deadline
        );
        assert!(sessions.lock(&SessionName::new("other").unwrap(), &token).is_ok());
        drop(held);
        assert!(sessions.lock(&SessionName::default(), &CancelToken::new()).is_ok());
    }
}
