//! The channel `appendFile`: one JSON line per effect at the end of a file that the host granted.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zero_contracts::{CancelToken, Epoch, Error, Handle, Result};

use super::channel::{ChannelFuture, DispatchError, EffectCall, EffectChannel, Probed};
use crate::cell::lock;
use crate::record::canonical_json;

/// Appends one JSON line per effect to a file: `{"effect", "epoch", "handle", "key", "payload"}`. Evidence is where the
/// line lies: `{path, offset, bytes}`.
///
/// The file is locked (flock) while it is looked at or changed, a handle that is in it already is not appended again, and
/// an epoch older than the newest line's is refused. So its effects happen exactly once, as long as nobody else rewrites
/// it. A line torn by a crash stays, ended by a line break, and counts for nothing. The cost of an append does not grow
/// with the file: what was read is remembered while the channel lives.
pub struct AppendFile {
    path: PathBuf,
    known: Mutex<Known>,
}

/// What the file is known to hold.
#[derive(Default)]
struct Known {
    /// Device and inode of the file that was read.
    file: (u64, u64),
    /// How far it was read: the start of a line.
    upto: u64,
    /// Whether a line without its line break follows.
    unended: bool,
    lines: HashMap<Handle, (u64, u64)>,
    epoch: Epoch,
}

#[derive(Serialize, Deserialize)]
struct Line<P> {
    effect: String,
    epoch: Epoch,
    handle: Handle,
    key: String,
    payload: P,
}

impl AppendFile {
    /// Grants a file, which is made at the first effect if it is absent.
    ///
    /// # Errors
    /// `invalid_input` unless the path is absolute.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        if !path.is_absolute() {
            return Err(
                Error::invalid("the file of a channel `appendFile` is named by an absolute path")
                    .with_path(path.display()),
            );
        }
        Ok(Self {
            path,
            known: Mutex::default(),
        })
    }

    /// Opens and locks the file and reads what is new in it.
    fn locked(&self, known: &mut Known, create: bool) -> std::io::Result<Option<File>> {
        let file = match File::options().read(true).append(true).create(create).open(&self.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        file.lock()?;
        let data = file.metadata()?;
        let same = known.file == (data.dev(), data.ino()) && known.upto <= data.len();
        if !same {
            *known = Known {
                file: (data.dev(), data.ino()),
                ..Known::default()
            };
        }
        let mut reader = BufReader::new(&file);
        reader.seek(SeekFrom::Start(known.upto))?;
        let mut line = Vec::new();
        loop {
            line.clear();
            let bytes = reader.read_until(b'\n', &mut line)? as u64;
            known.unended = !line.is_empty() && line.last() != Some(&b'\n');
            // Lines of others count for nothing; neither does a torn one, unless only its line break is missing.
            if let Ok(read) = serde_json::from_slice::<Line<serde::de::IgnoredAny>>(&line) {
                known.lines.entry(read.handle).or_insert((known.upto, bytes));
                known.epoch = known.epoch.max(read.epoch);
            }
            if line.last() != Some(&b'\n') {
                return Ok(Some(file));
            }
            known.upto += bytes;
        }
    }

    fn evidence(&self, (offset, bytes): (u64, u64)) -> Value {
        json!({ "path": self.path.display().to_string(), "offset": offset, "bytes": bytes })
    }

    fn append(&self, effect: &EffectCall) -> std::result::Result<Value, DispatchError> {
        let not_sent = |e: &dyn std::fmt::Display| DispatchError::NotSent(format!("{}: {e}", self.path.display()));
        let mut known = lock(&self.known);
        let file = self.locked(&mut known, true).map_err(|e| not_sent(&e))?;
        let Some(mut file) = file else {
            return Err(not_sent(&"its directory does not exist"));
        };
        if let Some(place) = known.lines.get(&effect.handle) {
            return Ok(self.evidence(*place));
        }
        if effect.epoch < known.epoch {
            return Err(not_sent(&format_args!(
                "epoch {} is over: epoch {} has written",
                effect.epoch, known.epoch
            )));
        }
        let line = Line {
            effect: effect.effect.clone(),
            epoch: effect.epoch,
            handle: effect.handle,
            key: effect.key.clone(),
            payload: &effect.payload,
        };
        let mut line = canonical_json(&line).map_err(|e| not_sent(&e))?;
        line.push(b'\n');
        let length = file.metadata().map_err(|e| not_sent(&e))?.len();
        let mut bytes = Vec::with_capacity(line.len() + 1);
        if known.unended {
            // What a crash tore off must not swallow this line.
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(&line);
        let place = (length + (bytes.len() - line.len()) as u64, line.len() as u64);
        match file.write_all(&bytes).and_then(|()| file.sync_data()) {
            Ok(()) => Ok(self.evidence(place)),
            // A part, or all of it, may be there; reading tells.
            Err(e) => match self.found(&mut known, effect) {
                Probed::Sent(_) | Probed::Unknown(_) => {
                    Err(DispatchError::Unknown(format!("{}: {e}", self.path.display())))
                }
                Probed::NotSent => Err(not_sent(&e)),
            },
        }
    }

    fn found(&self, known: &mut Known, effect: &EffectCall) -> Probed {
        match self.locked(known, false) {
            Ok(_) => match known.lines.get(&effect.handle) {
                Some(place) => Probed::Sent(self.evidence(*place)),
                None => Probed::NotSent,
            },
            Err(e) => Probed::Unknown(format!("{}: {e}", self.path.display())),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl EffectChannel for AppendFile {
    fn dispatch<'a>(
        &'a self,
        effect: &'a EffectCall,
        _cancel: &'a CancelToken,
    ) -> ChannelFuture<'a, std::result::Result<Value, DispatchError>> {
        Box::pin(async move { self.append(effect) })
    }

    fn probe<'a>(&'a self, effect: &'a EffectCall, _cancel: &'a CancelToken) -> Option<ChannelFuture<'a, Probed>> {
        Some(Box::pin(async move {
            let mut known = lock(&self.known);
            let found = self.found(&mut known, effect);
            if matches!(found, Probed::NotSent) && !self.path.exists() {
                // Never made, or taken away with everything in it: nobody can tell which.
                let made = known.file != (0, 0);
                *known = Known::default();
                if made {
                    return Probed::Unknown(format!("{} was removed", self.path.display()));
                }
            }
            found
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zero_contracts::{CellId, Digest, SessionName};

    fn effect(n: u64, epoch: u64) -> EffectCall {
        EffectCall {
            handle: Handle::effect(Digest::of(&n.to_le_bytes())),
            effect: "notes".into(),
            key: format!("k{n}"),
            payload: json!({ "n": n }),
            epoch: Epoch(epoch),
            attempt: 1,
            session: SessionName::default(),
            cell: CellId::new("c").unwrap(),
            directory: PathBuf::new(),
        }
    }

    fn probe(channel: &AppendFile, effect: &EffectCall) -> Probed {
        let token = CancelToken::new();
        let probe = channel.probe(effect, &token).unwrap();
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(probe)
    }

    #[test]
    fn a_repeated_handle_and_an_old_epoch_are_refused_even_by_another_channel_on_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.jsonl");
        let (one, two) = (AppendFile::new(&path).unwrap(), AppendFile::new(&path).unwrap());
        assert_eq!(probe(&one, &effect(1, 1)), Probed::NotSent);
        let first = one.append(&effect(1, 1)).unwrap();
        assert_eq!(two.append(&effect(1, 2)).unwrap(), first);
        two.append(&effect(2, 5)).unwrap();
        assert!(matches!(one.append(&effect(3, 4)), Err(DispatchError::NotSent(_))));
        one.append(&effect(3, 5)).unwrap();
        assert_eq!(probe(&two, &effect(1, 9)), Probed::Sent(first));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_torn_line_counts_for_nothing_and_harms_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.jsonl");
        let channel = AppendFile::new(&path).unwrap();
        channel.append(&effect(1, 1)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        channel.append(&effect(2, 1)).unwrap();
        let both = std::fs::read(&path).unwrap();
        for cut in whole.len()..both.len() {
            std::fs::write(&path, &both[..cut]).unwrap();
            let channel = AppendFile::new(&path).unwrap();
            let probed = probe(&channel, &effect(2, 1));
            // Without its line break alone it says everything.
            assert_eq!(
                matches!(probed, Probed::Sent(_)),
                cut == both.len() - 1,
                "{cut}: {probed:?}"
            );
            channel.append(&effect(2, 1)).unwrap();
            channel.append(&effect(3, 1)).unwrap();
            let lines = std::fs::read_to_string(&path).unwrap();
            for n in 1..=3 {
                let whole =
                    |line: &&str| serde_json::from_str::<Value>(line).is_ok_and(|line| line["key"] == format!("k{n}"));
                assert_eq!(lines.lines().filter(whole).count(), 1, "{cut}: {n}\n{lines}");
                let again = AppendFile::new(&path).unwrap();
                assert!(matches!(probe(&again, &effect(n, 1)), Probed::Sent(_)), "{cut}: {n}");
            }
        }
    }

    #[test]
    fn a_file_that_was_taken_away_is_unknown_rather_than_not_sent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.jsonl");
        let channel = AppendFile::new(&path).unwrap();
        channel.append(&effect(1, 1)).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(probe(&channel, &effect(1, 1)), Probed::Unknown(_)));
        assert!(AppendFile::new("relative").is_err());
    }
}
