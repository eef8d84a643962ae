//! Files of the archive: hashing, unpacking, and putting them in place so that nobody ever sees half of one.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::pin::Pin;

/// How an archive is packed. The build script of crate `v8` takes the first two as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Gzip,
    Xz,
}

/// What is in the place where the build script looks.
pub(super) enum Found {
    Verified,
    /// A file with this digest, which is not a known one.
    Unknown(String),
    Absent,
}

/// What was verified once, so that 146 MB are not hashed again at every chore.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    modified_ns: u128,
    sha256: String,
}

impl Stamp {
    fn of(path: &Path, sha256: String) -> Result<Self> {
        let metadata = fs_err::metadata(path)?;
        let modified_ns = metadata
            .modified()?
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        Ok(Self {
            bytes: metadata.len(),
            modified_ns,
            sha256,
        })
    }

    fn path(archive: &Path) -> PathBuf {
        archive.with_extension("zerostack-stamp")
    }

    fn write(&self, archive: &Path) -> Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(cache_directory(archive)?)?;
        serde_json::to_writer(&mut file, self)?;
        file.persist(Self::path(archive))?;
        Ok(())
    }
}

/// The directory of the place where the build script looks; made if need be.
pub(super) fn cache_directory(destination: &Path) -> Result<&Path> {
    let directory = destination.parent().context("cargo's cache has no directory")?;
    fs_err::create_dir_all(directory)?;
    Ok(directory)
}

/// Looks at what is in place. Only a file that is not as the stamp remembers it is hashed.
pub(super) fn verified_in_place(destination: &Path, pin: &Pin) -> Result<Found> {
    if !destination.is_file() {
        return Ok(Found::Absent);
    }
    let stamp = fs_err::read(Stamp::path(destination))
        .ok()
        .and_then(|text| serde_json::from_slice::<Stamp>(&text).ok());
    if let Some(stamp) = stamp
        && Stamp::of(destination, stamp.sha256.clone())? == stamp
        && pin.accepts_in_place(&stamp.sha256)
    {
        return Ok(Found::Verified);
    }
    let mut file = fs_err::File::open(destination)?;
    let digest = sha256(&mut progress("verifying", file.metadata()?.len()).wrap_read(&mut file))?;
    if !pin.accepts_in_place(&digest) {
        return Ok(Found::Unknown(digest));
    }
    Stamp::of(destination, digest)?.write(destination)?;
    Ok(Found::Verified)
}

/// Verifies an archive, unpacks it and moves the result into place. A file there that is not a known one is kept beside it,
/// with the extension `unverified`.
pub(super) fn install(path: &Path, form: Form, name: &str, destination: &Path, pin: &Pin) -> Result<()> {
    let mut source = fs_err::File::open(path)?;
    let length = source.metadata()?.len();
    let digest = sha256(&mut progress("verifying", length).wrap_read(&mut source))?;
    if !pin.accepts(name, &digest) {
        bail!(
            "{} has SHA-256 {digest}, which third_party/v8/SHA256SUMS does not give for {name}: get it again, or set \
             ZEROSTACK_V8_SHA256 if it is what you want",
            path.display()
        );
    }
    let mut source = progress("unpacking", length).wrap_read(fs_err::File::open(path)?);
    let mut file = tempfile::NamedTempFile::new_in(cache_directory(destination)?)?;
    let unpacked = unpack(&mut source, form, file.as_file_mut())
        .with_context(|| format!("{} could not be unpacked", path.display()))?;
    // The packed form was verified above; the unpacked one must match as well where it is known.
    let plain = pin.file_name(Form::Plain);
    let verified = match form {
        Form::Xz if pin.knows(&plain) => pin.accepts(&plain, &unpacked),
        Form::Xz => true,
        Form::Plain | Form::Gzip => unpacked == digest,
    };
    if !verified {
        bail!(
            "{} unpacks to SHA-256 {unpacked}, which is not that of {plain}",
            path.display()
        );
    }
    file.as_file().sync_all()?;
    // The build script's files are readable by all, a temporary file is not.
    #[cfg(unix)]
    file.as_file()
        .set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    if let Found::Unknown(_) = verified_in_place(destination, pin)? {
        fs_err::rename(destination, destination.with_extension("unverified"))?;
    }
    file.persist(destination)
        .with_context(|| format!("{} could not be written", destination.display()))?;
    Stamp::of(destination, unpacked)?.write(destination)
}

/// Writes the content of an archive and returns its SHA-256.
fn unpack(source: &mut impl Read, form: Form, file: &mut std::fs::File) -> io::Result<String> {
    let mut into = Hashing {
        inner: io::BufWriter::new(file),
        hash: Sha256::new(),
    };
    match form {
        Form::Plain | Form::Gzip => io::copy(source, &mut into),
        Form::Xz => io::copy(&mut liblzma::read::XzDecoder::new(source), &mut into),
    }?;
    into.flush()?;
    Ok(hex(into.hash))
}

/// Fetches an address into a file.
pub(super) fn download(address: &str, into: &mut std::fs::File) -> Result<()> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .build()
        .into();
    let mut response = agent
        .get(address)
        .call()
        .with_context(|| format!("{address} cannot be fetched"))?;
    let length = response.body().content_length().unwrap_or(0);
    let body = response.body_mut().with_config().limit(1 << 30).reader();
    io::copy(&mut progress("downloading", length).wrap_read(body), into)
        .with_context(|| format!("{address} ended early"))?;
    Ok(())
}

/// SHA-256 of all that a reader gives, in hex.
pub(super) fn sha256(reader: &mut impl Read) -> Result<String> {
    let mut into = Hashing {
        inner: io::sink(),
        hash: Sha256::new(),
    };
    io::copy(reader, &mut into)?;
    Ok(hex(into.hash))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Hashing<W> {
    inner: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A bar on standard error; nothing where that is no terminal.
fn progress(what: &str, bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:>11} V8 [{bar:40}] {bytes}/{total_bytes}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(bytes).with_style(style).with_message(what.to_owned())
}
