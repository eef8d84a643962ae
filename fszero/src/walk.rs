//! Visiting a tree from several threads, under ignore rules, directory by directory and by descriptor.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::Dir;
use zero_contracts::find::Skipped;
use zero_contracts::read::EntryKind;
use zero_contracts::source::{Entry, WalkScope};
use zero_contracts::{CancelToken, Error, ErrorKind, SourceView, WorkspacePath};

use crate::node::Meta;
use crate::overlay::{Located, Slot};
use crate::rules::{EXCLUDE, Overrides, RULE_BYTES, RULE_FILES, Rules};
use crate::snapshot::SnapshotView;
use crate::tree::{missing, os, stat_at};
use crate::view::View;

/// More threads than this do not pay for `stat`.
const THREADS: usize = 8;

/// An entry as a walk meets it, with what `lstat` told where it is live.
pub(crate) struct Met {
    pub entry: Entry,
    pub meta: Option<Meta>,
    /// Whether ignore rules exclude it, or a directory above it.
    pub ignored: bool,
}

/// What a walk wants to see.
#[derive(Clone, Copy)]
pub(crate) struct Want<'a> {
    /// Ignored entries, too.
    pub ignored: bool,
    /// `.git` itself, too.
    pub git: bool,
    /// Rule files count as not ignored, even where they ignore themselves: whoever wants to tell later what the rules were
    /// must have them.
    pub rule_files: bool,
    /// Where the rules come from, if not from the tree that is walked.
    pub rules: Option<&'a SnapshotView>,
    /// Rule files whose text is another than what is found there.
    pub overrides: Option<&'a Overrides>,
    /// How many levels below the start are entered.
    pub depth: Option<usize>,
}

/// Gets what a walk meets, a piece of one directory at a time.
type Visit<'a> = dyn Fn(Vec<Met>) -> ControlFlow<()> + Sync + 'a;

/// Entries of a directory are visited at most so many at a time.
const PIECE: usize = 256;

struct Task {
    path: WorkspacePath,
    rules: Rules,
    ignored: bool,
    depth: usize,
}

struct Queue {
    tasks: Vec<Task>,
    busy: usize,
    stop: bool,
    error: Option<Error>,
    skipped: Vec<Skipped>,
}

struct Walk<'a> {
    view: &'a View,
    want: Want<'a>,
    token: &'a CancelToken,
    visit: &'a Visit<'a>,
    queue: Mutex<Queue>,
    ready: Condvar,
}

/// The walk of the contracts.
pub(crate) fn walk(
    view: &View,
    scope: &WalkScope,
    token: &CancelToken,
    visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
) -> Result<Vec<Skipped>, Error> {
    let start = view.canonical(&scope.start, false)?;
    let want = Want {
        ignored: scope.ignored,
        git: false,
        rule_files: false,
        rules: None,
        overrides: None,
        depth: scope.depth,
    };
    let given = (start != scope.start).then(|| scope.start.clone());
    run(view, &start, want, token, &|piece| {
        for mut met in piece {
            if met.entry.kind == EntryKind::Directory && !scope.directories {
                continue;
            }
            if let Some(given) = &given {
                met.entry.path = crate::overlay::rebase(&met.entry.path, &start, given);
            }
            visit(met.entry)?;
        }
        ControlFlow::Continue(())
    })
}

/// Visits everything below a canonical path; a file is visited itself.
pub(crate) fn run(
    view: &View,
    start: &WorkspacePath,
    want: Want<'_>,
    token: &CancelToken,
    visit: &Visit<'_>,
) -> Result<Vec<Skipped>, Error> {
    token.check()?;
    let Some(entry) = view.look(start)? else {
        return Err(missing(start));
    };
    if entry.kind != EntryKind::Directory {
        let _ = visit(vec![Met {
            entry,
            meta: None,
            ignored: false,
        }]);
        return Ok(Vec::new());
    }
    let source = want.rules.map_or(view as &dyn SourceView, |rules| rules);
    let rules = rules_above(source, want.overrides, start, token);
    if want.depth == Some(0) {
        return Ok(Vec::new());
    }
    let first = Task {
        path: start.clone(),
        rules,
        ignored: false,
        depth: 1,
    };
    let queue = Queue {
        tasks: vec![first],
        busy: 0,
        stop: false,
        error: None,
        skipped: Vec::new(),
    };
    let walk = Walk {
        view,
        want,
        token,
        visit,
        queue: Mutex::new(queue),
        ready: Condvar::new(),
    };
    // The first directory alone tells whether threads are worth their start.
    walk.step(true);
    if !walk.lock().tasks.is_empty() {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| walk.work());
            }
            walk.work();
        });
    }
    let mut queue = walk.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    match queue.error.take() {
        Some(error) => Err(error),
        None => {
            queue.skipped.sort_by(|a, b| a.path.cmp(&b.path));
            Ok(queue.skipped)
        }
    }
}

/// The text of a rule file, if it is there and may hold rules. One that cannot be read says nothing.
pub(crate) fn rule_text(view: &dyn SourceView, path: &WorkspacePath, token: &CancelToken) -> Option<Vec<u8>> {
    // Like git, a symlink is not followed: what it leads to may change without the rule file.
    view.entry(path)
        .ok()
        .flatten()
        .filter(|entry| entry.kind == EntryKind::File && entry.bytes <= RULE_BYTES)?;
    view.read(path, token).ok().map(|content| content.bytes.to_vec())
}

fn rule_texts(
    view: &dyn SourceView,
    directory: &WorkspacePath,
    present: [bool; 2],
    overrides: Option<&Overrides>,
    token: &CancelToken,
) -> [Option<Vec<u8>>; 2] {
    let mut texts = [None, None];
    for (i, name) in RULE_FILES.iter().enumerate() {
        if let Some(overrides) = overrides.filter(|overrides| !overrides.is_empty())
            && let Ok(path) = directory.join(name)
            && let Some(text) = overrides.get(&path)
        {
            texts[i] = text.clone();
            continue;
        }
        if present[i]
            && let Ok(path) = directory.join(name)
        {
            texts[i] = rule_text(view, &path, token);
        }
    }
    texts
}

/// The rules that hold at a directory, from what stands above it.
fn rules_above(
    view: &dyn SourceView,
    overrides: Option<&Overrides>,
    start: &WorkspacePath,
    token: &CancelToken,
) -> Rules {
    let exclude = WorkspacePath::from_raw(EXCLUDE).unwrap_or_default();
    let exclude = match overrides.and_then(|overrides| overrides.get(&exclude)) {
        Some(text) => text.clone(),
        None => rule_text(view, &exclude, token),
    };
    let mut rules = Rules::root(exclude.as_deref());
    let mut at = WorkspacePath::root();
    for name in start.components() {
        rules = rules.enter(&at, rule_texts(view, &at, [true, true], overrides, token));
        match at.join(name) {
            Ok(next) => at = next,
            Err(_) => break,
        }
    }
    rules
}

impl Walk<'_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while self.step(false) {}
    }

    /// Does one directory; false when there is nothing left for anybody.
    fn step(&self, only_one: bool) -> bool {
        let task = {
            let mut queue = self.lock();
            loop {
                if queue.stop || queue.error.is_some() {
                    return false;
                }
                if let Some(task) = queue.tasks.pop() {
                    queue.busy += 1;
                    break task;
                }
                if queue.busy == 0 || only_one {
                    return false;
                }
                queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        };
        let result = self.token.check().and_then(|()| self.directory(&task));
        let mut queue = self.lock();
        queue.busy -= 1;
        match result {
            Ok((tasks, stop)) => {
                queue.tasks.extend(tasks);
                queue.stop |= stop;
            }
            Err(e) if matches!(e.kind, ErrorKind::Cancelled | ErrorKind::Deadline) => queue.error = Some(e),
            // It vanished while we walked: then it is not there.
            Err(e) if e.kind == ErrorKind::NotFound => {}
            // Who tells what a command did asks of ignored entries only how many changed; others may keep theirs closed.
            Err(_) if self.want.rule_files && task.ignored && !task.path.components().any(|name| name == b".git") => {}
            Err(e) => queue.skipped.push(Skipped {
                path: task.path.to_string(),
                why: format!("unreadable: {}", e.detail),
            }),
        }
        drop(queue);
        self.ready.notify_all();
        true
    }

    /// Visits the entries of one directory; returns the directories to do next, and whether to stop.
    fn directory(&self, task: &Task) -> Result<(Vec<Task>, bool), Error> {
        let mut found = Vec::new();
        let overlay = &self.view.overlay;
        let mut tree = &self.view.shared.tree;
        let origin = match overlay.locate(&task.path) {
            Located::Live(origin) => Some(origin),
            Located::Carried(carried, origin) => {
                tree = carried;
                Some(origin)
            }
            Located::Slot(Slot::Carried { .. }) => overlay.carried_at(&task.path).map(|carried| {
                tree = carried;
                task.path.clone()
            }),
            Located::Slot(Slot::Directory { origin, .. }) => origin.clone(),
            _ => None,
        };
        let fail = |e| os(e, "listing", &task.path);
        let staged = overlay.children(&task.path);
        let mut rule_files = [false; 2];
        let mut note = |name: &[u8]| {
            for (present, rule) in rule_files.iter_mut().zip(RULE_FILES) {
                *present |= name == rule;
            }
        };
        let directory = origin
            .as_ref()
            .map(|origin| tree.directory(origin))
            .transpose()
            .map_err(fail)?;
        if let (Some(directory), Some(origin)) = (&directory, &origin) {
            for entry in Dir::read_from(directory).map_err(fail)? {
                let entry = entry.map_err(fail)?;
                let name = entry.file_name().to_bytes();
                let own = origin.is_root() && self.view.shared.is_own(name);
                if matches!(name, b"." | b"..") || own || (name == b".git" && !self.want.git) {
                    continue;
                }
                note(name);
                found.push(name.to_vec());
            }
            if !staged.is_empty() {
                let names: std::collections::HashSet<_> = staged.iter().filter_map(|(p, _)| p.file_name()).collect();
                found.retain(|name| !names.contains(&name[..]));
            }
        }
        for (path, slot) in &staged {
            if !matches!(slot, Slot::Absent) {
                note(path.file_name().unwrap_or_default());
            }
        }
        let texts = match self.want.rules {
            Some(rules) => rule_texts(rules, &task.path, [true, true], self.want.overrides, self.token),
            None => rule_texts(self.view, &task.path, rule_files, self.want.overrides, self.token),
        };
        let rules = task.rules.enter(&task.path, texts);
        let mut tasks = Vec::new();
        let mut piece = Vec::with_capacity(found.len().min(PIECE));
        let mut each = |entry: Entry, meta: Option<Meta>| {
            let is_directory = entry.kind == EntryKind::Directory;
            let is_rules = self.want.rule_files
                && entry.kind == EntryKind::File
                && entry.path.file_name().is_some_and(|name| RULE_FILES.contains(&name));
            let ignored = task.ignored || (!is_rules && rules.ignores(&entry.path, is_directory));
            if ignored && !self.want.ignored {
                return ControlFlow::Continue(());
            }
            if is_directory && self.want.depth.is_none_or(|most| task.depth < most) {
                tasks.push(Task {
                    path: entry.path.clone(),
                    rules: rules.clone(),
                    ignored,
                    depth: task.depth + 1,
                });
            }
            piece.push(Met { entry, meta, ignored });
            if piece.len() < PIECE {
                return ControlFlow::Continue(());
            }
            (self.visit)(std::mem::replace(&mut piece, Vec::with_capacity(PIECE)))
        };
        let all = || -> Result<ControlFlow<()>, Error> {
            for (count, name) in found.iter().enumerate() {
                if count % PIECE == PIECE - 1 {
                    self.token.check()?;
                }
                let Some(directory) = &directory else { break };
                let Some(meta) = stat_at(directory.as_fd(), name).map_err(fail)? else {
                    continue;
                };
                let path = task.path.join(name)?;
                let entry = Entry {
                    path,
                    kind: meta.kind,
                    bytes: meta.size,
                    mode: meta.mode,
                    stamp: meta.stamp(),
                };
                if each(entry, Some(meta)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            for (path, slot) in staged {
                if path.file_name() == Some(b".git") && !self.want.git {
                    continue;
                }
                if let Some(entry) = crate::view::entry_of_slot(path, &slot)
                    && each(entry, None).is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        };
        let met = all();
        // What was met before an error was met all the same.
        let rest = if matches!(met, Ok(ControlFlow::Break(()))) || piece.is_empty() {
            ControlFlow::Continue(())
        } else {
            (self.visit)(piece)
        };
        if met?.is_break() || rest.is_break() {
            return Ok((Vec::new(), true));
        }
        Ok((tasks, false))
    }
}
