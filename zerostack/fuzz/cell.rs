//! What must hold for every cell whatever it does, checked on a kernel of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use zerostack::contracts::response::{Disposition, Outcome};
use zerostack::contracts::{Budgets, ZeroKernelResponse};
use zerostack::{CellOptions, KernelConfig, StoreLocation, ZeroKernel, plan_cell};

/// A workspace with its kernel.
pub struct Target {
    root: tempfile::TempDir,
    kernel: ZeroKernel,
}

impl Target {
    /// Makes a small workspace. `configure` may change how its kernel is opened.
    pub fn new(configure: impl FnOnce(&mut KernelConfig)) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory can be made");
        std::fs::create_dir(root.path().join("src")).expect("an empty directory takes another");
        for (path, content) in [
            ("a.txt", "one\ntwo\nthree\n"),
            ("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n"),
        ] {
            std::fs::write(root.path().join(path), content).expect("an empty directory takes a file");
        }
        let mut config = KernelConfig {
            store: StoreLocation::Transient,
            ..KernelConfig::new(root.path())
        };
        configure(&mut config);
        let kernel = ZeroKernel::open(config).expect("a workspace of two files can be opened");
        Self { root, kernel }
    }

    /// Runs a program. The error says what does not hold.
    pub fn check(&self, source: &str) -> Result<ZeroKernelResponse, String> {
        let before = tree(self.root.path());
        let options = CellOptions {
            timeout: Some(Duration::from_secs(5)),
            budgets: Some(Budgets {
                heap_bytes: 32 << 20,
                array_buffer_bytes: 8 << 20,
                calls: 200,
                ..Budgets::default()
            }),
            ..CellOptions::default()
        };
        let response = self.kernel.execute_cell_with(source, options);
        let problem = self.problem(source, &response, &before);
        match problem {
            None => Ok(response),
            Some(problem) => Err(format!("{problem}\nof\n{source}\ngave\n{response:#?}")),
        }
    }

    fn problem(
        &self,
        source: &str,
        response: &ZeroKernelResponse,
        before: &BTreeMap<String, Vec<u8>>,
    ) -> Option<String> {
        let text = serde_json::to_string(response).ok()?;
        if serde_json::from_str::<ZeroKernelResponse>(&text).ok().as_ref() != Some(response) {
            return Some("the response does not come back from its JSON".into());
        }
        let ledger = &response.ledger;
        if ledger.live_tasks + ledger.live_children + ledger.processes.unproven > 0 {
            return Some("something is left alive".into());
        }
        let completed = response.outcome == Outcome::Completed;
        if completed == response.error.is_some() || (!completed && response.value.is_some()) {
            return Some("outcome, value and error do not fit".into());
        }
        let fits = match response.effects.disposition {
            Disposition::None => true,
            Disposition::Committed => completed,
            Disposition::Restored | Disposition::NeverAdmitted => !completed,
        };
        if !fits {
            return Some("outcome and disposition do not fit".into());
        }
        if response.effects.disposition != Disposition::Committed && tree(self.root.path()) != *before {
            return Some("the tree is not what it was".into());
        }
        match response.event.map(|event| self.kernel.event(&event)) {
            Some(Ok(event)) if event.outcome == response.outcome => {}
            event => return Some(format!("the event is not that of the response: {event:?}")),
        }
        if let Ok(plan) = plan_cell(source) {
            for operation in ledger.calls.keys() {
                if !plan.operations.iter().any(|planned| planned.operation == *operation) {
                    return Some(format!("{operation} is not in the plan"));
                }
            }
        } else if !ledger.calls.is_empty() {
            return Some("what has no plan ran".into());
        }
        None
    }
}

/// The content of every file, by path; directories have none.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path.clone());
            }
            found.insert(path.display().to_string(), std::fs::read(&path).unwrap_or_default());
        }
    }
    found
}
