//! The outbox in PostgreSQL: leases, effects and events shared by hosts on several machines.
//!
//! One connection per store, made again when it breaks. The clock is the server's, so that the hosts' clocks need not
//! agree. While the server cannot be reached, cells without effects go on; what they committed is replicated later.

use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls};
use zero_contracts::{Error, ErrorKind, Result};

use super::sql::{Access, Database, Row, SCHEMA, SCHEMA_VERSION, SqlStore, Statements, Value, Work};
use super::store::FleetStore;

/// How long after a failed attempt nobody tries to connect again.
const COOL_DOWN: Duration = Duration::from_secs(2);

/// Lock under which the tables are made; any number that nobody else takes.
const SCHEMA_LOCK: i64 = 0x7a65_726f_7374_6163;

/// Connects to a server and makes the tables (`zerostack_…`, in the first schema of the search path) if absent.
///
/// `address` is a libpq connection string or URL, such as `host=/run/postgresql dbname=fleet user=zero`. The connection is
/// not encrypted: use a socket, a private network, or a proxy that encrypts.
///
/// # Errors
/// `invalid_input` for a malformed address; `unsupported` for tables of another version; `io` if the server cannot be
/// reached or refuses.
pub fn connect(address: &str) -> Result<impl FleetStore + use<>> {
    let mut config = Config::from_str(address)
        .map_err(|e| Error::invalid(format!("this is no address of a PostgreSQL server: {e}")).with_path("address"))?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    if config.get_application_name().is_none() {
        config.application_name("zerostack");
    }
    let database = Postgres {
        config,
        link: Mutex::default(),
    };
    database.transaction(Access::Write, &mut |db| {
        db.query("SELECT pg_advisory_xact_lock(?1)::text", &[SCHEMA_LOCK.into()])?;
        db.execute(
            "CREATE TABLE IF NOT EXISTS zerostack_version (version BIGINT NOT NULL)",
            &[],
        )?;
        let rows = db.query("SELECT version FROM zerostack_version", &[])?;
        match rows.first().map(|row| &row.0[0]) {
            None => {
                for statement in SCHEMA.split(';').filter(|statement| !statement.trim().is_empty()) {
                    db.execute(statement, &[])?;
                }
                db.execute("INSERT INTO zerostack_version VALUES (?1)", &[SCHEMA_VERSION.into()])?;
                Ok(())
            }
            Some(Value::Integer(SCHEMA_VERSION)) => Ok(()),
            Some(other) => Err(Error::new(
                ErrorKind::Unsupported,
                format!("the tables have version {other:?}, this build reads version {SCHEMA_VERSION}"),
            )),
        }
    })?;
    Ok(SqlStore(database))
}

struct Postgres {
    config: Config,
    link: Mutex<Link>,
}

#[derive(Default)]
struct Link {
    client: Option<Client>,
    failed: Option<Instant>,
}

impl Link {
    fn client(&mut self, config: &Config) -> Result<&mut Client> {
        if self.client.as_ref().is_some_and(Client::is_closed) {
            self.client = None;
        }
        if self.client.is_none() {
            if self.failed.is_some_and(|at| at.elapsed() < COOL_DOWN) {
                return Err(unreachable_server("it could not be reached a moment ago"));
            }
            match config.connect(NoTls) {
                Ok(client) => {
                    self.client = Some(client);
                    self.failed = None;
                }
                Err(e) => {
                    self.failed = Some(Instant::now());
                    return Err(unreachable_server(&why(&e)));
                }
            }
        }
        self.client
            .as_mut()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a connection that was just made is gone"))
    }
}

fn unreachable_server(why: &str) -> Error {
    Error::new(ErrorKind::Io, format!("the outbox's PostgreSQL server: {why}")).retryable(true)
}

/// The client's own text leaves out what the server said.
fn why(error: &postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => said.to_string(),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

fn failed(error: &postgres::Error) -> Error {
    unreachable_server(&why(error))
}

/// Runs blocking client calls where no async runtime is entered: the client has its own and must not meet another.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if tokio::runtime::Handle::try_current().is_err() {
        return work();
    }
    match std::thread::scope(|scope| scope.spawn(work).join()) {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Database for Postgres {
    fn transaction(&self, access: Access, work: Work<'_>) -> Result<()> {
        apart(|| {
            let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
            let client = link.client(&self.config)?;
            let mut transaction = client
                .build_transaction()
                .read_only(access == Access::Read)
                .start()
                .map_err(|e| failed(&e))?;
            work(&mut transaction)?;
            transaction.commit().map_err(|e| failed(&e))
        })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let link = std::mem::take(&mut *self.link.lock().unwrap_or_else(PoisonError::into_inner));
        // Closing the connection blocks.
        apart(move || drop(link));
    }
}

impl Statements for postgres::Transaction<'_> {
    fn now_ms(&mut self) -> Result<i64> {
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
        let row = self.query_one(sql, &[]).map_err(|e| failed(&e))?;
        Ok(row.get(0))
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        postgres::Transaction::execute(self, sql.replace('?', "$").as_str(), &parameters(values))
            .map_err(|e| failed(&e))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let rows = postgres::Transaction::query(self, sql.replace('?', "$").as_str(), &parameters(values))
            .map_err(|e| failed(&e))?;
        rows.iter()
            .map(|row| {
                let value = |at: usize| {
                    let value = match *row.columns()[at].type_() {
                        Type::INT8 => row.try_get::<_, Option<i64>>(at).map(|n| n.map(Value::Integer)),
                        _ => row.try_get::<_, Option<String>>(at).map(|t| t.map(Value::Text)),
                    };
                    value.map(|value| value.unwrap_or(Value::Null)).map_err(|e| failed(&e))
                };
                (0..row.len()).map(value).collect::<Result<_>>().map(Row)
            })
            .collect()
    }
}

fn parameters(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut postgres::types::private::BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) => number.to_sql(ty, out),
            // Its texts cannot hold NUL; none of ours that means something does.
            Self::Text(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT8 | Type::TEXT)
    }

    to_sql_checked!();
}
