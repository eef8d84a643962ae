//! Snapshots, collection, verification, files outside.

use std::io::Read;
use std::path::Path;

use zero_contracts::edit::PathState;
use zero_contracts::{CancelToken, Digest, ErrorKind, Handle, HandleKind};

use super::{Bench, Files, read, replace, sample};
use crate::report::{Checked, Checks, ensure, refused, same};

pub(super) const CHECKS: &Checks<dyn Files> = &[
    ("a snapshot records what is not ignored, in order", manifest),
    ("a snapshot shows what was", view),
    ("two snapshots of one tree are one", same_twice),
    ("a difference tells what came, went and changed", diff),
    ("a snapshot that there is not is not found", unknown),
    ("a snapshot can be cancelled", cancelled),
    ("collection keeps what is reached", collect),
    ("damage is found by verification", verify),
    ("a file outside is read, and none of the kernel's", external),
];

fn manifest(subject: &dyn Files) -> Checked {
    subject.set(&sample().file(".gitignore", "out/\n").file("out/made", "made"));
    let engine = subject.engine();
    let snapshot = engine.snapshot(&CancelToken::new())?;
    same!(snapshot.kind, HandleKind::Snapshot, "the handle's kind");
    let manifest = engine.manifest(&snapshot)?;
    let paths: Vec<String> = manifest.iter().map(|(path, _)| path.to_string()).collect();
    let wanted = [
        ".gitignore",
        "a",
        "b",
        "d",
        "d/e",
        "d/e/y",
        "d/x",
        "empty",
        "to-a",
        "tool",
    ];
    same!(paths, wanted.map(str::to_owned).to_vec(), "the paths");
    let tool: Option<&PathState> = manifest
        .iter()
        .find(|(path, _)| path.to_string() == "tool")
        .map(|(_, state)| state);
    let told = tool.map(|state| (state.mode, state.digest, state.bytes));
    same!(
        told,
        Some((0o755, Some(Digest::of(b"#!/bin/sh\n")), Some(10))),
        "an executable file"
    );
    Ok(())
}

fn view(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let engine = subject.engine();
    let snapshot = engine.snapshot(&CancelToken::new())?;
    subject.set(&sample().file("a", "later").without("b"));
    let view = engine.snapshot_view(&snapshot)?;
    same!(
        (read(&*view, "a")?, read(&*view, "b")?),
        ("one\ntwo\n".into(), "b\n".into()),
        "the contents"
    );
    Ok(())
}

fn same_twice(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let engine = subject.engine();
    let first = engine.snapshot(&CancelToken::new())?;
    same!(engine.snapshot(&CancelToken::new())?, first, "the second");
    Ok(())
}

fn diff(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let engine = subject.engine();
    let before = engine.snapshot(&CancelToken::new())?;
    subject.set(
        &sample()
            .file("a", "changed")
            .without("b")
            .file("n", "new")
            .mode("tool", 0o700),
    );
    let after = engine.snapshot(&CancelToken::new())?;
    let told: Vec<(String, bool, bool)> = engine
        .diff(&before, &after, &CancelToken::new())?
        .into_iter()
        .map(|change| (change.path.to_string(), change.before.is_some(), change.after.is_some()))
        .collect();
    let wanted = [
        ("a", true, true),
        ("b", true, false),
        ("n", false, true),
        ("tool", true, true),
    ];
    same!(
        told,
        wanted.map(|(path, was, is)| (path.to_owned(), was, is)).to_vec(),
        "the changes"
    );
    Ok(())
}

fn unknown(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let snapshot = Handle {
        kind: HandleKind::Snapshot,
        digest: Digest::of(b"never taken"),
    };
    let engine = subject.engine();
    refused(engine.manifest(&snapshot), &[ErrorKind::NotFound], "its manifest")?;
    refused(
        engine.snapshot_view(&snapshot).map(drop),
        &[ErrorKind::NotFound],
        "its view",
    )
}

fn cancelled(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let token = CancelToken::new();
    token.cancel();
    refused(subject.engine().snapshot(&token), &[ErrorKind::Cancelled], "it")
}

fn collect(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let engine = subject.engine();
    let digest = engine.objects().put(b"reached")?;
    engine.collect(&[digest], &CancelToken::new())?;
    same!(engine.objects().get(&digest)?, b"reached".to_vec(), "the bytes");
    Ok(())
}

fn verify(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?])?;
    bench.commit(1)?;
    let engine = subject.engine();
    let digest = engine.objects().put(&b"a sound object ".repeat(100))?;
    same!(engine.verify(&CancelToken::new())?, vec![], "damage of a sound store");
    subject.damage(&digest);
    let damage = engine.verify(&CancelToken::new())?;
    ensure!(
        damage.iter().any(|damage| damage.what.contains(&digest.to_hex())),
        "{damage:?} is told"
    );
    Ok(())
}

fn external(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let engine = subject.engine();
    let own = std::env::current_exe()?;
    let mut head = [0; 4];
    engine.open_external(&own)?.read_exact(&mut head)?;
    same!(head, *b"\x7fELF", "how this program begins");
    for magic in ["/proc/self/environ", "/proc/self/exe", "/dev/null", "/sys/kernel/mm"] {
        ensure!(engine.open_external(Path::new(magic)).is_err(), "{magic} was opened");
    }
    refused(
        engine.open_external(Path::new("/no/such/file")).map(drop),
        &[ErrorKind::NotFound],
        "nothing",
    )
}
