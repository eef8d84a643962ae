// Included by the build script as well.

/// Name of the deno_core extension whose scripts are in the snapshot. The runtime that restores it must declare an extension
/// of this name.
pub const EXTENSION: &str = "zero_frame";
