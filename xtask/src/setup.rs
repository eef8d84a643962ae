//! `cargo xtask setup`: makes sure that the static library of V8 is where the build script of crate `v8` finds it.
//!
//! That build script takes the file `$CARGO_HOME/.rusty_v8/<address of the release, escaped>` if it is there, and downloads
//! it otherwise. This puts it there, from the first of: cargo's own cache, the directory `ZEROSTACK_V8_DIR`,
//! `third_party/v8/`, the upstream release. What none of them has must be built from source, which is told and not
//! done: it takes over an hour and a toolchain of its own (`third_party/v8/README.md` has the recipe).
//!
//! Nothing is used whose SHA-256 is not listed in `third_party/v8/SHA256SUMS` or given in `ZEROSTACK_V8_SHA256`. Nothing else
//! in the workspace knows of any of this: after it, everything is plain cargo.

mod archive;
mod pin;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use self::archive::{Form, Found};
use self::pin::Pin;
use crate::cargo::workspace;

/// Where the archive may come from, as the environment says.
struct Sources {
    pin: Pin,
    /// Where the build script looks.
    destination: PathBuf,
    /// `ZEROSTACK_V8_DIR`.
    directory: Option<PathBuf>,
    /// `third_party/v8`.
    third_party: PathBuf,
    /// Address of the upstream release.
    upstream: String,
}

/// Puts V8's archive in place. Fast when it is there already.
///
/// # Errors
/// When no source has a verified archive: the message names each source, why it did not do, and what to do.
pub fn run() -> Result<()> {
    if let Some(path) = std::env::var_os("RUSTY_V8_ARCHIVE") {
        // The build script obeys this before anything else.
        eprintln!(
            "setup: V8 is taken from RUSTY_V8_ARCHIVE, unverified: {}",
            path.display()
        );
        return Ok(());
    }
    let third_party = workspace().join("third_party/v8");
    let pin = Pin::read(&workspace().join("Cargo.lock"), &third_party.join("SHA256SUMS"))?;
    let upstream = pin.address();
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir()
            .context("neither CARGO_HOME nor a home directory: set CARGO_HOME")?
            .join(".cargo"),
    };
    let destination = home.join(".rusty_v8").join(pin::escaped(&upstream));
    let directory = std::env::var_os("ZEROSTACK_V8_DIR").map(PathBuf::from);
    let sources = Sources {
        pin,
        destination,
        directory,
        third_party,
        upstream,
    };
    let taken = sources.provide(archive::download)?;
    eprintln!("setup: V8 {} for {}: {taken}", sources.pin.version, sources.pin.target);
    Ok(())
}

impl Sources {
    /// Tries the sources in turn and tells which one it took. `download` fetches the address into a file.
    fn provide(&self, download: impl Fn(&str, &mut std::fs::File) -> Result<()>) -> Result<String> {
        let mut failures = Vec::new();
        match archive::verified_in_place(&self.destination, &self.pin)? {
            Found::Verified => return Ok(format!("in cargo's cache ({})", self.destination.display())),
            Found::Unknown(digest) => failures.push(format!(
                "cargo's cache: {} has SHA-256 {digest}, which is not a known one",
                self.destination.display()
            )),
            Found::Absent => failures.push("cargo's cache: not there".to_owned()),
        }
        let directories = [
            ("ZEROSTACK_V8_DIR", self.directory.as_ref()),
            ("third_party/v8", Some(&self.third_party)),
        ];
        for (name, directory) in directories {
            let Some(directory) = directory else {
                failures.push(format!("{name}: not set"));
                continue;
            };
            match self.take_directory(directory) {
                Ok(Some(file)) => return Ok(format!("taken from {name} ({file})")),
                Ok(None) => {
                    let names = [Form::Plain, Form::Gzip, Form::Xz].map(|form| self.pin.file_name(form));
                    failures.push(format!(
                        "{name}: {} has none of {}",
                        directory.display(),
                        names.join(", ")
                    ));
                }
                Err(error) => failures.push(format!("{name}: {error:#}")),
            }
        }
        match self.take_upstream(&download) {
            Ok(()) => return Ok(format!("downloaded from {}", self.upstream)),
            Err(error) => failures.push(format!("the upstream release: {error:#}")),
        }
        bail!(
            "V8 {version} for {target} is not available:\n  - {failures}\n\
             Do one of these, and run `cargo xtask setup` again:\n  \
             - put {plain}, {plain}.xz or {plain}.gz into a directory and set ZEROSTACK_V8_DIR to it;\n  \
             - give this machine a way to {upstream};\n  \
             - build it from the source in crate `v8` {version}: third_party/v8/README.md has the recipe (over an hour), then \
             the first of these.\n\
             An archive that third_party/v8/SHA256SUMS does not list needs ZEROSTACK_V8_SHA256 set to the SHA-256 you expect of it.",
            version = self.pin.version,
            target = self.pin.target,
            failures = failures.join("\n  - "),
            plain = self.pin.file_name(Form::Plain),
            upstream = self.upstream,
        )
    }

    /// Takes the archive from a directory, in whichever form it is there; tells its name.
    fn take_directory(&self, directory: &std::path::Path) -> Result<Option<String>> {
        for form in [Form::Plain, Form::Gzip, Form::Xz] {
            let name = self.pin.file_name(form);
            let path = directory.join(&name);
            if path.is_file() {
                archive::install(&path, form, &name, &self.destination, &self.pin)?;
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    fn take_upstream(&self, download: &impl Fn(&str, &mut std::fs::File) -> Result<()>) -> Result<()> {
        let name = self.pin.file_name(Form::Gzip);
        if !self.pin.knows(&name) {
            bail!(
                "the digest of {name} is not in third_party/v8/SHA256SUMS, so a download could not be verified; set \
                 ZEROSTACK_V8_SHA256 to the SHA-256 that the release page gives for it"
            );
        }
        let directory = archive::cache_directory(&self.destination)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        download(&self.upstream, file.as_file_mut())?;
        archive::install(file.path(), Form::Gzip, &name, &self.destination, &self.pin)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use super::*;

    const LIBRARY: &[u8] = b"!<arch>\nnot really a library\n";

    struct World {
        root: tempfile::TempDir,
    }

    fn unreachable(_: &str, _: &mut std::fs::File) -> Result<()> {
        bail!("no route to host")
    }

    impl World {
        fn new() -> Self {
            Self {
                root: tempfile::tempdir().unwrap(),
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn put(&self, name: &str, bytes: &[u8]) {
            let path = self.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }

        /// Sources whose pins are the digests of these files' right contents.
        fn sources(&self, known: &[(&str, &[u8])]) -> Sources {
            let sums: String = known
                .iter()
                .map(|(name, bytes)| format!("{}  {name}\n", digest(bytes)))
                .collect();
            let pin = Pin::parse("1.2.3", "some-target", &sums, None).unwrap();
            let upstream = pin.address();
            Sources {
                destination: self.path("home/.rusty_v8/dest"),
                directory: Some(self.path("dir")),
                third_party: self.path("third_party"),
                pin,
                upstream,
            }
        }
    }

    fn digest(bytes: &[u8]) -> String {
        archive::sha256(&mut &*bytes).unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const PLAIN: &str = "librusty_v8_simdutf_release_some-target.a";
    const XZ: &str = "librusty_v8_simdutf_release_some-target.a.xz";
    const GZ: &str = "librusty_v8_simdutf_release_some-target.a.gz";

    fn placed(path: &Path) -> Vec<u8> {
        std::fs::read(path).unwrap()
    }

    #[test]
    fn the_archive_of_the_repository_is_unpacked_and_then_found_in_the_cache() {
        let world = World::new();
        let packed = xz(LIBRARY);
        world.put(&format!("third_party/{XZ}"), &packed);
        let sources = world.sources(&[(PLAIN, LIBRARY), (XZ, &packed)]);
        assert!(
            sources
                .provide(unreachable)
                .unwrap()
                .starts_with("taken from third_party/v8")
        );
        assert_eq!(placed(&sources.destination), LIBRARY);
        assert!(sources.provide(unreachable).unwrap().starts_with("in cargo's cache"));
        // The second look does not read the file: it believes the stamp as long as size and time are the same.
        assert!(sources.destination.with_extension("zerostack-stamp").is_file());
    }

    #[test]
    fn a_directory_of_the_user_comes_first() {
        let world = World::new();
        let packed = xz(LIBRARY);
        world.put(&format!("third_party/{XZ}"), &packed);
        world.put(&format!("dir/{PLAIN}"), LIBRARY);
        let sources = world.sources(&[(PLAIN, LIBRARY), (XZ, &packed)]);
        assert!(
            sources
                .provide(unreachable)
                .unwrap()
                .starts_with("taken from ZEROSTACK_V8_DIR")
        );
    }

    #[test]
    fn what_does_not_match_its_digest_is_never_used() {
        let world = World::new();
        world.put("home/.rusty_v8/dest", b"from who knows where");
        world.put(&format!("dir/{PLAIN}"), b"damaged");
        world.put(&format!("third_party/{XZ}"), b"\xfd7zXZ damaged");
        let sources = world.sources(&[(PLAIN, LIBRARY), (XZ, &xz(LIBRARY))]);
        let error = format!("{:#}", sources.provide(unreachable).unwrap_err());
        for part in [
            "cargo's cache: ",
            "ZEROSTACK_V8_DIR: ",
            "third_party/v8: ",
            "the upstream release: ",
            "SHA-256",
            "Do one of these",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
        assert_eq!(
            placed(&sources.destination),
            b"from who knows where",
            "untouched when there is nothing better"
        );
        // With something better, what was there is kept beside it.
        world.put(&format!("dir/{PLAIN}"), LIBRARY);
        sources.provide(unreachable).unwrap();
        assert_eq!(placed(&sources.destination), LIBRARY);
        assert_eq!(
            placed(&sources.destination.with_extension("unverified")),
            b"from who knows where"
        );
    }

    #[test]
    fn an_archive_that_unpacks_to_something_else_is_refused() {
        let world = World::new();
        let packed = xz(b"something else");
        world.put(&format!("third_party/{XZ}"), &packed);
        let sources = world.sources(&[(PLAIN, LIBRARY), (XZ, &packed)]);
        let error = format!("{:#}", sources.provide(unreachable).unwrap_err());
        assert!(
            error.contains(PLAIN) && error.contains(&digest(b"something else")),
            "{error}"
        );
        assert!(!sources.destination.exists());
    }

    #[test]
    fn a_change_after_the_stamp_is_noticed() {
        let world = World::new();
        world.put(&format!("dir/{PLAIN}"), LIBRARY);
        let sources = world.sources(&[(PLAIN, LIBRARY)]);
        sources.provide(unreachable).unwrap();
        std::fs::write(&sources.destination, b"changed").unwrap();
        assert!(
            sources
                .provide(unreachable)
                .unwrap()
                .starts_with("taken from ZEROSTACK_V8_DIR")
        );
        assert_eq!(placed(&sources.destination), LIBRARY);
    }

    #[test]
    fn the_release_is_downloaded_only_when_it_can_be_verified() {
        let world = World::new();
        let release = b"a gzip that the build script unpacks itself";
        let serve = |address: &str, file: &mut std::fs::File| {
            assert!(address.ends_with(&format!("/v1.2.3/{GZ}")), "{address}");
            Ok(file.write_all(release)?)
        };
        let error = format!("{:#}", world.sources(&[(PLAIN, LIBRARY)]).provide(serve).unwrap_err());
        assert!(error.contains("ZEROSTACK_V8_SHA256"), "{error}");
        let sources = world.sources(&[(GZ, release)]);
        assert!(sources.provide(serve).unwrap().starts_with("downloaded from"));
        assert_eq!(placed(&sources.destination), release);
        // A digest given by hand does as well.
        let world = World::new();
        let mut sources = world.sources(&[]);
        sources.pin = Pin::parse("1.2.3", "some-target", "", Some(&digest(release))).unwrap();
        sources.provide(serve).unwrap();
    }

    #[test]
    fn two_runs_at_once_do_not_disturb_each_other() {
        let world = World::new();
        let library = vec![7; 1 << 20];
        let packed = xz(&library);
        world.put(&format!("third_party/{XZ}"), &packed);
        let sources = world.sources(&[(PLAIN, &library), (XZ, &packed)]);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    sources.provide(unreachable).unwrap();
                    assert!(placed(&sources.destination) == library);
                });
            }
        });
        let left: Vec<_> = std::fs::read_dir(world.path("home/.rusty_v8"))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(left.len(), 2, "the archive and its stamp: {left:?}");
    }
}
