//! Runs scenario folders through the whole kernel.
//!
//! A scenario is a folder; a person can add one without Rust, and any binding of the kernel can run them:
//!
//! | file | is |
//! | --- | --- |
//! | `cell.js` or `cell.ts` | the cell that is judged |
//! | `response.json` | what its response must contain (see [`matches()`]) |
//! | `input/` | the tree before; `.gitkeep` stands for an empty directory |
//! | `expected/` | the tree after; without it the tree must not change |
//! | `before-1.js`, `before-2.js` … | cells of the same session that run first and must complete |
//! | `setup.json` | what files cannot say: see `src/setup.rs` |

mod failing;
mod killed;
mod matches;
mod processes;
mod schemas;
mod setup;
mod tree;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use zerostack::{CellOptions, KernelConfig, StoreLocation, ZeroKernel};

pub use killed::{VICTIM, be_the_victim};
pub use matches::matches;
use schemas::Recording;
use setup::Setup;

/// A scenario's folder.
pub struct Scenario(PathBuf);

impl Scenario {
    /// Finds every scenario below a directory, in order of name.
    ///
    /// # Errors
    /// From the file system; a folder without a cell is `InvalidData`.
    pub fn all(directory: &Path) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let scenario = Self(entry?.path());
            scenario.cell()?;
            found.push(scenario);
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// The folder's name.
    pub fn name(&self) -> String {
        self.0
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The file of the cell that is judged.
    ///
    /// # Errors
    /// Where there is none.
    pub fn cell(&self) -> io::Result<PathBuf> {
        ["cell.js", "cell.ts"]
            .map(|name| self.0.join(name))
            .into_iter()
            .find(|path| path.exists())
            .ok_or_else(|| {
                let why = format!("{}: no cell.js and no cell.ts", self.0.display());
                io::Error::new(io::ErrorKind::InvalidData, why)
            })
    }

    /// What the response must contain.
    ///
    /// # Errors
    /// From the file system, and where it is not JSON.
    pub fn wanted(&self) -> io::Result<Value> {
        Ok(serde_json::from_slice(&fs::read(self.0.join("response.json"))?)?)
    }

    /// Runs the scenario; tells what is not as it says.
    ///
    /// # Errors
    /// From the file system, and where the scenario itself is not well formed.
    pub fn run(&self) -> io::Result<Vec<String>> {
        let setup = Setup::read(&self.0)?;
        if setup.killed_at_every_step {
            return self.run_killed(&setup);
        }
        let home = tempfile::tempdir()?;
        let root = home.path().join("workspace");
        fs::create_dir(&root)?;
        self.fill(&root)?;
        setup.prepare(&root, &home.path().join("outside"))?;
        let before = tree::image(&root)?;
        let store = home.path().join("store");
        let mut config = setup.configure(KernelConfig {
            store: StoreLocation::At(store.clone()),
            ..KernelConfig::new(&root)
        });
        let recording = Recording::install(&mut config);
        let mut kernel = ZeroKernel::open(config.clone()).map_err(io::Error::other)?;
        let options = setup.options(&home.path().join("outside"))?;

        let mut misses = Vec::new();
        for n in 1.. {
            let earlier = self.0.join(format!("before-{n}.js"));
            if !earlier.exists() {
                break;
            }
            let plain = CellOptions {
                input: options.input.clone(),
                ..CellOptions::default()
            };
            let response = kernel.execute_cell_with(&fs::read_to_string(earlier)?, plain);
            if let Some(error) = response.error {
                misses.push(format!("before-{n}.js: {}: {}", error.kind, error.detail));
            }
        }
        if setup.reopens() {
            drop(kernel);
            setup.damage(&store)?;
            kernel = ZeroKernel::open(config.clone()).map_err(io::Error::other)?;
        }
        let source = fs::read_to_string(self.cell()?)?;
        let response = setup.run(&config, options, &home.path().join("outside"), |options| {
            kernel.execute_cell_with(&source, options)
        })?;
        let response = serde_json::to_value(&response)?;
        let wanted = self.wanted()?;
        let invalid = |kind: &Value| kind == "invalid_input";
        if !invalid(&wanted["error"]["kind"]) && !invalid(&wanted["value"]["kind"]) {
            misses.extend(recording.refused());
        }
        misses.extend(schemas::response(&response));
        matches(&response, &self.wanted()?, "response", &mut misses);

        let expected = self.0.join("expected");
        let mut wanted = if expected.exists() {
            tree::image(&expected)?
        } else {
            before
        };
        setup.expect_modes(&mut wanted)?;
        misses.extend(tree::differences(&tree::image(&root)?, &wanted));
        Ok(misses)
    }

    fn fill(&self, root: &Path) -> io::Result<()> {
        let input = self.0.join("input");
        if input.exists() {
            tree::copy(&input, root)?;
        }
        Ok(())
    }

    /// Runs it in processes that are killed, at each step in turn.
    fn run_killed(&self, setup: &Setup) -> io::Result<Vec<String>> {
        let mut expected = tree::image(&self.0.join("expected"))?;
        setup.expect_modes(&mut expected)?;
        let (response, left, mut misses) = killed::at_every_step(&self.cell()?, |root| self.fill(root), &expected)?;
        misses.extend(schemas::response(&response));
        matches(&response, &self.wanted()?, "response", &mut misses);
        misses.extend(tree::differences(&left, &expected));
        Ok(misses)
    }
}
