//! Runs the folders of `tests/scenarios`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use zero_contracts::files::ReadLog;
use zero_contracts::{CancelToken, FileEngine};

use crate::support::*;

fn tree(from: &Path, to: &Path, case: &Value, modes: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            tree(&entry.path(), &target, &Value::Null, modes);
        } else if entry.file_name() != ".keep" {
            std::fs::write(&target, std::fs::read(entry.path()).unwrap()).unwrap();
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
    let map = |field: &str| -> BTreeMap<String, String> {
        case.get(field)
            .map(|v| serde_json::from_value(v.clone()).unwrap())
            .unwrap_or_default()
    };
    for (path, mode) in map(modes) {
        let mode = u32::from_str_radix(&mode, 8).unwrap();
        std::fs::set_permissions(to.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    for (path, target) in map("links") {
        std::os::unix::fs::symlink(target, to.join(path)).unwrap();
    }
}

#[test]
fn every_folder() {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut seen = 0;
    for folder in std::fs::read_dir(folders).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let case: Value = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap()).unwrap();
        let f = Fixture::new();
        tree(&folder.join("input"), &f.root(), &case, "modes");
        let before = f.image();
        let mut transaction = f.engine.begin(fresh()).unwrap();
        let list = operations(&case["operations"].to_string());
        let staged = transaction.stage(&list, &ReadLog::new(), &CancelToken::new());
        match (staged, case.get("error")) {
            (Ok(_), None) => {
                finish(&mut *transaction).unwrap();
                let expected = scratch();
                tree(&folder.join("expected"), expected.path(), &case, "expectedModes");
                assert_eq!(f.image(), image(expected.path()), "{name}");
            }
            (Err(e), Some(error)) => {
                assert_eq!(e.kind.as_str(), error["kind"], "{name}: {e}");
                for word in error["words"].as_array().unwrap() {
                    assert!(e.detail.contains(word.as_str().unwrap()), "{name}: {e} lacks {word}");
                }
                drop(transaction);
                assert_eq!(f.image(), before, "{name}");
            }
            (got, wanted) => panic!("{name}: got {:?}, wanted error {wanted:?}", got.map(|_| ())),
        }
        seen += 1;
    }
    assert!(seen >= 15, "only {seen} scenarios");
}
