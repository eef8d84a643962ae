//! Stage two edits, publish them together, undo them.

use fszero::{FsConfig, FsZero};
use zero_contracts::files::{BeginTransaction, CommitSeal, ReadLog};
use zero_contracts::{CancelToken, CellId, Digest, Epoch, FileEngine, SessionName, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    std::fs::create_dir(dir.path().join("root"))?;
    std::fs::write(dir.path().join("root/greeting"), "hello\r\n")?;
    let engine = FsZero::open(FsConfig::new(dir.path().join("root"), dir.path().join("store")))?;
    let (token, session) = (CancelToken::new(), SessionName::default());
    let begin = |cell: &str| -> Result<_, zero_contracts::Error> {
        Ok(BeginTransaction {
            cell: CellId::new(cell)?,
            session: session.clone(),
            staged_bytes: 1 << 20,
        })
    };
    let seal = || CommitSeal {
        session: session.clone(),
        state: None,
        event: Digest::of(b""),
        intents: Vec::new(),
    };

    let mut transaction = engine.begin(begin("first")?)?;
    let operations =
        r#"[{"path": "greeting", "find": "hello", "replacement": "good day"}, {"path": "new/file", "create": "made"}]"#;
    for receipt in transaction.stage(&json::from_text::<Vec<_>>(operations)?, &ReadLog::new(), &token)? {
        println!("staged {}\n{}", receipt.path, receipt.diff);
    }
    let commit = transaction
        .commit(Epoch(1), seal(), &token)
        .map_err(|failure| failure.error)?;
    assert_eq!(std::fs::read(dir.path().join("root/greeting"))?, b"good day\r\n");

    let mut undo = engine.revert(&commit.cell, None, begin("second")?, &token)?;
    undo.transaction
        .commit(Epoch(1), seal(), &token)
        .map_err(|failure| failure.error)?;
    assert_eq!(std::fs::read(dir.path().join("root/greeting"))?, b"hello\r\n");
    assert!(!dir.path().join("root/new").exists());
    println!("undone");
    Ok(())
}
