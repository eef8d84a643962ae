//! A read-only mount whose functions are JavaScript's: each look at it is a question to the event loop.
//!
//! A host says what lies in a directory and gives the content of a file; everything else a view must do is made of these two.
//! A mount has no symlinks: what leads where is the host's business.

use std::collections::VecDeque;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use zerostack::contracts::find::{Freshness, Skipped};
use zerostack::contracts::read::EntryKind;
use zerostack::contracts::source::{Entry, FileContent, Stamp, WalkScope};
use zerostack::contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

use crate::functions::Functions;

/// How long an answer is waited for if the options do not say.
const TIMEOUT: Duration = Duration::from_secs(10);

const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// A further tree that cells see.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MountOptions {
    #[serde(rename = "list")]
    _list: bool,
    #[serde(rename = "read")]
    _read: bool,
    /// How long an answer is waited for; 10,000 if absent.
    timeout_ms: Option<u64>,
}

impl MountOptions {
    /// Gives the view of the mount with this name.
    pub fn view(self, name: String, functions: &Functions) -> impl SourceView + use<> {
        Mount {
            functions: functions.clone(),
            name,
            timeout: self.timeout_ms.map_or(TIMEOUT, Duration::from_millis),
        }
    }
}

struct Mount {
    functions: Functions,
    name: String,
    timeout: Duration,
}

/// What `index.js` makes of what a function of the mount gave or threw.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer<T> {
    /// What it gave; nothing where there is nothing.
    Given(Option<T>),
    /// It threw.
    Failed {
        /// A kind of error, if the exception had one.
        kind: Value,
        /// Its message.
        detail: String,
    },
}

/// What lies in a directory of the mount.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Listed {
    name: String,
    kind: ListedKind,
    bytes: Option<u64>,
    version: Option<Version>,
    #[serde(default)]
    ignored: bool,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum ListedKind {
    File,
    Directory,
}

/// What a host calls a state of a file's content.
#[derive(Deserialize)]
#[serde(untagged)]
enum Version {
    Number(serde_json::Number),
    Text(String),
}

/// A file's content as `index.js` gives it.
#[derive(Deserialize)]
struct Given {
    base64: String,
    version: Option<Version>,
}

/// For what comes without a token of its own. A frame waits for its calls for longer than this.
fn patience() -> CancelToken {
    CancelToken::with_timeout(TIMEOUT)
}

fn missing(path: &WorkspacePath) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no `{path}`")).with_path(path)
}

/// The identity of a file's content: that of its version, or, where the host names none, of what else is known.
fn stamp(path: &WorkspacePath, version: Option<&Version>, else_known: &[u8]) -> Stamp {
    let known = match version {
        Some(Version::Number(number)) => format!("number {number}").into_bytes(),
        Some(Version::Text(text)) => format!("text {text}").into_bytes(),
        None => else_known.to_vec(),
    };
    let digest = Digest::of(&[path.as_bytes(), b"\0", &known].concat());
    let (half, _) = digest.as_bytes().split_at(16);
    Stamp {
        value: half.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)),
        settled: version.is_some(),
    }
}

fn directory(path: WorkspacePath) -> Entry {
    let stamp = stamp(&path, None, b"directory");
    Entry {
        path,
        kind: EntryKind::Directory,
        bytes: 0,
        mode: DIRECTORY_MODE,
        stamp,
    }
}

impl Mount {
    /// Asks one of the two functions; none if there is nothing at the path.
    fn ask<T: DeserializeOwned>(
        &self,
        function: &str,
        path: &WorkspacePath,
        token: &CancelToken,
    ) -> Result<Option<T>, Error> {
        token.check()?;
        // A name outside UTF-8 is none that JavaScript could have given.
        let Ok(text) = std::str::from_utf8(path.as_bytes()) else {
            return Ok(None);
        };
        let question = json!({ "mount": self.name, "path": text });
        let patience = token.child(Instant::now().checked_add(self.timeout));
        let answer = self.functions.ask(function, question, &patience).map_err(|why| {
            let own = why.kind == ErrorKind::Deadline && token.check().is_ok();
            if own {
                self.wrong(
                    path,
                    format!("{function} gave no answer within {} ms", self.timeout.as_millis()),
                )
                .retryable(true)
            } else {
                why
            }
        })?;
        let answer = answer.map_err(|why| self.wrong(path, why))?;
        match serde_json::from_str(&answer) {
            Ok(Answer::Given(given)) => Ok(given),
            Ok(Answer::Failed { kind, detail }) => {
                let kind = serde_json::from_value(kind).unwrap_or(ErrorKind::Io);
                Err(Error::new(kind, format!("the mount `{}`: {detail}", self.name)).with_path(path))
            }
            Err(why) => Err(self.wrong(path, format!("{function} gave what it must not: {why}"))),
        }
    }

    fn wrong(&self, path: &WorkspacePath, why: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Io, format!("the mount `{}`: {why}", self.name)).with_path(path)
    }

    /// The entries of a directory in order of their names' bytes, each with whether it is ignored; none if it is no directory.
    fn listed(&self, path: &WorkspacePath, token: &CancelToken) -> Result<Option<Vec<(Entry, bool)>>, Error> {
        let Some(listed) = self.ask::<Vec<Listed>>("list", path, token)? else {
            return Ok(None);
        };
        let mut entries = Vec::with_capacity(listed.len());
        for Listed {
            name,
            kind,
            bytes,
            version,
            ignored,
        } in listed
        {
            let at = path
                .join(name.as_bytes())
                .map_err(|why| self.wrong(path, format!("list gave an entry whose name is none: {}", why.detail)))?;
            let entry = match (kind, bytes) {
                (ListedKind::Directory, _) => directory(at),
                (ListedKind::File, None) => {
                    return Err(self.wrong(&at, "list gave a file without `bytes`, its size"));
                }
                (ListedKind::File, Some(bytes)) => Entry {
                    stamp: stamp(&at, version.as_ref(), &bytes.to_le_bytes()),
                    path: at,
                    kind: EntryKind::File,
                    bytes,
                    mode: FILE_MODE,
                },
            };
            entries.push((entry, ignored));
        }
        entries.sort_unstable_by(|(a, _), (b, _)| a.path.cmp(&b.path));
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0.path == pair[1].0.path) {
            return Err(self.wrong(&pair[0].0.path, "list gave this name twice"));
        }
        Ok(Some(entries))
    }

    fn look_up(&self, path: &WorkspacePath, token: &CancelToken) -> Result<Option<Entry>, Error> {
        let Some(parent) = path.parent() else {
            return Ok(Some(directory(path.clone())));
        };
        let entries = self.listed(&parent, token)?.unwrap_or_default();
        Ok(entries
            .into_iter()
            .map(|(entry, _)| entry)
            .find(|entry| entry.path == *path))
    }

    /// As [`Mount::listed`], and says why there is nothing.
    fn list_known(&self, path: &WorkspacePath, token: &CancelToken) -> Result<Vec<(Entry, bool)>, Error> {
        match self.listed(path, token)? {
            Some(entries) => Ok(entries),
            None if path.is_root() => Ok(Vec::new()),
            None => match self.look_up(path, token)? {
                Some(entry) if entry.kind != EntryKind::Directory => {
                    Err(Error::invalid(format!("`{path}` is not a directory")).with_path(path))
                }
                _ => Err(missing(path)),
            },
        }
    }
}

impl SourceView for Mount {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        self.look_up(path, &patience())
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        self.entry(path)
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        let entries = self.list_known(path, &patience())?;
        Ok(entries.into_iter().map(|(entry, _)| entry).collect())
    }

    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        match self.entry(path)? {
            Some(_) => Err(Error::invalid(format!("`{path}` is not a symlink")).with_path(path)),
            None => Err(missing(path)),
        }
    }

    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error> {
        let Some(Given { base64, version }) = self.ask("read", path, token)? else {
            return Err(match self.look_up(path, token)? {
                Some(entry) if entry.kind == EntryKind::Directory => {
                    Error::invalid(format!("`{path}` is no regular file")).with_path(path)
                }
                _ => missing(path),
            });
        };
        let bytes = STANDARD
            .decode(base64)
            .map_err(|why| self.wrong(path, format!("read gave bytes that are none: {why}")))?;
        let digest = Digest::of(&bytes);
        Ok(FileContent {
            entry: Entry {
                path: path.clone(),
                kind: EntryKind::File,
                bytes: bytes.len() as u64,
                mode: FILE_MODE,
                stamp: stamp(path, version.as_ref(), digest.as_bytes()),
            },
            bytes: bytes.into(),
            digest,
        })
    }

    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error> {
        Ok(Box::new(Cursor::new(self.read(path, &patience())?.bytes)))
    }

    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error> {
        let start = self
            .look_up(&scope.start, token)?
            .ok_or_else(|| missing(&scope.start))?;
        if start.kind != EntryKind::Directory {
            let _ = visit(start);
            return Ok(Vec::new());
        }
        let mut skipped = Vec::new();
        let mut open = VecDeque::from([(start.path, 1)]);
        while let Some((at, depth)) = open.pop_front() {
            let entries = match self.list_known(&at, token) {
                Ok(entries) => entries,
                Err(why) if at == scope.start => return Err(why),
                Err(why) => {
                    token.check()?;
                    skipped.push(Skipped {
                        path: at.to_string(),
                        why: format!("unreadable: {}", why.detail),
                    });
                    continue;
                }
            };
            for (entry, ignored) in entries {
                if entry.path.file_name() == Some(b".git") || (ignored && !scope.ignored) {
                    continue;
                }
                let is_directory = entry.kind == EntryKind::Directory;
                if is_directory && scope.depth.is_none_or(|most| depth < most) {
                    open.push_back((entry.path.clone(), depth + 1));
                }
                if (scope.directories || !is_directory) && visit(entry).is_break() {
                    return Ok(skipped);
                }
            }
        }
        Ok(skipped)
    }

    fn freshness(&self) -> Freshness {
        Freshness::Present
    }
}
