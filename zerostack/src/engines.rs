//! Which engines a kernel uses: the shipped ones, or those that the host injects.

use std::path::Path;
use std::sync::Arc;

use zero_contracts::{FileEngine, StructureEngine, TokenEngine};

use crate::config::{KernelConfig, Result, StoreLocation};

/// The engine that owns bytes.
///
/// A transient store is never flushed: it goes with its kernel, and after a loss of power nobody would look for it.
pub(crate) fn files(config: &KernelConfig, root: &Path, store: &Path) -> Result<Arc<dyn FileEngine>> {
    if let Some(files) = &config.engines.files {
        return Ok(Arc::clone(files));
    }
    let shipped = fszero::FsConfig {
        durability: config.durability,
        lasting: config.store != StoreLocation::Transient,
        ..fszero::FsConfig::new(root, store)
    };
    Ok(Arc::new(fszero::FsZero::open(shipped)?))
}

/// The engine that owns structure; its index lives in the store, if the store lives on.
pub(crate) fn structure(config: &KernelConfig, store: Option<&Path>) -> Result<Arc<dyn StructureEngine>> {
    if let Some(structure) = &config.engines.structure {
        return Ok(Arc::clone(structure));
    }
    let shipped = graphzero::GraphConfig::default();
    let shipped = match store {
        Some(store) => shipped.index(store.join("graph")),
        None => shipped,
    };
    Ok(Arc::new(graphzero::GraphZero::open(shipped)?))
}

/// The engine that owns output.
pub(crate) fn tokens(config: &KernelConfig) -> Arc<dyn TokenEngine> {
    match &config.engines.tokens {
        Some(tokens) => Arc::clone(tokens),
        None => Arc::new(tokenzero::TokenZero::new(tokenzero::TokenConfig::default())),
    }
}
