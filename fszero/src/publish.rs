//! Publication: planned effects become changes of the live tree, journalled before and verified after each.
//!
//! What has to be durable before what (durability `power`; in parentheses why). Flushes that stand together are waited
//! for together:
//! 1. the journal's intents, the bytes of every new file, and the staging directory that they are in with its name, before
//!    the first effect (else a crash leaves an effect that nobody knows of, or a path could hold a torn file, or what was
//!    displaced be lost with its directory);
//! 2. every directory entry and kept preimage, before the commit record (a record found after a crash means that the tree
//!    is whole, and only temporaries are left to remove). A *plain* batch, which only makes and replaces files, leaves
//!    this to the flush of the record: recovery carries out again what was lost (see `recover::forward`);
//! 3. the commit record, before the caller hears of success and before a displaced inode is removed.
//!
//! The intents are *written* before anything is made in the tree, so that the death of the process leaves nothing unknown.
//! A loss of power may leave a staging directory whose intents it took; its name tells (see `recover`).
//!
//! The *preimage* that a crash needs is the displaced inode itself: an exchange or a rename never destroys it. Its bytes
//! also go to the journal (small files, with the intents) or become an object (large ones, while they are verified), for
//! a later undo.

mod directories;
mod effects;
mod temporaries;

use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use zero_contracts::response::PathConflict;
use zero_contracts::{CancelToken, CellId, Digest, Epoch, Error, ErrorKind, SessionName, WorkspacePath};

use crate::engine::Shared;
use crate::journal::Written;
use crate::node::Node;
use crate::order::Unflushed;
use crate::overlay::Body;
use crate::private::Private;
use crate::record::{Batch, Effect, Inline, Record};
use crate::restore;
use crate::round::Round;
use crate::seam::Rename;
use crate::stage::Planned;
use crate::store::{INLINE_BYTES, Unsynced};
use crate::tree::{IDLE_SUFFIX, STAGING_PREFIX, io};

pub(crate) use directories::Directories;

/// Preimages inside one record of the journal take at most this much; the rest become objects.
const INLINE_TOTAL: u64 = 8 << 20;

/// The name of a batch's staging directory, directly under the root.
pub(crate) fn staging_name(tag: u64) -> Vec<u8> {
    [STAGING_PREFIX, format!("{tag:016x}").as_bytes()].concat()
}

pub(crate) fn staging_path(tag: u64) -> WorkspacePath {
    WorkspacePath::from_raw(&staging_name(tag)).unwrap_or_default()
}

/// The name of a staging directory that nothing depends on. It has this name until every temporary is complete, and
/// again before the first one is removed once everything is back: restoration takes a temporary that is missing under
/// the other name for one whose effect was carried out.
pub(crate) fn idle_name(tag: u64) -> Vec<u8> {
    [&staging_name(tag)[..], IDLE_SUFFIX].concat()
}

pub(crate) fn idle_path(tag: u64) -> WorkspacePath {
    WorkspacePath::from_raw(&idle_name(tag)).unwrap_or_default()
}

/// A temporary's name inside the staging directory.
pub(crate) fn temp_name(temp: u32) -> Vec<u8> {
    temp.to_string().into_bytes()
}

/// What is to be published of one effect.
struct Step {
    effect: Effect,
    body: Option<Body>,
    keep: Option<WorkspacePath>,
}

pub(crate) struct Publication<'a> {
    pub shared: &'a Shared,
    pub cell: &'a CellId,
    pub session: &'a SessionName,
    /// Where commands left files that need not be made again.
    pub private: Option<&'a Private>,
    pub epoch: Epoch,
    pub token: &'a CancelToken,
}

/// What the commit record's flush makes durable, too.
#[derive(Default)]
pub(crate) struct Owed {
    pub round: Round,
    /// The objects among it.
    pub objects: Unsynced,
}

/// Why an effect was not published, with what is known of both versions.
pub(crate) struct Refusal {
    pub error: Error,
    pub conflict: Option<PathConflict>,
}

impl From<Error> for Box<Refusal> {
    fn from(error: Error) -> Self {
        Box::new(Refusal { error, conflict: None })
    }
}

impl Publication<'_> {
    /// Publishes a batch. On an error the caller takes back what the journal says.
    ///
    /// The batch goes to `begun` once it is journalled. Whoever passes `owed` writes the commit record next, and flushes
    /// what is found there together with it.
    pub fn publish(
        &self,
        planned: impl Iterator<Item = Planned>,
        begun: &mut Vec<Batch>,
        owed: Option<&mut Owed>,
    ) -> Result<(), Box<Refusal>> {
        let (steps, mut inline) = self.prepare(planned)?;
        if steps.is_empty() {
            return Ok(());
        }
        self.token.check()?;
        let pending = self.shared.pending_inline(&mut inline)?;
        let mut batch = Batch {
            tag: 0,
            effects: steps.iter().map(|s| s.effect.clone()).collect(),
        };
        let written = self.shared.journal.write(|number| {
            batch.tag = self.shared.tag(number);
            vec![Record::Intents {
                cell: self.cell.clone(),
                session: self.session.clone(),
                epoch: self.epoch,
                batch: batch.clone(),
                objects: inline,
            }]
        });
        let written = match written {
            Ok(written) => written,
            Err(e) => {
                pending.give_back(&self.shared.store);
                return Err(e.into());
            }
        };
        let (tag, plain, marked) = (batch.tag, batch.is_plain(), restore::marked(&batch.effects));
        begun.push(batch);
        let staging = match self.make_ready(tag, &steps, &written, &pending.large) {
            Ok(staging) => staging,
            Err(e) => {
                self.shared.journal.retract(&written);
                pending.give_back(&self.shared.store);
                return Err(e.into());
            }
        };
        let mut directories = Directories::new(self.shared);
        directories.mark(&staging)?;
        let mut unflushed = Unflushed::default();
        for (at, step) in steps.iter().enumerate() {
            self.token.check()?;
            if marked.contains(&at) {
                directories.sync()?;
                restore::mark(self.shared, &staging, at, &staging_path(tag))?;
                directories.mark(&staging)?;
                directories.sync()?;
                unflushed = Unflushed::default();
                directories.mark(&staging)?;
            }
            if unflushed.before(&step.effect) {
                directories.sync()?;
                unflushed = Unflushed::default();
                directories.mark(&staging)?;
            }
            self.carry_out(&step.effect, &staging, &mut directories)?;
            unflushed.note(&step.effect);
        }
        if !self.shared.power() {
            return Ok(());
        }
        // What was displaced from a large file became an object on the way.
        let mut late = Owed {
            objects: self.shared.store.take_pending_large(),
            round: Round::default(),
        };
        let gathered = self.shared.store.to_flush(&late.objects, &mut late.round);
        let flushed = gathered.and_then(|()| match owed {
            Some(owed) if plain => {
                directories.hand_over(&mut late.round)?;
                *owed = std::mem::take(&mut late);
                Ok(())
            }
            _ => directories.sync_with(&mut late.round),
        });
        if let Err(e) = flushed {
            self.shared.store.put_back(late.objects);
            return Err(e.into());
        }
        Ok(())
    }

    /// Makes the staging directory with all temporaries, and everything that the first effect needs durable.
    ///
    /// Where something is made and something else goes away, the entries of the staging directory have to be durable
    /// before its name is: then what was at a path may look like what was to be made there, and from that name on a
    /// temporary that is missing has been put in its place.
    fn make_ready(
        &self,
        tag: u64,
        steps: &[Step],
        written: &Written,
        objects: &Unsynced,
    ) -> Result<Arc<OwnedFd>, Error> {
        let (seam, power) = (&self.shared.seam, self.shared.power());
        let flushing = |e: std::io::Error| io(&e, "flushing", &staging_path(tag));
        let staging = self.make_staging(tag)?;
        let mut round = Round::default();
        if power {
            self.shared.journal.to_flush(written, &mut round).map_err(flushing)?;
            self.shared.store.to_flush(objects, &mut round)?;
        }
        self.make_temporaries(steps, &staging, &mut round)?;
        if power {
            round.directory(Arc::clone(&staging));
        }
        let any = |matches: fn(&Effect) -> bool| steps.iter().any(|step| matches(&step.effect));
        let made = any(|effect| matches!(effect, Effect::Create { .. }));
        let freed = any(|effect| matches!(effect, Effect::Rename { .. } | Effect::Remove { .. }));
        if made && freed {
            round.flush(seam).map_err(flushing)?;
        }
        let root = self.shared.tree.root();
        seam.rename(root, &idle_name(tag), root, &staging_name(tag), Rename::NoReplace)
            .map_err(|e| io(&e, "naming", &staging_path(tag)))?;
        if power {
            round.directory(root.try_clone_to_owned().map_err(flushing)?);
            round.flush(seam).map_err(flushing)?;
        }
        Ok(staging)
    }

    fn prepare(&self, planned: impl Iterator<Item = Planned>) -> Result<(Vec<Step>, Vec<Inline>), Box<Refusal>> {
        let mut steps = Vec::new();
        let mut inline = Vec::new();
        let mut room = INLINE_TOTAL;
        for planned in planned {
            let temp = steps.len() as u32;
            let mut preimage = |node: &Node, body: Option<&Body>| -> Result<(), Box<Refusal>> {
                let (Node::File { digest, bytes, .. }, Some(body)) = (node, body) else {
                    return Ok(());
                };
                if *bytes > INLINE_BYTES || *bytes > room {
                    return Ok(());
                }
                let mut content = Vec::with_capacity(*bytes as usize);
                let unreadable = |e: std::io::Error| io(&e, "reading what is to be replaced", &WorkspacePath::root());
                match self.shared.open_body(body, digest) {
                    Ok(mut source) => source.read_to_end(&mut content).map_err(unreadable)?,
                    // Somebody removed it since: the effect itself will find out.
                    Err(e) if e.kind == ErrorKind::NotFound => return Ok(()),
                    Err(e) => return Err(e.into()),
                };
                if Digest::of(&content) == *digest {
                    room -= *bytes;
                    inline.push(Inline {
                        digest: *digest,
                        bytes: content,
                    });
                }
                Ok(())
            };
            steps.push(match planned {
                Planned::Nothing => continue,
                Planned::Create { path, after, body } => Step {
                    effect: Effect::Create { path, temp, after },
                    body,
                    keep: None,
                },
                Planned::Replace { before, after, .. } if before == after => continue,
                Planned::Replace {
                    path,
                    before,
                    before_body,
                    after,
                    body,
                    keep,
                } => {
                    preimage(&before, Some(&before_body))?;
                    let keep = match &before_body {
                        Body::Live(origin) if keep => Some(origin.clone()),
                        _ => None,
                    };
                    Step {
                        effect: Effect::Replace {
                            path,
                            temp,
                            before,
                            after,
                        },
                        body: Some(body),
                        keep,
                    }
                }
                Planned::Remove {
                    path,
                    before,
                    before_body,
                } => {
                    preimage(&before, before_body.as_ref())?;
                    Step {
                        effect: Effect::Remove { path, temp, before },
                        body: None,
                        keep: None,
                    }
                }
                Planned::Rename { from, to, before } => Step {
                    effect: Effect::Rename { from, to, before },
                    body: None,
                    keep: None,
                },
                Planned::Chmod { before, after, .. } if before == after => continue,
                Planned::Chmod { path, before, after } => Step {
                    effect: Effect::Chmod { path, before, after },
                    body: None,
                    keep: None,
                },
            });
        }
        // What a later undo shows as this transaction's version, where a file was changed since; in the room that is left.
        for step in &steps {
            let (Effect::Create { after, .. } | Effect::Replace { after, .. }, Some(Body::Memory(content))) =
                (&step.effect, &step.body)
            else {
                continue;
            };
            let bytes = content.len() as u64;
            if let (Some(digest), true) = (after.digest(), bytes <= INLINE_BYTES && bytes <= room) {
                room -= bytes;
                inline.push(Inline {
                    digest,
                    bytes: content.to_vec(),
                });
            }
        }
        Ok((steps, inline))
    }
}
