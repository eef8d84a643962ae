//! `cargo xtask node`: the addon and the npm packages around it.
//!
//! Two packages, as napi-rs has it: `@zerostack/zero-kernel` (JavaScript and types) and one for each platform with the addon
//! and, beside it, the supervisor. Neither has an install script.

pub mod bench;
mod cell;
mod link;
pub mod test;
pub mod types;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub use link::stand_in_for_the_linker;

use crate::cargo::{build_supervisor, cargo, output, run, workspace};

/// The platform of this build, as the npm packages name it.
const PLATFORM: &str = "linux-x64-gnu";

/// The supervisor's program, which lies beside the addon.
const SUPERVISOR: &str = "zero-supervisor";

/// How the addon is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Quickly, for tests.
    Dev,
    /// As it is shipped.
    Dist,
}

impl Profile {
    /// The profile's name for cargo, and that of its directory.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Dev => ("dev", "debug"),
            Self::Dist => ("dist", "dist"),
        }
    }
}

/// The npm package's directory.
pub fn package() -> PathBuf {
    workspace().join("zerostack/node")
}

/// File name of the addon.
fn addon() -> String {
    format!("zero-kernel.{PLATFORM}.node")
}

/// Builds the addon and the supervisor as they are shipped, stages both packages below `target/node` and packs them.
pub fn node() -> Result<()> {
    pack(&build(Profile::Dist)?, &target()?.join("node"))
}

/// Writes the types of the package: what a host sees, and what a cell sees.
pub fn write_types() -> Result<()> {
    types::write()?;
    cell::write()
}

/// Stages and packs what lies beside the package's files, whatever profile it was built with.
pub fn pack_placed(to: &Path) -> Result<()> {
    let stripped = to.join("stripped.node");
    // A build for tests is twice the size for the sake of symbols that nobody looks at.
    run(Command::new("strip")
        .arg("-o")
        .args([&stripped, &package().join(addon())]))?;
    let placed = Built {
        addon: stripped,
        supervisor: package().join(SUPERVISOR),
    };
    pack(&placed, to)
}

fn pack(built: &Built, staged: &Path) -> Result<()> {
    for package in stage(built, staged)? {
        let packed = output(
            npm(&["pack", "--silent", "--pack-destination"])
                .arg(staged)
                .current_dir(&package),
        )?;
        let file = staged.join(packed.trim());
        let size = fs_err::metadata(&file)?.len();
        println!("{} ({:.1} MB)", file.display(), size as f64 / 1e6);
    }
    Ok(())
}

/// What a build made.
pub struct Built {
    /// The addon, under cargo's name.
    addon: PathBuf,
    /// The supervisor.
    supervisor: PathBuf,
}

/// Builds the addon, its exports cut down to the one symbol that Node looks up, and the supervisor.
pub fn build(profile: Profile) -> Result<Built> {
    let (name, directory) = profile.names();
    build_supervisor(name)?;
    let linker = std::env::current_exe().context("this program has no path")?;
    run(cargo(&[
        "rustc",
        "--quiet",
        "--profile",
        name,
        "--package",
        "zero-kernel-node",
        "--lib",
        "--",
        "-C",
    ])
    .arg(format!("linker={}", linker.display()))
    .env(link::EXPORTS, "napi_register_module_v1"))?;
    let built = target()?.join(directory);
    Ok(Built {
        addon: built.join("libzero_kernel_node.so"),
        supervisor: built.join(SUPERVISOR),
    })
}

/// Puts the addon and the supervisor beside the package's own files, where its loader looks first: for work on it.
pub fn place_beside(built: &Built) -> Result<()> {
    place(&built.addon, &package().join(addon()))?;
    place(&built.supervisor, &package().join(SUPERVISOR))
}

/// Lays out both packages as they are published and returns their directories.
fn stage(built: &Built, staged: &Path) -> Result<[PathBuf; 2]> {
    let [main, native] = ["zero-kernel", "native"].map(|name| staged.join(name));
    for directory in [&main, &native] {
        if directory.exists() {
            fs_err::remove_dir_all(directory)?;
        }
    }
    for directory in [&main.join("lib"), &native] {
        fs_err::create_dir_all(directory)?;
    }
    let package = package();
    fs_err::write(main.join("package.json"), manifest(&package)?)?;
    for file in [
        "README.md",
        "index.js",
        "index.mjs",
        "index.d.ts",
        "index.d.mts",
        "cell.d.ts",
    ] {
        fs_err::copy(package.join(file), main.join(file))?;
    }
    for entry in fs_err::read_dir(package.join("lib"))? {
        let entry = entry?;
        fs_err::copy(entry.path(), main.join("lib").join(entry.file_name()))?;
    }
    fs_err::copy(
        package.join("npm").join(PLATFORM).join("package.json"),
        native.join("package.json"),
    )?;
    place(&built.addon, &native.join(addon()))?;
    place(&built.supervisor, &native.join(SUPERVISOR))?;
    for directory in [&main, &native] {
        fs_err::copy(workspace().join("LICENSE"), directory.join("LICENSE"))?;
    }
    // What is compiled in: V8, SQLite, crates.
    fs_err::copy(workspace().join("THIRD_PARTY.md"), native.join("THIRD_PARTY.md"))?;
    Ok([main, native])
}

/// The package's manifest as it is published: it names the platform packages of exactly its own version, and nothing of its
/// workshop.
fn manifest(package: &Path) -> Result<String> {
    let mut manifest: serde_json::Value = serde_json::from_str(&fs_err::read_to_string(package.join("package.json"))?)?;
    let version = manifest["version"].clone();
    let fields = manifest.as_object_mut().context("package.json is not an object")?;
    fields.remove("devDependencies");
    fields.remove("scripts");
    let name = format!("@zerostack/zero-kernel-{PLATFORM}");
    fields.insert("optionalDependencies".into(), serde_json::json!({ name: version }));
    Ok(serde_json::to_string_pretty(&manifest)? + "\n")
}

/// Links a large file, or copies it where that cannot be done.
fn place(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs_err::remove_file(to)?;
    }
    if fs_err::hard_link(from, to).is_err() {
        fs_err::copy(from, to)?;
    }
    Ok(())
}

/// Cargo's target directory.
fn target() -> Result<PathBuf> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .current_dir(workspace())
        .no_deps()
        .exec()
        .context("asking cargo for its target directory")?;
    Ok(metadata.target_directory.into_std_path_buf())
}

/// An npm command; it neither asks nor reports.
pub fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command
        .args(arguments)
        .env("npm_config_fund", "false")
        .env("npm_config_audit", "false")
        .env("npm_config_update_notifier", "false");
    command
}

/// Fails unless there is a Node that the package supports.
pub fn require_node() -> Result<()> {
    let found = Command::new("node").arg("--version").output().ok();
    let version = found.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let major = version
        .as_deref()
        .and_then(|version| version.strip_prefix('v')?.split('.').next()?.parse::<u32>().ok());
    match (major, version) {
        (Some(20..), _) => Ok(()),
        (_, Some(version)) if !version.is_empty() => bail!("Node 20 or later is needed; this is {version}"),
        _ => bail!("Node 20 or later is needed, with npm"),
    }
}
