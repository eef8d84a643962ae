//! `zero-kernel verify`: a store with its chains, or a file of evidence with nothing else.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use zerostack::contracts::{CancelToken, Error, SessionName};
use zerostack::{KernelConfig, StoreLocation, ZeroKernel, evidence};

use crate::{fail, print};

/// Checks a file of evidence (an exported event or chain, a receipt), or with `--root` every stored object, journal frame
/// and chain of events of a workspace's store.
#[derive(Args)]
#[command(group(ArgGroup::new("what").args(["file", "root"]).required(true)))]
pub struct Verify {
    /// The file; `-` for standard input.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The public key that must have signed: 64 hexadecimal digits.
    #[arg(long, value_name = "HEX")]
    key: Option<String>,
    /// The workspace root.
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    root: Option<PathBuf>,
    /// The session whose chain is checked; without it all are.
    #[arg(long, value_name = "NAME", requires = "root")]
    session: Option<String>,
    /// The store's directory; without it one in the user's state directory.
    #[arg(long, value_name = "DIR", requires = "root")]
    store: Option<PathBuf>,
}

impl Verify {
    /// Checks and prints what was found; the exit code is 0 if nothing is invalid.
    pub fn run(self) -> ExitCode {
        let checked = match (&self.file, &self.root) {
            (Some(file), _) => self.check_file(file),
            (None, Some(root)) => self.check_store(root),
            (None, None) => Err(Error::invalid("name a file, or a workspace with --root")),
        };
        match checked {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => fail(&error),
        }
    }

    fn check_file(&self, file: &std::path::Path) -> Result<bool, Error> {
        let read = if file.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map(|_| bytes)
        } else {
            std::fs::read(file)
        };
        let bytes = read.map_err(|e| Error::from_io(&e, file.display()).with_path(file.display()))?;
        let verification = evidence::verify(&bytes, self.key.as_deref());
        print(&verification);
        Ok(verification.valid)
    }

    fn check_store(&self, root: &std::path::Path) -> Result<bool, Error> {
        let mut config = KernelConfig::new(root);
        if let Some(store) = &self.store {
            config.store = StoreLocation::At(store.clone());
        }
        let only = self.session.as_ref().map(SessionName::new).transpose()?;
        let kernel = ZeroKernel::open(config)?;
        let verification = kernel.verify(only.as_ref(), self.key.as_deref(), &CancelToken::new())?;
        print(&verification);
        Ok(verification.valid)
    }
}
