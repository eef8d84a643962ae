//! A file as memory.

use std::fs::File;
use std::path::Path;

/// The bytes of a file that nobody changes any more.
#[derive(Debug)]
pub struct Map(memmap2::Mmap);

impl Map {
    /// Maps a complete generation.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: a generation is complete before it gets the name under which it is opened here, and neither this module nor
        // anything else of the project writes to it or cuts it after that; it is only ever unlinked, which leaves the mapping whole.
        // The directory belongs to the store, which is readable and writable by its owner alone.
        let map = unsafe { memmap2::Mmap::map(&file) }?;
        Ok(Self(map))
    }
}

impl std::ops::Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
