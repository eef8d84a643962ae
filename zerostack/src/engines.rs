//! Which engines a kernel uses: the shipped ones, or those that the host injects.

use std::path::Path;
use std::sync::Arc;

use zero_contracts::{FileEngine, StructureEngine, TokenEngine};

use crate::config::{KernelConfig, Result};

/// The engine that owns bytes.
pub(crate) fn files(config: &KernelConfig, root: &Path, store: &Path) -> Result<Arc<dyn FileEngine>> {
    if let Some(files) = &config.engines.files {
        return Ok(Arc::clone(files));
    }
    let shipped = fszero::FsConfig {
        durability: config.durability,
        ..fszero::FsConfig::new(root, store)
    };
    Ok(Arc::new(fszero::FsZero::open(shipped)?))
}

/// The engine that owns structure.
pub(crate) fn structure(config: &KernelConfig) -> Arc<dyn StructureEngine> {
    match &config.engines.structure {
        Some(structure) => Arc::clone(structure),
        None => Arc::new(graphzero::GraphZero::new()),
    }
}

/// The engine that owns output.
pub(crate) fn tokens(config: &KernelConfig) -> Arc<dyn TokenEngine> {
    match &config.engines.tokens {
        Some(tokens) => Arc::clone(tokens),
        None => Arc::new(tokenzero::TokenZero::new(tokenzero::TokenConfig::default())),
    }
}
