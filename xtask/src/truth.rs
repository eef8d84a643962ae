//! `cargo xtask truth`: the structure engine's answers against compiler-grade ground truth.
//!
//! Owns the command's arguments; the scorer itself is `graphzero::truth`, which asks the engine as any cell would.

/// Scores every pair of `--truth FILE --source DIR`; `--list RELATION` prints each pair that differs.
///
/// # Errors
/// A message for wrong arguments, unreadable files and errors of the engine.
pub fn run(arguments: &[String]) -> Result<(), String> {
    graphzero::truth::run(arguments, &mut |row| println!("{row}")).map(drop).map_err(|error| error.to_string())
}
