use std::path::Path;

use super::*;
use crate::facts_builder::FactsBuilder;

fn facts(name: &str) -> Arc<FileFacts> {
    let mut builder = FactsBuilder::new(Lang::Unknown, name.as_bytes());
    builder.name(name);
    Arc::new(builder.finish(crate::code::Code::None))
}

fn key(name: &str) -> Key {
    (Digest::of(name.as_bytes()), Lang::Unknown)
}

fn fresh(names: &[&str]) -> Fresh {
    Fresh {
        facts: names.iter().map(|name| (key(name), facts(name))).collect(),
        stamps: names
            .iter()
            .map(|name| (name.parse().unwrap(), name.len() as u128, key(name)))
            .collect(),
    }
}

fn save(directory: &Path, names: &[&str]) {
    let index = Persisted::open(directory);
    index.save(&fresh(names), 2, &CancelToken::new()).unwrap();
}

fn only_file(directory: &Path) -> PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn another_process_finds_what_was_saved() {
    let directory = tempfile::tempdir().unwrap();
    let reader = Persisted::open(directory.path());
    save(directory.path(), &["one", "two"]);
    assert_eq!(reader.facts(key("one")), None);
    reader.reload();
    assert_eq!(reader.facts(key("one")), Some((*facts("one")).clone()));
    assert_eq!(reader.stamp(&"two".parse().unwrap(), 3), Some(key("two")));
    assert_eq!(reader.stamp(&"two".parse().unwrap(), 4), None);
    assert_eq!(reader.facts(key("three")), None);
}

#[test]
fn every_truncation_counts_as_not_there_and_is_rebuilt() {
    let directory = tempfile::tempdir().unwrap();
    save(directory.path(), &["one", "two"]);
    let path = only_file(directory.path());
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let index = Persisted::open(directory.path());
        assert_eq!(index.facts(key("one")), None, "cut at {length}");
    }
    save(directory.path(), &["one"]);
    let index = Persisted::open(directory.path());
    assert_eq!(index.facts(key("one")), Some((*facts("one")).clone()));
    only_file(directory.path());
}

#[test]
fn a_flipped_bit_never_gives_other_facts() {
    let directory = tempfile::tempdir().unwrap();
    save(directory.path(), &["one", "two"]);
    let path = only_file(directory.path());
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).unwrap();
        let index = Persisted::open(directory.path());
        for name in ["one", "two"] {
            let found = index.facts(key(name));
            assert!(found.is_none() || found.as_ref() == Some(&*facts(name)), "byte {at}");
        }
        let stamp = index.stamp(&"two".parse().unwrap(), 3);
        assert!(stamp.is_none() || stamp == Some(key("two")), "byte {at}");
    }
}

#[test]
fn another_version_is_not_read_and_goes_with_the_next_write() {
    let directory = tempfile::tempdir().unwrap();
    let mut other = Persisted::open(directory.path());
    other.version = [7; 16];
    other.save(&fresh(&["one"]), 1, &CancelToken::new()).unwrap();
    let index = Persisted::open(directory.path());
    assert_eq!(index.facts(key("one")), None);
    index.save(&fresh(&["two"]), 1, &CancelToken::new()).unwrap();
    assert_eq!(index.facts(key("two")), Some((*facts("two")).clone()));
    only_file(directory.path());
}

#[test]
fn a_writer_that_dies_leaves_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    save(directory.path(), &["one"]);
    // What a kill leaves: frames without contents under an unfinished name.
    let mut writer = generation::Writer::create(directory.path(), version()).unwrap();
    writer.frame(b"half").unwrap();
    std::mem::forget(writer);
    let index = Persisted::open(directory.path());
    assert_eq!(index.facts(key("one")), Some((*facts("one")).clone()));
    index.save(&fresh(&["two"]), 1, &CancelToken::new()).unwrap();
    assert_eq!(index.facts(key("one")), Some((*facts("one")).clone()));
    assert_eq!(index.files(generation::UNFINISHED).len(), 1, "it may still be at work");
}

#[test]
fn generations_merge_and_collection_drops() {
    let directory = tempfile::tempdir().unwrap();
    let index = Persisted::open(directory.path());
    let names: Vec<String> = (0..20).map(|n| format!("name{n}")).collect();
    for name in &names {
        index.save(&fresh(&[name]), 1, &CancelToken::new()).unwrap();
        assert!(index.files(EXTENSION).len() <= GENERATIONS);
    }
    let again = Persisted::open(directory.path());
    for name in &names {
        assert_eq!(again.facts(key(name)), Some((*facts(name)).clone()));
    }
    let keep = key("name3").0;
    let gone: WorkspacePath = "name5".parse().unwrap();
    let without = Keep {
        content: &|_| true,
        path: &|path| *path != gone,
    };
    // A path that is gone takes its stamp along, and a content that is still wanted stays.
    assert!(index.collect(&without, &CancelToken::new()).unwrap() > 0);
    assert_eq!(index.stamp(&gone, 5), None);
    assert!(index.facts(key("name5")).is_some());
    let wanted = Keep {
        content: &|digest| *digest == keep,
        path: &|_| true,
    };
    assert!(index.collect(&wanted, &CancelToken::new()).unwrap() > 0);
    // What would change nothing is not written.
    let file = index.files(EXTENSION);
    assert_eq!(index.collect(&wanted, &CancelToken::new()).unwrap(), 0);
    assert_eq!(index.files(EXTENSION), file);
    let after = Persisted::open(directory.path());
    assert_eq!(after.facts(key("name3")), Some((*facts("name3")).clone()));
    assert_eq!(after.facts(key("name4")), None);
    assert_eq!(after.stamp(&"name4".parse().unwrap(), 5), None);
    only_file(directory.path());
}
