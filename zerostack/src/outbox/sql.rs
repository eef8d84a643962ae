//! [`FleetStore`] in SQL that SQLite and PostgreSQL both speak: every statement is written once.
//!
//! Exclusion rests on single statements alone: `INSERT … ON CONFLICT` for leases and commits, a conditional `UPDATE` for
//! effects. No transaction holds a lock while anything outside the database happens.

use std::time::Duration;

use zero_contracts::apply::EffectScope;
use zero_contracts::{
    CellId, Digest, EffectIntent, EffectRecord, EffectState, Epoch, Error, ErrorKind, Handle, JsonValue, Result,
    SessionName,
};

use super::host::HostIdentity;
use super::store::{
    Count, EffectFilter, FleetStore, HeldLease, LeaseAnswer, LeaseAsk, LeaseEnd, LeaseStatus, ReplicatedCommit,
    ReplicatedEvent, Transition,
};
use crate::record::canonical_json;

/// Version of the tables.
pub(super) const SCHEMA_VERSION: i64 = 1;

/// The tables. Everything is a 64-bit integer or text; digests are their 64 hexadecimal digits.
pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS zerostack_journal (
        workspace TEXT PRIMARY KEY,
        applied BIGINT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS zerostack_events (
        workspace TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        session TEXT NOT NULL,
        cell TEXT NOT NULL,
        state TEXT,
        event TEXT NOT NULL,
        body TEXT,
        PRIMARY KEY (workspace, sequence)
    );
    CREATE TABLE IF NOT EXISTS zerostack_effects (
        workspace TEXT NOT NULL,
        id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        ordinal BIGINT NOT NULL,
        channel TEXT NOT NULL,
        key TEXT NOT NULL,
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        cell TEXT NOT NULL,
        intent TEXT NOT NULL,
        payload TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts BIGINT NOT NULL,
        unknown_count BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        evidence TEXT,
        detail TEXT,
        event TEXT,
        updated BIGINT NOT NULL,
        PRIMARY KEY (workspace, id)
    );
    CREATE INDEX IF NOT EXISTS zerostack_effects_untold
        ON zerostack_effects (workspace, sequence, ordinal) WHERE event IS NULL;
    CREATE TABLE IF NOT EXISTS zerostack_leases (
        name TEXT PRIMARY KEY,
        epoch BIGINT NOT NULL,
        owner TEXT,
        host TEXT,
        expires BIGINT NOT NULL,
        quarantined BIGINT NOT NULL,
        failures BIGINT NOT NULL,
        acquired BIGINT NOT NULL,
        contended BIGINT NOT NULL,
        reclaimed_expired BIGINT NOT NULL,
        reclaimed_dead BIGINT NOT NULL,
        lost BIGINT NOT NULL
    );
";

/// A value of a statement or row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        // Sequences, epochs and times never come near 2^63.
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What a statement runs on; parameters are written `?1`, `?2`, ….
pub(super) trait Statements {
    /// The database's clock in milliseconds since 1970: one clock for all that share the database.
    fn now_ms(&mut self) -> Result<i64>;
    /// Runs a statement; returns the number of rows it changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64>;
    /// Runs a query.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>>;
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// What is done in a transaction.
pub(super) type Work<'a> = &'a mut (dyn FnMut(&mut dyn Statements) -> Result<()> + Send);

/// A database.
pub(super) trait Database: Send + Sync {
    /// Runs `work` in one transaction, which is rolled back if it fails.
    fn transaction(&self, access: Access, work: Work<'_>) -> Result<()>;
}

/// A row of a result.
pub(super) struct Row(pub Vec<Value>);

impl Row {
    fn damaged(what: &str) -> Error {
        Error::new(ErrorKind::Corrupt, format!("the outbox database holds {what}"))
    }

    fn text(&self, at: usize) -> Result<&str> {
        match self.0.get(at) {
            Some(Value::Text(text)) => Ok(text),
            other => Err(Self::damaged(&format!("{other:?} where text is expected"))),
        }
    }

    fn optional(&self, at: usize) -> Result<Option<&str>> {
        match self.0.get(at) {
            Some(Value::Null) => Ok(None),
            _ => self.text(at).map(Some),
        }
    }

    fn number(&self, at: usize) -> Result<u64> {
        match self.0.get(at) {
            Some(Value::Integer(number)) => Ok(u64::try_from(*number).unwrap_or(0)),
            other => Err(Self::damaged(&format!("{other:?} where a number is expected"))),
        }
    }

    fn small(&self, at: usize) -> Result<u32> {
        Ok(u32::try_from(self.number(at)?).unwrap_or(u32::MAX))
    }

    fn digest(&self, at: usize) -> Result<Digest> {
        let text = self.text(at)?;
        text.parse()
            .map_err(|_| Self::damaged(&format!("`{text}` where a digest is expected")))
    }

    fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
        serde_json::from_str(text).map_err(|e| Self::damaged(&format!("malformed JSON: {e}")))
    }
}

/// [`FleetStore`] over any [`Database`].
pub(super) struct SqlStore<D>(pub D);

impl<D: Database> SqlStore<D> {
    fn run<T: Send>(&self, access: Access, mut work: impl FnMut(&mut dyn Statements) -> Result<T> + Send) -> Result<T> {
        let mut result = None;
        self.0.transaction(access, &mut |statements| {
            result = Some(work(statements)?);
            Ok(())
        })?;
        result.ok_or_else(|| Error::new(ErrorKind::Internal, "a transaction committed without having run"))
    }
}

const EFFECT: &str = "id, channel, key, scope, session, cell, intent, payload, state, attempts, unknown_count, epoch, \
                      evidence, detail, event";

fn word(scope: EffectScope) -> &'static str {
    match scope {
        EffectScope::Workspace => "workspace",
        EffectScope::Session => "session",
        EffectScope::Cell => "cell",
    }
}

fn effect(row: &Row) -> Result<EffectRecord> {
    let scope = row.text(3)?;
    let scope = [EffectScope::Workspace, EffectScope::Session, EffectScope::Cell]
        .into_iter()
        .find(|known| word(*known) == scope)
        .ok_or_else(|| Row::damaged(&format!("the scope `{scope}`")))?;
    let state = row.text(8)?;
    Ok(EffectRecord {
        kind: zero_contracts::effect::EffectTag::Effect,
        handle: Handle::effect(row.digest(0)?),
        effect: row.text(1)?.to_owned(),
        key: row.text(2)?.to_owned(),
        scope,
        session: SessionName::new(row.text(4)?)?,
        cell: CellId::new(row.text(5)?)?,
        intent: row.digest(6)?,
        payload: Some(Row::json(row.text(7)?)?),
        state: EffectState::from_word(state).ok_or_else(|| Row::damaged(&format!("the state `{state}`")))?,
        attempts: row.small(9)?,
        unknown: row.small(10)?,
        epoch: Epoch(row.number(11)?),
        evidence: row.optional(12)?.map(Row::json).transpose()?,
        detail: row.optional(13)?.map(str::to_owned),
        event: match row.optional(14)? {
            None => None,
            Some(_) => Some(Handle::event(row.digest(14)?)),
        },
    })
}

fn json_text(value: &JsonValue) -> Result<String> {
    // Canonical JSON is UTF-8.
    Ok(String::from_utf8_lossy(&canonical_json(value)?).into_owned())
}

/// The row of an intent that could not be read: kept and listed, so that somebody looks.
fn unreadable(commit: &ReplicatedCommit, intent: Digest, why: &str) -> EffectRecord {
    EffectRecord {
        kind: zero_contracts::effect::EffectTag::Effect,
        handle: Handle::effect(intent),
        effect: "unreadable".into(),
        key: intent.to_hex(),
        scope: EffectScope::Cell,
        session: commit.session.clone(),
        cell: commit.cell.clone(),
        intent,
        payload: Some(JsonValue::default()),
        state: EffectState::Quarantined,
        attempts: 0,
        unknown: 0,
        epoch: Epoch(0),
        evidence: None,
        detail: Some(format!("the intent cannot be read: {why}")),
        event: None,
    }
}

fn applied(db: &mut dyn Statements, workspace: &str) -> Result<Option<u64>> {
    let rows = db.query(
        "SELECT applied FROM zerostack_journal WHERE workspace = ?1",
        &[workspace.into()],
    )?;
    rows.first().map(|row| row.number(0)).transpose()
}

impl<D: Database> FleetStore for SqlStore<D> {
    fn applied(&self, workspace: &str) -> Result<Option<u64>> {
        self.run(Access::Read, |db| applied(db, workspace))
    }

    fn apply(&self, workspace: &str, commits: &[ReplicatedCommit]) -> Result<()> {
        let last = commits.iter().map(|commit| commit.sequence).max().unwrap_or(0);
        self.run(Access::Write, |db| {
            let now = db.now_ms()?;
            let state = match applied(db, workspace)? {
                Some(_) => EffectState::Prepared,
                None => EffectState::Dispatched,
            };
            for commit in commits {
                db.execute(
                    "INSERT INTO zerostack_events (workspace, sequence, session, cell, state, event, body)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (workspace, sequence) DO NOTHING",
                    &[
                        workspace.into(),
                        commit.sequence.into(),
                        commit.session.as_str().into(),
                        commit.cell.as_str().into(),
                        commit.state.map(|state| state.to_hex()).into(),
                        commit.event.to_hex().into(),
                        commit.body.clone().into(),
                    ],
                )?;
                for (ordinal, (digest, intent)) in commit.intents.iter().enumerate() {
                    let record = match intent {
                        Ok(intent) => EffectRecord::new(intent, *digest, state),
                        Err(why) => unreadable(commit, *digest, why),
                    };
                    insert(db, workspace, (commit.sequence, ordinal as u64), &record, now)?;
                }
            }
            db.execute(
                "INSERT INTO zerostack_journal (workspace, applied) VALUES (?1, ?2)
                 ON CONFLICT (workspace) DO UPDATE SET applied = excluded.applied
                 WHERE zerostack_journal.applied < excluded.applied",
                &[workspace.into(), last.into()],
            )?;
            Ok(())
        })
    }

    fn events(&self, workspace: &str, after: u64, limit: u32) -> Result<Vec<ReplicatedEvent>> {
        self.run(Access::Read, |db| {
            let rows = db.query(
                "SELECT sequence, session, cell, event, body FROM zerostack_events
                 WHERE workspace = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
                &[workspace.into(), after.into(), i64::from(limit).into()],
            )?;
            rows.iter()
                .map(|row| {
                    Ok(ReplicatedEvent {
                        sequence: row.number(0)?,
                        session: row.text(1)?.to_owned(),
                        cell: row.text(2)?.to_owned(),
                        event: row.digest(3)?,
                        body: row.optional(4)?.map(str::to_owned),
                    })
                })
                .collect()
        })
    }

    fn effect(&self, workspace: &str, id: &Digest) -> Result<Option<EffectRecord>> {
        let sql = format!("SELECT {EFFECT} FROM zerostack_effects WHERE workspace = ?1 AND id = ?2");
        self.run(Access::Read, |db| {
            let rows = db.query(&sql, &[workspace.into(), id.to_hex().into()])?;
            rows.first().map(effect).transpose()
        })
    }

    fn effects(&self, workspace: &str, filter: &EffectFilter) -> Result<Vec<EffectRecord>> {
        let mut sql = format!("SELECT {EFFECT} FROM zerostack_effects WHERE workspace = ?1");
        let mut values = vec![Value::from(workspace)];
        if !filter.states.is_empty() {
            let words: Vec<_> = filter
                .states
                .iter()
                .map(|state| format!("'{}'", state.as_str()))
                .collect();
            sql += &format!(" AND state IN ({})", words.join(", "));
        }
        if let Some(channel) = &filter.effect {
            values.push(channel.as_str().into());
            sql += &format!(" AND channel = ?{}", values.len());
        }
        if filter.untold {
            sql += " AND event IS NULL";
        }
        sql += " ORDER BY sequence, ordinal";
        if filter.limit > 0 {
            sql += &format!(" LIMIT {}", filter.limit);
        }
        self.run(Access::Read, |db| db.query(&sql, &values)?.iter().map(effect).collect())
    }

    fn transition(&self, change: &Transition<'_>) -> Result<bool> {
        let (attempt, unknown) = match change.count {
            Count::Nothing => (0, 0),
            Count::Attempt => (1, 0),
            Count::Unknown => (0, 1),
        };
        let evidence = change.evidence.map(json_text).transpose()?;
        self.run(Access::Write, |db| {
            let now = db.now_ms()?;
            let mut sql = format!(
                "UPDATE zerostack_effects SET state = ?1, attempts = attempts + {attempt},
                 unknown_count = unknown_count + {unknown}, updated = ?2, detail = ?3"
            );
            let mut values = vec![change.to.as_str().into(), now.into(), change.detail.into()];
            let mut more = |sql: &mut String, part: &str, value: Value| {
                values.push(value);
                *sql += &part.replace('?', &format!("?{}", values.len()));
            };
            if let Some(evidence) = &evidence {
                more(&mut sql, ", evidence = ?", evidence.as_str().into());
            }
            if let Some(claim) = change.claim {
                more(&mut sql, ", epoch = ?", claim.0.into());
            }
            more(&mut sql, " WHERE workspace = ?", change.workspace.into());
            more(&mut sql, " AND id = ?", change.effect.to_hex().into());
            more(&mut sql, " AND state = ?", change.from.as_str().into());
            if let Some(claimed) = change.claimed {
                more(&mut sql, " AND epoch = ?", claimed.0.into());
            }
            if let Some(fence) = change.fence {
                more(
                    &mut sql,
                    " AND EXISTS (SELECT 1 FROM zerostack_leases WHERE name = ?",
                    fence.name.as_str().into(),
                );
                more(&mut sql, " AND owner = ?", fence.owner.as_str().into());
                more(&mut sql, " AND zerostack_leases.epoch = ?", fence.epoch.0.into());
                more(&mut sql, " AND expires > ?)", now.into());
            }
            Ok(db.execute(&sql, &values)? > 0)
        })
    }

    fn note_event(&self, workspace: &str, id: &Digest, event: Option<&Digest>) -> Result<()> {
        self.run(Access::Write, |db| {
            db.execute(
                "UPDATE zerostack_effects SET event = ?3 WHERE workspace = ?1 AND id = ?2",
                &[workspace.into(), id.to_hex().into(), event.map(Digest::to_hex).into()],
            )
            .map(drop)
        })
    }

    fn acquire_lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer> {
        let host = serde_json::to_string(ask.host)
            .map_err(|e| Error::new(ErrorKind::Internal, format!("a host cannot be written as JSON: {e}")))?;
        // Looked at first, so that the common wait for a living holder writes nothing.
        let holder = self.run(Access::Read, |db| {
            let now = db.now_ms()?;
            let rows = db.query(
                "SELECT owner, host, expires, quarantined FROM zerostack_leases WHERE name = ?1",
                &[ask.name.into()],
            )?;
            let Some(row) = rows.first() else { return Ok(None) };
            let Some(owner) = row.optional(0)? else { return Ok(None) };
            let holder: Option<HostIdentity> = row.optional(1)?.and_then(|text| Row::json(text).ok());
            let lapsed = i64::try_from(row.number(2)?).unwrap_or(i64::MAX) <= now;
            Ok(Some((owner.to_owned(), holder, lapsed)))
        })?;
        let dead = match &holder {
            Some((owner, Some(host), _)) if host.is_dead() => Some(owner.clone()),
            _ => None,
        };
        if let Some((_, host, false)) = &holder
            && dead.is_none()
        {
            if ask.first {
                self.contended(ask.name)?;
            }
            return Ok(LeaseAnswer::Busy(host.clone()));
        }
        self.run(Access::Write, |db| {
            let now = db.now_ms()?;
            let expires = now.saturating_add(i64::try_from(ask.ttl.as_millis()).unwrap_or(i64::MAX));
            // A holder that died or let it lapse has failed; so has the resource, if that happened too often.
            for (column, condition, value) in [
                ("reclaimed_dead", "owner = ?2", Value::from(dead.clone())),
                ("reclaimed_expired", "expires <= ?2", Value::from(now)),
            ] {
                db.execute(
                    &format!(
                        "UPDATE zerostack_leases SET owner = NULL, host = NULL, failures = failures + 1,
                         {column} = {column} + 1,
                         quarantined = CASE WHEN {ceiling} > 0 AND failures + 1 >= {ceiling} THEN 1 ELSE quarantined END
                         WHERE name = ?1 AND owner IS NOT NULL AND {condition}",
                        ceiling = ask.ceiling
                    ),
                    &[ask.name.into(), value],
                )?;
            }
            let granted = db.query(
                "INSERT INTO zerostack_leases (name, epoch, owner, host, expires, quarantined, failures, acquired,
                     contended, reclaimed_expired, reclaimed_dead, lost)
                 VALUES (?1, 1, ?2, ?3, ?4, 0, 0, 1, 0, 0, 0, 0)
                 ON CONFLICT (name) DO UPDATE SET epoch = zerostack_leases.epoch + 1, owner = excluded.owner,
                     host = excluded.host, expires = excluded.expires, acquired = zerostack_leases.acquired + 1
                 WHERE zerostack_leases.owner IS NULL AND zerostack_leases.quarantined = 0
                 RETURNING epoch",
                &[ask.name.into(), ask.owner.into(), host.as_str().into(), expires.into()],
            )?;
            if let Some(row) = granted.first() {
                return Ok(LeaseAnswer::Granted(Epoch(row.number(0)?)));
            }
            let rows = db.query(
                "SELECT quarantined, host FROM zerostack_leases WHERE name = ?1",
                &[ask.name.into()],
            )?;
            match rows.first() {
                Some(row) if row.number(0)? > 0 => Ok(LeaseAnswer::Quarantined),
                Some(row) => Ok(LeaseAnswer::Busy(
                    row.optional(1)?.and_then(|text| Row::json(text).ok()),
                )),
                None => Ok(LeaseAnswer::Busy(None)),
            }
        })
    }

    fn renew_lease(&self, held: &HeldLease, ttl: Duration) -> Result<bool> {
        self.run(Access::Write, |db| {
            let now = db.now_ms()?;
            let expires = now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
            let renewed = db.execute(
                "UPDATE zerostack_leases SET expires = ?4
                 WHERE name = ?1 AND owner = ?2 AND epoch = ?3 AND expires > ?5",
                &[
                    held.name.as_str().into(),
                    held.owner.as_str().into(),
                    held.epoch.0.into(),
                    expires.into(),
                    now.into(),
                ],
            )?;
            if renewed == 0 {
                db.execute(
                    "UPDATE zerostack_leases SET lost = lost + 1 WHERE name = ?1",
                    &[held.name.as_str().into()],
                )?;
            }
            Ok(renewed > 0)
        })
    }

    fn end_lease(&self, held: &HeldLease, end: LeaseEnd) -> Result<bool> {
        let counted = match end {
            LeaseEnd::Released => "failures = 0".to_owned(),
            LeaseEnd::Failed { ceiling } => format!(
                "failures = failures + 1,
                 quarantined = CASE WHEN {ceiling} > 0 AND failures + 1 >= {ceiling} THEN 1 ELSE quarantined END"
            ),
        };
        let sql = format!(
            "UPDATE zerostack_leases SET owner = NULL, host = NULL, {counted}
             WHERE name = ?1 AND owner = ?2 AND epoch = ?3 AND expires > ?4"
        );
        self.run(Access::Write, |db| {
            let now = db.now_ms()?;
            let values = [
                held.name.as_str().into(),
                held.owner.as_str().into(),
                held.epoch.0.into(),
                now.into(),
            ];
            Ok(db.execute(&sql, &values)? > 0)
        })
    }

    fn leases(&self) -> Result<Vec<LeaseStatus>> {
        self.run(Access::Read, |db| {
            let now = db.now_ms()?;
            let rows = db.query(
                "SELECT name, epoch, host, expires, quarantined, failures, acquired, contended, reclaimed_expired,
                 reclaimed_dead, lost FROM zerostack_leases ORDER BY name",
                &[],
            )?;
            rows.iter()
                .map(|row| {
                    let holder: Option<HostIdentity> = row.optional(2)?.map(Row::json).transpose()?;
                    Ok(LeaseStatus {
                        name: row.text(0)?.to_owned(),
                        epoch: Epoch(row.number(1)?),
                        lapsed: holder.is_some() && i64::try_from(row.number(3)?).unwrap_or(i64::MAX) <= now,
                        holder,
                        quarantined: row.number(4)? > 0,
                        failures: row.number(5)?,
                        acquired: row.number(6)?,
                        contended: row.number(7)?,
                        reclaimed_expired: row.number(8)?,
                        reclaimed_dead: row.number(9)?,
                        lost: row.number(10)?,
                    })
                })
                .collect()
        })
    }

    fn lift_quarantine(&self, name: &str) -> Result<bool> {
        self.run(Access::Write, |db| {
            let lifted = db.execute(
                "UPDATE zerostack_leases SET quarantined = 0, failures = 0 WHERE name = ?1 AND quarantined = 1",
                &[name.into()],
            )?;
            Ok(lifted > 0)
        })
    }
}

impl<D: Database> SqlStore<D> {
    fn contended(&self, name: &str) -> Result<()> {
        self.run(Access::Write, |db| {
            db.execute(
                "UPDATE zerostack_leases SET contended = contended + 1 WHERE name = ?1",
                &[name.into()],
            )
            .map(drop)
        })
    }
}

fn insert(
    db: &mut dyn Statements,
    workspace: &str,
    (sequence, ordinal): (u64, u64),
    record: &EffectRecord,
    now: i64,
) -> Result<()> {
    let payload = record.payload.clone().unwrap_or_default();
    db.execute(
        "INSERT INTO zerostack_effects (workspace, id, sequence, ordinal, channel, key, scope, session, cell, intent,
             payload, state, attempts, unknown_count, epoch, evidence, detail, event, updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, 0, 0, NULL, ?13, NULL, ?14)
         ON CONFLICT (workspace, id) DO NOTHING",
        &[
            workspace.into(),
            record.handle.digest.to_hex().into(),
            sequence.into(),
            ordinal.into(),
            record.effect.as_str().into(),
            record.key.as_str().into(),
            word(record.scope).into(),
            record.session.as_str().into(),
            record.cell.as_str().into(),
            record.intent.to_hex().into(),
            json_text(&payload)?.into(),
            record.state.as_str().into(),
            record.detail.clone().into(),
            now.into(),
        ],
    )
    .map(drop)
}

/// Makes an intent of what the store keeps.
pub(super) fn read_intent(bytes: &[u8]) -> std::result::Result<EffectIntent, String> {
    let intent: EffectIntent = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    if intent.schema == zero_contracts::effect::INTENT_SCHEMA {
        Ok(intent)
    } else {
        Err(format!("its schema is `{}`", intent.schema))
    }
}
