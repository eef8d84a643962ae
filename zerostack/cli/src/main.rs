//! Operator CLI.
fn main() {}
