//! What a [`SourceView`] promises.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use zero_contracts::read::EntryKind;
use zero_contracts::source::WalkScope;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

use crate::report::{self, Checked, Checks, Report, ensure, refused, same};
use crate::tree::{FILE_MODE, Node, Tree};

/// Makes views of trees.
pub trait Views {
    /// A view of this tree; it is asked for once per subject.
    fn view(&self, tree: &Tree) -> Arc<dyn SourceView>;
}

/// Runs the suite against fresh views.
pub fn run(fresh: &dyn Fn() -> Box<dyn Views>) -> Report {
    report::run("SourceView", CHECKS, fresh)
}

const CHECKS: &Checks<dyn Views> = &[
    ("an entry tells kind, size and mode", entry),
    ("an entry is the symlink itself", entry_of_symlink),
    ("nothing is no entry", entry_of_nothing),
    ("resolving follows symlinks to the real path", resolve),
    ("a dangling symlink resolves to nothing", resolve_dangling),
    ("what leads out of the root is refused", leads_out),
    ("a listing is complete and in order of bytes", list),
    ("a listing follows a symlink to a directory", list_symlink),
    ("only directories are listed", list_others),
    ("a symlink's target is given raw", read_link),
    ("only symlinks have a target", read_link_others),
    ("a file is read whole, with its digest", read),
    ("a file is read through symlinks", read_symlink),
    ("only files are read", read_others),
    ("names outside UTF-8 are names", raw_names),
    ("reading can be cancelled", read_cancelled),
    ("reading in pieces gives the same bytes", open),
    ("equal settled stamps mean equal bytes", stamps),
    ("a walk yields files and symlinks, and no directory unasked", walk),
    ("a walk yields directories when asked", walk_directories),
    ("a walk leaves out what is ignored, unless asked", walk_ignored),
    ("a walk never enters .git", walk_git),
    ("a walk goes as deep as asked", walk_depth),
    ("a walk starts where it is told", walk_start),
    ("a walk from nothing is not found", walk_nowhere),
    ("a walk does not follow symlinks", walk_symlinks),
    ("a visitor stops a walk", walk_break),
    ("a walk can be cancelled", walk_cancelled),
];

fn sample() -> Tree {
    let raw = Node::File {
        bytes: b"raw".to_vec(),
        mode: FILE_MODE,
    };
    Tree::new()
        .file("a", "one\ntwo\n")
        .file("d/e/deep", "deep")
        .file("d/x", "x")
        .file("d-", "sorts before d/")
        .file("private", "secret")
        .mode("private", 0o600)
        .file(".hidden", "hidden")
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file(".gitignore", "out/\n*.log\n")
        .file("out/made", "made")
        .file("d/noise.log", "noise")
        .directory("empty")
        .symlink("to-a", "a")
        .symlink("d/up", "../d/e")
        .symlink("dangling", "nowhere")
        .symlink("outside", "../../etc/passwd")
        .with(b"\xff", raw)
}

fn path(text: &str) -> Result<WorkspacePath, Error> {
    WorkspacePath::from_raw(text.as_bytes())
}

fn entry(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    for (name, kind, bytes, mode) in [
        ("a", EntryKind::File, 8, FILE_MODE),
        ("private", EntryKind::File, 6, 0o600),
        ("d", EntryKind::Directory, 0, 0o755),
    ] {
        let found = view.entry(&path(name)?)?;
        let told = found.map(|e| (e.path.to_string(), e.kind, e.bytes, e.mode));
        same!(told, Some((name.to_owned(), kind, bytes, mode)), name);
    }
    Ok(())
}

fn entry_of_symlink(subject: &dyn Views) -> Checked {
    let found = subject.view(&sample()).entry(&path("to-a")?)?;
    let told = found.map(|e| (e.path.to_string(), e.kind, e.bytes, e.mode));
    same!(told, Some(("to-a".into(), EntryKind::Symlink, 0, 0)), "to-a");
    Ok(())
}

fn entry_of_nothing(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    for name in ["nowhere", "d/nowhere", "nowhere/at/all"] {
        ensure!(view.entry(&path(name)?)?.is_none(), "{name} is an entry");
    }
    Ok(())
}

fn resolve(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    for (name, real, kind) in [
        ("to-a", "a", EntryKind::File),
        ("d/up", "d/e", EntryKind::Directory),
        ("d/up/deep", "d/e/deep", EntryKind::File),
        ("a", "a", EntryKind::File),
    ] {
        let told = view.resolve(&path(name)?)?.map(|e| (e.path.to_string(), e.kind));
        same!(told, Some((real.to_owned(), kind)), name);
    }
    Ok(())
}

fn resolve_dangling(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    ensure!(view.resolve(&path("dangling")?)?.is_none(), "it resolves");
    Ok(())
}

fn leads_out(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    let at = path("outside")?;
    let kinds = &[ErrorKind::OutsideWorkspace];
    refused(view.resolve(&at), kinds, "resolving it")?;
    refused(view.read(&at, &CancelToken::new()), kinds, "reading it")?;
    refused(view.open(&at).map(drop), kinds, "opening it")
}

fn list(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    let raw: Vec<Vec<u8>> = view
        .list(&WorkspacePath::root())?
        .iter()
        .map(|e| e.path.as_bytes().to_vec())
        .collect();
    let wanted: &[&[u8]] = &[
        b".git",
        b".gitignore",
        b".hidden",
        b"a",
        b"d",
        b"d-",
        b"dangling",
        b"empty",
        b"out",
        b"outside",
        b"private",
        b"to-a",
        b"\xff",
    ];
    same!(
        raw,
        wanted.iter().map(|name| name.to_vec()).collect::<Vec<_>>(),
        "the root"
    );
    ensure!(view.list(&path("empty")?)?.is_empty(), "an empty directory has entries");
    Ok(())
}

fn list_symlink(subject: &dyn Views) -> Checked {
    let listed = subject.view(&sample()).list(&path("d/up")?)?;
    let paths: Vec<String> = listed.iter().map(|e| e.path.to_string()).collect();
    same!(paths, vec!["d/up/deep".to_owned()], "d/up");
    Ok(())
}

fn list_others(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    refused(view.list(&path("a")?), &[ErrorKind::InvalidInput], "a file")?;
    refused(view.list(&path("nowhere")?), &[ErrorKind::NotFound], "nothing")
}

fn read_link(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    for (name, target) in [("to-a", "a"), ("d/up", "../d/e"), ("outside", "../../etc/passwd")] {
        same!(view.read_link(&path(name)?)?, target.as_bytes().to_vec(), name);
    }
    Ok(())
}

fn read_link_others(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    refused(view.read_link(&path("a")?), &[ErrorKind::InvalidInput], "a file")?;
    refused(view.read_link(&path("nowhere")?), &[ErrorKind::NotFound], "nothing")
}

fn read(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    let content = view.read(&path("a")?, &CancelToken::new())?;
    same!(content.bytes.to_vec(), b"one\ntwo\n".to_vec(), "the bytes");
    same!(content.digest, Digest::of(b"one\ntwo\n"), "the digest");
    same!(
        (content.entry.path.to_string(), content.entry.bytes),
        ("a".to_owned(), 8),
        "the entry"
    );
    Ok(())
}

fn read_symlink(subject: &dyn Views) -> Checked {
    let content = subject.view(&sample()).read(&path("to-a")?, &CancelToken::new())?;
    same!(content.entry.path.to_string(), "a".to_owned(), "the entry's path");
    same!(content.bytes.to_vec(), b"one\ntwo\n".to_vec(), "the bytes");
    Ok(())
}

fn read_others(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    let token = CancelToken::new();
    refused(
        view.read(&path("d")?, &token),
        &[ErrorKind::InvalidInput],
        "a directory",
    )?;
    refused(view.read(&path("nowhere")?, &token), &[ErrorKind::NotFound], "nothing")?;
    refused(
        view.read(&path("dangling")?, &token),
        &[ErrorKind::NotFound],
        "a dangling symlink",
    )
}

fn raw_names(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    let content = view.read(&WorkspacePath::from_raw(b"\xff")?, &CancelToken::new())?;
    same!(content.bytes.to_vec(), b"raw".to_vec(), "the bytes");
    Ok(())
}

fn read_cancelled(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    let token = CancelToken::new();
    token.cancel();
    refused(view.read(&path("a")?, &token), &[ErrorKind::Cancelled], "it")
}

fn open(subject: &dyn Views) -> Checked {
    let long = "0123456789".repeat(20_000);
    let view = subject.view(&Tree::new().file("long", &long));
    let mut bytes = Vec::new();
    view.open(&path("long")?)?.read_to_end(&mut bytes)?;
    ensure!(bytes == long.as_bytes(), "{} bytes, not the same", bytes.len());
    Ok(())
}

fn stamps(subject: &dyn Views) -> Checked {
    let view = subject.view(&Tree::new().file("x", "same size 1").file("y", "same size 2"));
    let at = path("x")?;
    let (first, second) = (view.entry(&at)?, view.entry(&at)?);
    ensure!(
        first == second,
        "an entry that did not change is told otherwise: {first:?}, {second:?}"
    );
    let other = view.entry(&path("y")?)?;
    ensure!(
        first.map(|e| e.stamp.value) != other.map(|e| e.stamp.value),
        "two files share a stamp"
    );
    Ok(())
}

fn walked(view: &dyn SourceView, scope: &WalkScope) -> Result<BTreeSet<String>, Error> {
    let found = Mutex::new(BTreeSet::new());
    let twice = AtomicUsize::new(0);
    view.walk(scope, &CancelToken::new(), &|entry| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if !found.insert(entry.path.to_string()) {
            twice.fetch_add(1, Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    })?;
    match twice.into_inner() {
        0 => Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner)),
        n => Err(Error::new(
            ErrorKind::Internal,
            format!("{n} entries were visited twice"),
        )),
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const PLAIN: &[&str] = &[
    ".gitignore",
    ".hidden",
    "\\xff",
    "a",
    "d-",
    "d/e/deep",
    "d/up",
    "d/x",
    "dangling",
    "outside",
    "private",
    "to-a",
];

fn walk(subject: &dyn Views) -> Checked {
    same!(
        walked(&*subject.view(&sample()), &WalkScope::default())?,
        set(PLAIN),
        "the walk"
    );
    Ok(())
}

fn walk_directories(subject: &dyn Views) -> Checked {
    let scope = WalkScope {
        directories: true,
        ..WalkScope::default()
    };
    let wanted = &set(PLAIN) | &set(&["d", "d/e", "empty"]);
    same!(walked(&*subject.view(&sample()), &scope)?, wanted, "the walk");
    Ok(())
}

fn walk_ignored(subject: &dyn Views) -> Checked {
    let scope = WalkScope {
        ignored: true,
        ..WalkScope::default()
    };
    let wanted = &set(PLAIN) | &set(&["out/made", "d/noise.log"]);
    same!(walked(&*subject.view(&sample()), &scope)?, wanted, "the walk");
    Ok(())
}

fn walk_git(subject: &dyn Views) -> Checked {
    let scope = WalkScope {
        ignored: true,
        directories: true,
        ..WalkScope::default()
    };
    let found = walked(&*subject.view(&sample()), &scope)?;
    let inside: Vec<_> = found.iter().filter(|path| path.starts_with(".git/")).collect();
    ensure!(inside.is_empty(), "it visits {inside:?}");
    Ok(())
}

fn walk_depth(subject: &dyn Views) -> Checked {
    let scope = |depth| WalkScope {
        start: WorkspacePath::root(),
        depth: Some(depth),
        ..WalkScope::default()
    };
    let tree = Tree::new()
        .file("1", "")
        .file("a/2", "")
        .file("a/b/3", "")
        .file("a/b/c/4", "");
    let view = subject.view(&tree);
    same!(walked(&*view, &scope(1))?, set(&["1"]), "one level");
    same!(walked(&*view, &scope(2))?, set(&["1", "a/2"]), "two levels");
    same!(walked(&*view, &scope(3))?, set(&["1", "a/2", "a/b/3"]), "three levels");
    Ok(())
}

fn walk_start(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    let scope = |start: &str| -> Result<WalkScope, Error> {
        Ok(WalkScope {
            start: path(start)?,
            ..WalkScope::default()
        })
    };
    same!(walked(&*view, &scope("d/e")?)?, set(&["d/e/deep"]), "a directory");
    same!(walked(&*view, &scope("a")?)?, set(&["a"]), "a file");
    Ok(())
}

fn walk_nowhere(subject: &dyn Views) -> Checked {
    let scope = WalkScope {
        start: path("nowhere")?,
        ..WalkScope::default()
    };
    refused(walked(&*subject.view(&sample()), &scope), &[ErrorKind::NotFound], "it")
}

fn walk_symlinks(subject: &dyn Views) -> Checked {
    let tree = Tree::new().file("d/x", "").symlink("d/loop", "../d").symlink("e", "d");
    same!(
        walked(&*subject.view(&tree), &WalkScope::default())?,
        set(&["d/loop", "d/x", "e"]),
        "the walk"
    );
    Ok(())
}

fn walk_break(subject: &dyn Views) -> Checked {
    let tree = (0..2_000).fold(Tree::new(), |tree, n| tree.file(&format!("d{}/f{n}", n % 20), ""));
    let view = subject.view(&tree);
    let visited = AtomicUsize::new(0);
    view.walk(&WalkScope::default(), &CancelToken::new(), &|_| {
        visited.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Break(())
    })?;
    let visited = visited.into_inner();
    ensure!((1..1_000).contains(&visited), "{visited} of 2000 entries were visited");
    Ok(())
}

fn walk_cancelled(subject: &dyn Views) -> Checked {
    let view = subject.view(&sample());
    let token = CancelToken::new();
    token.cancel();
    let walk = view.walk(&WalkScope::default(), &token, &|_| ControlFlow::Continue(()));
    refused(walk, &[ErrorKind::Cancelled], "it")
}
