//! Sessions and their events: the SQLite database of the store.
//!
//! For cells that touch files the journal is authoritative and this database follows: it knows the journal sequence it has
//! applied, and every reader of a session's head first applies what is missing. For cells without file effects a row here
//! is the commit. Heads change only under the session's head lock.

mod schema;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use zero_contracts::files::CommitRecord;
use zero_contracts::{CancelToken, CellId, Digest, Error, ErrorKind, FileEngine, Handle, SessionName};

use crate::config::Result;

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
pub struct LogEntry {
    /// The cell.
    pub cell: CellId,
    /// The event: [`ZeroKernel::event`](crate::ZeroKernel::event) returns it.
    pub handle: Handle,
}

/// The database's file in the store.
pub(crate) const DATABASE: &str = "sessions.sqlite";

/// Opens the database of this file; without one, a database in memory.
fn connect(database: Option<&Path>) -> Result<Connection> {
    let connection = match database {
        Some(database) => Connection::open(database),
        None => Connection::open_in_memory(),
    };
    let connection = connection.map_err(sql)?;
    if database.is_none() {
        return Ok(connection);
    }
    connection.busy_timeout(Duration::from_secs(10)).map_err(sql)?;
    connection.pragma_update(None, "journal_mode", "wal").map_err(sql)?;
    connection.pragma_update(None, "synchronous", "normal").map_err(sql)?;
    Ok(connection)
}

/// Brings an older database of a store to the present version, all or nothing; `step` is called before each step. Returns
/// the versions before and after.
///
/// # Errors
/// `not_found` if the store has no database; `unsupported` for a newer version; `corrupt`, `io`, `busy`.
pub(crate) fn migrate(store: &Path, step: &mut dyn FnMut(&str)) -> Result<(i64, i64)> {
    let database = store.join(DATABASE);
    if !database.exists() {
        return Err(Error::new(ErrorKind::NotFound, "there is no store to migrate").with_path(store.display()));
    }
    schema::migrate(&mut connect(Some(&database))?, step)
}

/// What the events of a session that were pruned left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pruned {
    /// How many there were.
    pub events: u64,
    /// The digest of the last of them: what the first kept event's `previous` names.
    pub anchor: Option<Digest>,
}

/// The database and the head locks of one store.
pub struct Sessions {
    connection: Mutex<Connection>,
    /// Its file, unless it is in memory.
    database: Option<PathBuf>,
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

/// Says of a damaged database which file it is, and what to do. It is not made anew unasked: the journal does not know all of it.
fn with_remedy(mut error: Error, database: Option<&Path>) -> Error {
    if let (ErrorKind::Corrupt, Some(database)) = (error.kind, database) {
        let name = database.display();
        error.detail += &format!(
            ". Move `{name}` away (and `-wal` and `-shm` of its name): the next opening makes it anew from the journal. Commits of files \
             and the facts that came with them are back then; later facts, and events of cells that changed no file, are not"
        );
        error.path = Some(name.to_string());
    }
    error
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
        Self::open_in(store, Some(&store.join(DATABASE)))
    }

    /// Makes a database that goes with the kernel: the sessions of a transient store. Only the locks lie in its directory.
    ///
    /// # Errors
    /// `io`.
    pub fn transient(store: &Path) -> Result<Self> {
        Self::open_in(store, None)
    }

    fn open_in(store: &Path, database: Option<&Path>) -> Result<Self> {
        let locks = store.join("heads");
        std::fs::create_dir_all(&locks).map_err(|e| Error::from_io(&e, "making the store's lock directory"))?;
        let opened = connect(database).and_then(|mut connection| {
            schema::prepare(&mut connection)?;
            Ok(connection)
        });
        Ok(Self {
            connection: Mutex::new(opened.map_err(|error| with_remedy(error, database))?),
            database: database.map(Path::to_owned),
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
        let open = || {
            let options = File::options().create(true).truncate(false).write(true).open(&path);
            options.map_err(|e| Error::from_io(&e, "opening a session's head lock"))
        };
        let mut file = open()?;
        let mut pause = Duration::from_micros(50);
        loop {
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(HeadLock { _file: file }),
                // A collection removed it between the opening and the locking.
                Ok(()) => file = open()?,
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
        self.apply_commits(files)
            .map_err(|error| with_remedy(error, self.database.as_deref()))
    }

    fn apply_commits(&self, files: &dyn FileEngine) -> Result<()> {
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

    /// Returns the number of the last commit of the journal that this database has seen.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub(crate) fn applied(&self) -> Result<u64> {
        applied(&self.connection())
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

    /// Returns the names of all sessions, in order.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn names(&self) -> Result<Vec<SessionName>> {
        let connection = self.connection();
        let mut query = connection
            .prepare_cached("SELECT name FROM sessions ORDER BY name")
            .map_err(sql)?;
        let names = query.query_map([], |row| row.get::<_, String>(0)).map_err(sql)?;
        names.map(|name| SessionName::new(name.map_err(sql)?)).collect()
    }

    /// Returns where every session stands.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn heads(&self) -> Result<Vec<Head>> {
        self.names()?.iter().map(|name| self.head(name)).collect()
    }

    /// Returns the digests of all events that are kept, of every session.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn all_events(&self) -> Result<Vec<Digest>> {
        let connection = self.connection();
        let mut query = connection.prepare_cached("SELECT digest FROM events").map_err(sql)?;
        let events = query.query_map([], |row| row.get(0).map(Some)).map_err(sql)?;
        events
            .filter_map(|event| event.map_err(sql).and_then(digest).transpose())
            .collect()
    }

    /// Forgets all but the latest events of a session; the caller holds its head lock. Returns how many were forgotten.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn prune(&self, session: &SessionName, keep: u64) -> Result<u64> {
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sql)?;
        let last: Option<(i64, Vec<u8>)> = transaction
            .query_row(
                "SELECT id, digest FROM events WHERE session = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2",
                params![session.as_str(), as_sql(keep)],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(sql)?;
        let Some((id, anchor)) = last else { return Ok(0) };
        let pruned = transaction
            .execute(
                "DELETE FROM events WHERE session = ?1 AND id <= ?2",
                params![session.as_str(), id],
            )
            .map_err(sql)?;
        transaction
            .execute(
                "UPDATE sessions SET anchor = ?2, pruned = pruned + ?3 WHERE name = ?1",
                params![session.as_str(), anchor, as_sql(pruned as u64)],
            )
            .map_err(sql)?;
        transaction.commit().map_err(sql)?;
        Ok(pruned as u64)
    }

    /// Returns what a session's pruned events left behind.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn pruned(&self, session: &SessionName) -> Result<Pruned> {
        let row: Option<(i64, Option<Vec<u8>>)> = self
            .connection()
            .prepare_cached("SELECT pruned, anchor FROM sessions WHERE name = ?1")
            .and_then(|mut query| {
                query
                    .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            })
            .map_err(sql)?;
        let Some((events, anchor)) = row else {
            return Ok(Pruned::default());
        };
        Ok(Pruned {
            events: u64::try_from(events).unwrap_or(0),
            anchor: digest(anchor)?,
        })
    }

    /// Moves everything from the write-ahead log into the database and flushes it.
    ///
    /// # Errors
    /// `io`, `busy`.
    pub fn checkpoint(&self) -> Result<()> {
        let connection = self.connection();
        connection.pragma_update(None, "synchronous", "full").map_err(sql)?;
        let busy: i64 = connection
            .query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get(0))
            .map_err(sql)?;
        if busy != 0 {
            return Err(Error::new(
                ErrorKind::Busy,
                "another host reads the session database: try again",
            ));
        }
        Ok(())
    }

    /// Removes the lock files that nobody holds; returns how many. A session that comes back makes its own again.
    ///
    /// # Errors
    /// `io`.
    pub fn sweep_locks(&self) -> Result<u64> {
        let failed = |e: std::io::Error| Error::from_io(&e, "sweeping the store's locks");
        let mut removed = 0;
        for entry in std::fs::read_dir(&self.locks).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Ok(file) = File::options().write(true).open(&path) else {
                continue;
            };
            // Removed while it is held: whoever opened it before finds out when the lock is granted.
            if file.try_lock().is_ok() && is_at(&file, &path) {
                std::fs::remove_file(&path).map_err(failed)?;
                removed += 1;
            }
        }
        Ok(removed)
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
    pub fn events(&self, session: &SessionName, limit: u32) -> Result<Vec<LogEntry>> {
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
            Ok(LogEntry {
                cell: CellId::new(cell)?,
                handle: Handle::event(event),
            })
        })
        .collect()
    }
}

/// Whether an open file is still the one of this name.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |a: &std::fs::Metadata, b: &std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => same(&open, &named),
        _ => false,
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
            "INSERT INTO sessions (name, state, event) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET state = ?2, event = ?3",
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
    fn a_pruned_session_keeps_its_latest_events_and_an_anchor() {
        let store = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(store.path()).unwrap();
        let (session, other) = (SessionName::default(), SessionName::new("other").unwrap());
        let event = |n: u32| Digest::of(&n.to_le_bytes());
        for n in 0..10 {
            let head = Head {
                state: None,
                event: Some(event(n)),
            };
            let of = if n % 5 == 4 { &other } else { &session };
            sessions.append(of, &cell(n), head, false).unwrap();
        }
        assert_eq!(sessions.prune(&session, 8).unwrap(), 0);
        assert_eq!(sessions.pruned(&session).unwrap(), Pruned::default());
        assert_eq!(
            (
                sessions.prune(&session, 3).unwrap(),
                sessions.prune(&session, 2).unwrap()
            ),
            (5, 1)
        );
        let pruned = sessions.pruned(&session).unwrap();
        assert_eq!((pruned.events, pruned.anchor), (6, Some(event(6))));
        let left: Vec<_> = sessions
            .events(&session, 10)
            .unwrap()
            .into_iter()
            .map(|entry| entry.handle.digest)
            .collect();
        assert_eq!(left, [event(8), event(7)]);
        assert_eq!(
            (sessions.all_events().unwrap().len(), sessions.names().unwrap().len()),
            (4, 2)
        );
    }

    #[test]
    fn a_newer_database_is_refused() {
        let store = tempfile::tempdir().unwrap();
        drop(Sessions::open(store.path()).unwrap());
        let connection = Connection::open(store.path().join("sessions.sqlite")).unwrap();
        connection
            .pragma_update(None, "user_version", schema::VERSION + 1)
            .unwrap();
        let error = Sessions::open(store.path()).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.detail.contains("at least as new"), "{error}");
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
        // A lock file that is held is not swept, and one that was swept locks again.
        assert_eq!(sessions.sweep_locks().unwrap(), 1);
        drop(held);
        assert_eq!(sessions.sweep_locks().unwrap(), 1);
        assert!(sessions.lock(&SessionName::default(), &CancelToken::new()).is_ok());
    }
}
