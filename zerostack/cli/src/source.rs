//! Where the text of a cell comes from.

use std::io::Read;
use std::path::Path;

/// Reads a cell from a file, or from standard input.
///
/// # Errors
/// What was wrong, for a person.
pub fn read(file: Option<&Path>) -> Result<String, String> {
    let bytes = match file {
        Some(file) => std::fs::read(file).map_err(|e| format!("{}: {e}", file.display())),
        None => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map(|_| bytes).map_err(|e| format!("standard input: {e}"))
        }
    };
    String::from_utf8(bytes?).map_err(|e| format!("the cell is not UTF-8: {e}"))
}
