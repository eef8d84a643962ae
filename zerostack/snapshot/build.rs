//! Makes the startup snapshot from `js/`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use deno_core::{Extension, ExtensionFileSource};

mod extension {
    include!("src/extension.rs");
}

/// The scripts in the order they run. Names starting with `ext:` mark frames of stack traces that a cell never sees.
const SCRIPTS: [(&str, &str); 9] = [
    ("ext:zero/00_primordials.js", "js/00_primordials.js"),
    ("ext:zero/10_errors.js", "js/10_errors.js"),
    ("ext:zero/20_json.js", "js/20_json.js"),
    ("ext:zero/21_intl.js", "js/21_intl.js"),
    ("ext:zero/30_console.js", "js/30_console.js"),
    ("ext:zero/40_encoding.js", "js/40_encoding.js"),
    ("ext:zero/41_url.js", "js/41_url.js"),
    ("ext:zero/42_abort.js", "js/42_abort.js"),
    ("ext:zero/50_z.js", "js/50_z.js"),
];
const LAST: (&str, &str) = ("ext:zero/60_install.js", "js/60_install.js");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=js");
    println!("cargo:rerun-if-changed=src/extension.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?).join("frame.snapshot");

    let mut sources = Vec::new();
    for (name, path) in SCRIPTS.into_iter().chain([LAST]) {
        sources.push(ExtensionFileSource::new_computed(
            name,
            Arc::from(std::fs::read_to_string(path)?),
        ));
    }
    let options = deno_core::snapshot::CreateSnapshotOptions {
        cargo_manifest_dir: env!("CARGO_MANIFEST_DIR"),
        startup_snapshot: None,
        skip_op_registration: false,
        extensions: vec![Extension {
            name: extension::EXTENSION,
            js_files: Cow::Owned(sources),
            ..Extension::default()
        }],
        extension_transpiler: None,
        with_runtime_cb: None,
    };
    let snapshot = deno_core::snapshot::create_snapshot(options, None).map_err(|error| error.to_string())?;
    std::fs::write(out, snapshot.output)?;
    Ok(())
}
