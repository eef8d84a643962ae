//! Read-only mounts: seen by read and find under their names, changed by nothing.

use std::sync::Arc;

use serde_json::json;
use zero_contracts::{ErrorKind, FileEngine};
use zerostack::{KernelConfig, ZeroKernel};

use crate::hub_support::Workspace;

fn workspace(library: &std::path::Path, store: &std::path::Path) -> Workspace {
    std::fs::create_dir_all(library.join("src")).unwrap();
    std::fs::write(
        library.join("src/lib.rs"),
        "pub fn helper() {}\n\npub fn user() {\n    helper();\n}\n",
    )
    .unwrap();
    std::fs::write(library.join("README.md"), "a library\n").unwrap();
    let engine = fszero::FsZero::open(fszero::FsConfig::new(library, store)).unwrap();
    Workspace::with(&[("src/main.rs", "fn helper() {}\n")], |config| {
        config.mounts.insert("lib".into(), engine.live());
    })
}

#[test]
fn a_mount_is_read_and_searched_under_its_name() {
    let (library, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ws = workspace(library.path(), store.path());
    assert_eq!(ws.value("return z.read('mount:lib/README.md')"), "a library\n");
    let part = ws.value("return z.read('mount:lib/src/lib.rs', {symbol: 'user'})");
    assert!(
        part["content"].as_str().unwrap().starts_with("pub fn user") && part.get("snapshot").is_none(),
        "{part}"
    );
    let listing = ws.value("return (await z.read('mount:lib', {recursive: true})).entries.map(e => e.path)");
    assert_eq!(
        listing,
        json!(["mount:lib/README.md", "mount:lib/src", "mount:lib/src/lib.rs"])
    );
    // What is found can be read by the name it has in the answer.
    let found = ws.value(
        "const found = await z.find('helper', {mode: 'callers', path: 'mount:lib'});
         const [site] = found.items;
         return [found.total, site.path, site.definition?.path, (await z.read(site.path, {lines: [site.range.start.line, site.range.start.line]})).content]",
    );
    assert_eq!(
        found,
        json!([1, "mount:lib/src/lib.rs", "mount:lib/src/lib.rs", "    helper();\n"])
    );
    // The workspace's own answers do not mix with the mount's.
    let own = ws.value("return (await z.find('helper', {mode: 'definitions'})).items.map(i => i.path)");
    assert_eq!(own, json!(["src/main.rs"]));
    let scoped = ws.value("return (await z.find('library', {path: ['mount:lib/README.md', 'mount:lib/src']})).total");
    assert_eq!(scoped, 1);
}

#[test]
fn a_mount_is_changed_by_nothing_and_leaves_nowhere() {
    let (library, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ws = workspace(library.path(), store.path());
    std::os::unix::fs::symlink("/etc/hostname", library.path().join("out")).unwrap();
    for (cell, kind) in [
        (
            "await z.edit('mount:lib/README.md', {content: 'x'}, {expect: 'any'})",
            ErrorKind::Denied,
        ),
        (
            "await z.read('mount:lib/README.md', {snapshot: true})",
            ErrorKind::InvalidInput,
        ),
        ("await z.read('mount:lib/none')", ErrorKind::NotFound),
        ("await z.read('mount:other/README.md')", ErrorKind::NotFound),
        ("await z.read('mount:lib/../x')", ErrorKind::OutsideWorkspace),
        ("await z.read('mount:lib/out')", ErrorKind::OutsideWorkspace),
        (
            "await z.find('x', {path: ['src', 'mount:lib']})",
            ErrorKind::InvalidInput,
        ),
        ("await z.find('x', {path: 'mount:other'})", ErrorKind::NotFound),
    ] {
        let error = ws.error(cell);
        assert_eq!(error.kind, kind, "{cell}: {error:?}");
    }
    assert_eq!(ws.error("await z.read('mount:other/x')").accepted, ["mount:lib/"]);
    assert_eq!(
        ws.error("await z.read('mount:lib/none')").path.as_deref(),
        Some("mount:lib/none")
    );
    assert_eq!(
        std::fs::read_to_string(library.path().join("README.md")).unwrap(),
        "a library\n"
    );

    let root = tempfile::tempdir().unwrap();
    let mut config = KernelConfig::new(root.path());
    config.mounts.insert(
        "a/b".into(),
        Arc::clone(
            &fszero::FsZero::open(fszero::FsConfig::new(library.path(), store.path()))
                .unwrap()
                .live(),
        ),
    );
    assert_eq!(ZeroKernel::open(config).err().unwrap().path.as_deref(), Some("mounts"));
}

#[test]
fn an_alias_of_the_root_shows_what_the_cell_staged() {
    let ws = Workspace::new(&[("d/a", "1\n")]);
    let outside = tempfile::tempdir().unwrap();
    let alias = outside.path().join("alias");
    std::os::unix::fs::symlink(ws.root.path().join("d"), &alias).unwrap();
    let cell = format!(
        "await z.edit('d/a', {{find: '1', replacement: '2'}}); await z.edit('d/new', {{create: 'n'}});
         return [await z.read('{0}/a'), await z.read('{0}/new')]",
        alias.display()
    );
    assert_eq!(ws.value(&cell), json!(["2\n", "n"]));
}
