//! What effects of one batch have to do with one another.
//!
//! Whether an effect was carried out shows in the staging directory if it has a temporary, and in the tree otherwise. But
//! names that a batch uses again look alike at different times of it. This module tells where, and what decides there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::OwnedFd;

use zero_contracts::{Error, WorkspacePath};

use crate::engine::Shared;
use crate::record::Effect;
use crate::tree::io;

/// The effects of a batch, by their index, that the tree may seem to show before they are carried out: renames from and to
/// places that both mean something else since the batch began, and modes of such places.
///
/// Each of them has a mark in the staging directory, made just before the effect (when all that comes before it is there)
/// and removed when it is undone (before anything that comes before it is). So only while the mark is there the tree is
/// asked, and then it is either as just before the effect or as just after it.
pub(crate) fn marked(effects: &[Effect]) -> HashSet<usize> {
    let mut touched: HashSet<WorkspacePath> = HashSet::new();
    let mut found = HashSet::new();
    for (at, effect) in effects.iter().enumerate() {
        let means_something_else = |path: &WorkspacePath| {
            let mut place = Some(path.clone());
            while let Some(path) = place {
                if touched.contains(&path) {
                    return true;
                }
                place = path.parent();
            }
            false
        };
        match effect {
            Effect::Rename { from, to, .. } => {
                if means_something_else(from) && means_something_else(to) {
                    found.insert(at);
                }
                touched.extend([from.clone(), to.clone()]);
            }
            Effect::Chmod { path, .. } => {
                if means_something_else(path) {
                    found.insert(at);
                }
                touched.insert(path.clone());
            }
            Effect::Create { path, .. } | Effect::Replace { path, .. } | Effect::Remove { path, .. } => {
                touched.insert(path.clone());
            }
            Effect::Captured { .. } => {}
        }
    }
    found
}

/// The name of an effect's mark in the staging directory.
pub(crate) fn marker_name(at: usize) -> Vec<u8> {
    format!("{at}.begun").into_bytes()
}

/// Makes the mark of an effect.
pub(crate) fn mark(shared: &Shared, staging: &OwnedFd, at: usize, path: &WorkspacePath) -> Result<(), Error> {
    use std::os::fd::AsFd;
    let made = shared.seam.create(staging.as_fd(), &marker_name(at), 0o600);
    made.map(drop).map_err(|e| io(&e, "marking", path))
}

/// The temporaries of the directories above each path that the batch itself made, by the index of what it makes there. A
/// directory that is back in the staging directory, or never left it, holds what was made in it, and what is at the path
/// is something else, however alike it looks.
pub(super) fn made_in(effects: &[Effect]) -> HashMap<usize, Vec<u32>> {
    let mut directories: BTreeMap<&WorkspacePath, u32> = BTreeMap::new();
    let mut found = HashMap::new();
    for (at, effect) in effects.iter().enumerate() {
        match effect {
            Effect::Create { path, temp, after } => {
                let mut above = Vec::new();
                let mut parent = path.parent();
                while let Some(directory) = parent {
                    above.extend(directories.get(&directory));
                    parent = directory.parent();
                }
                if !above.is_empty() {
                    found.insert(at, above);
                }
                if after.is_directory() {
                    directories.insert(path, *temp);
                }
            }
            Effect::Rename { from: path, .. } | Effect::Remove { path, .. } => {
                directories.retain(|directory, _| !directory.is_within(path));
            }
            _ => {}
        }
    }
    found
}

/// What a rename depends on earlier in its batch. From what is in the tree alone a rename of something that was made
/// just before, to a place that was freed just before, looks the same when none of it has happened yet.
#[derive(Default)]
pub(super) struct Tie {
    /// The temporary of what is moved, if the batch made it.
    pub made: Option<u32>,
    /// The temporary under which what was at the target waits, if the batch removed it.
    pub removed: Option<u32>,
    /// Whether either path was touched before in the batch.
    pub tied: bool,
}

/// The ties of the renames of a batch, by their index.
pub(super) fn ties(effects: &[Effect]) -> HashMap<usize, Tie> {
    let mut last: HashMap<&WorkspacePath, &Effect> = HashMap::new();
    let mut ties = HashMap::new();
    for (at, effect) in effects.iter().enumerate() {
        match effect {
            Effect::Create { path, .. } | Effect::Remove { path, .. } => {
                last.insert(path, effect);
            }
            Effect::Rename { from, to, .. } => {
                let (source, target) = (last.get(from), last.get(to));
                let made = match source {
                    Some(Effect::Create { temp, .. }) => Some(*temp),
                    _ => None,
                };
                let removed = match target {
                    Some(Effect::Remove { temp, .. }) => Some(*temp),
                    _ => None,
                };
                let tied = source.is_some() || target.is_some();
                ties.insert(at, Tie { made, removed, tied });
                last.insert(from, effect);
                last.insert(to, effect);
            }
            _ => {}
        }
    }
    ties
}
