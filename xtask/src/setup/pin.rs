//! Which archive is wanted: the version of crate `v8` in the lock file, this platform, and the known digests.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::archive::Form;

/// The wanted archive and the digests it may have.
pub(super) struct Pin {
    pub version: String,
    pub target: String,
    /// SHA-256 by file name.
    sums: BTreeMap<String, String>,
    /// `ZEROSTACK_V8_SHA256`: accepted for any form.
    extra: Option<String>,
}

impl Pin {
    /// Reads the version from a lock file and the digests from a sums file; the platform is this one.
    pub(super) fn read(lock: &Path, sums: &Path) -> Result<Self> {
        let lock: toml_edit::DocumentMut = fs_err::read_to_string(lock)?
            .parse()
            .with_context(|| format!("{} is not a lock file", lock.display()))?;
        let packages = lock.get("package").and_then(toml_edit::Item::as_array_of_tables);
        let text = |table: &toml_edit::Table, key| table.get(key).and_then(toml_edit::Item::as_str).map(str::to_owned);
        let version = packages
            .into_iter()
            .flatten()
            .find(|package| text(package, "name").as_deref() == Some("v8"))
            .and_then(|package| text(package, "version"))
            .context("Cargo.lock has no crate `v8`: run `cargo fetch`")?;
        let sums = match fs_err::read_to_string(sums) {
            Ok(sums) => sums,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        let extra = std::env::var("ZEROSTACK_V8_SHA256").ok();
        Self::parse(&version, &host()?, &sums, extra.as_deref())
    }

    /// Makes a pin from the text of a sums file (`<64 hex>  <name>` a line).
    pub(super) fn parse(version: &str, target: &str, sums: &str, extra: Option<&str>) -> Result<Self> {
        let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut known = BTreeMap::new();
        for line in sums.lines().filter(|line| !line.trim().is_empty()) {
            match line.split_once("  ") {
                Some((digest, name)) if is_digest(digest) => {
                    known.insert(name.trim().to_owned(), digest.to_ascii_lowercase());
                }
                _ => bail!("third_party/v8/SHA256SUMS: `{line}` is not `<64 hex digits>  <file name>`"),
            }
        }
        let extra = match extra.map(|extra| extra.trim().to_ascii_lowercase()) {
            Some(extra) if !is_digest(&extra) => bail!("ZEROSTACK_V8_SHA256 is not 64 hex digits: `{extra}`"),
            extra => extra,
        };
        Ok(Self {
            version: version.to_owned(),
            target: target.to_owned(),
            sums: known,
            extra,
        })
    }

    /// Name of the archive in one form. deno_core turns on the feature `simdutf`, which is part of the name.
    pub(super) fn file_name(&self, form: Form) -> String {
        let stem = format!("rusty_v8_simdutf_release_{}", self.target);
        let plain = if self.target.contains("windows") {
            format!("{stem}.lib")
        } else {
            format!("lib{stem}.a")
        };
        match form {
            Form::Plain => plain,
            Form::Gzip => plain + ".gz",
            Form::Xz => plain + ".xz",
        }
    }

    /// Address of the upstream release, as the build script of crate `v8` makes it.
    pub(super) fn address(&self) -> String {
        let base = std::env::var("RUSTY_V8_MIRROR")
            .unwrap_or_else(|_| "https://github.com/denoland/rusty_v8/releases/download".to_owned());
        format!("{base}/v{}/{}", self.version, self.file_name(Form::Gzip))
    }

    /// Tells whether a file of this name can be verified at all.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.extra.is_some() || self.sums.contains_key(name)
    }

    /// Tells whether a file of this name may have this digest.
    pub(super) fn accepts(&self, name: &str, digest: &str) -> bool {
        self.sums.get(name).is_some_and(|known| known == digest) || self.extra.as_deref() == Some(digest)
    }

    /// Tells whether the build script may be given a file of this digest: the library itself, or its gzip.
    pub(super) fn accepts_in_place(&self, digest: &str) -> bool {
        [Form::Plain, Form::Gzip]
            .into_iter()
            .any(|form| self.accepts(&self.file_name(form), digest))
    }
}

/// The build script's name for an address in cargo's cache.
pub(super) fn escaped(address: &str) -> String {
    address
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// The platform that cargo builds for: `CARGO_BUILD_TARGET`, or rustc's own.
fn host() -> Result<String> {
    if let Ok(target) = std::env::var("CARGO_BUILD_TARGET") {
        return Ok(target);
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc)
        .arg("-vV")
        .output()
        .context("could not run rustc -vV")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV tells no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_build_script() {
        let pin = Pin::parse("150.4.0", "x86_64-unknown-linux-gnu", "", None).unwrap();
        assert_eq!(
            pin.file_name(Form::Plain),
            "librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a"
        );
        assert_eq!(escaped("https://a.b/c-d"), "https___a_b_c_d");
        let pin = Pin::parse("1", "x86_64-pc-windows-msvc", "", None).unwrap();
        assert_eq!(
            pin.file_name(Form::Gzip),
            "rusty_v8_simdutf_release_x86_64-pc-windows-msvc.lib.gz"
        );
    }

    #[test]
    fn bad_sums_are_refused() {
        assert!(Pin::parse("1", "t", "xyz  name\n", None).is_err());
        assert!(Pin::parse("1", "t", "", Some("12")).is_err());
        let digest = "AB".repeat(32);
        let pin = Pin::parse("1", "t", &format!("{digest}  n\n\n"), None).unwrap();
        assert!(pin.accepts("n", &digest.to_lowercase()) && !pin.accepts("m", &digest.to_lowercase()));
    }
}
