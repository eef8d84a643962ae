//! Paths inside a workspace.
//!
//! A [`WorkspacePath`] is relative to the workspace root, uses `/`, and is normal by construction: no `.` or `..`, no
//! empty component, no NUL. It holds raw bytes, because names on Linux need not be UTF-8. Its text form writes a byte
//! that is not part of valid UTF-8 as `\xNN` and a backslash as `\\`, so that every name has exactly one text.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Error, ErrorKind};

/// A normalised path below the workspace root; the root itself is the empty path, shown as `.`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct WorkspacePath(Vec<u8>);

impl WorkspacePath {
    /// The workspace root.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Normalises raw bytes: drops `.` components and repeated or trailing slashes, and resolves `..` textually.
    ///
    /// # Errors
    /// `outside_workspace` for an absolute path or one that leaves the root; `invalid_input` for a NUL byte.
    pub fn from_raw(raw: &[u8]) -> Result<Self, Error> {
        if raw.contains(&0) {
            return Err(Error::new(ErrorKind::InvalidInput, "a path cannot contain a NUL byte"));
        }
        let outside = |why: &str| {
            Error::new(ErrorKind::OutsideWorkspace, format!("`{}` {why}", escape(raw))).with_path(escape(raw))
        };
        if raw.first() == Some(&b'/') {
            return Err(outside("is absolute; paths are relative to the workspace root"));
        }
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in raw.split(|&b| b == b'/') {
            match part {
                b"" | b"." => {}
                b".." if parts.pop().is_some() => {}
                b".." => return Err(outside("leaves the workspace root")),
                name => parts.push(name),
            }
        }
        Ok(Self(parts.join(&b'/')))
    }

    /// Returns the raw bytes; empty for the root.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path for use below the root's descriptor; `.` for the root.
    #[cfg(unix)]
    pub fn as_os_str(&self) -> &OsStr {
        use std::os::unix::ffi::OsStrExt;
        OsStr::from_bytes(if self.0.is_empty() { b"." } else { &self.0 })
    }

    /// Tells whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the directory that holds this entry; none for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let end = self.0.iter().rposition(|&b| b == b'/').unwrap_or(0);
        Some(Self(self.0[..end].to_vec()))
    }

    /// Returns the last component's raw bytes; none for the root.
    pub fn file_name(&self) -> Option<&[u8]> {
        self.0.rsplit(|&b| b == b'/').next().filter(|name| !name.is_empty())
    }

    /// Returns the bytes after the last dot of the file name, unless that dot begins the name.
    pub fn extension(&self) -> Option<&[u8]> {
        let name = self.file_name()?;
        let dot = name.iter().rposition(|&b| b == b'.').filter(|&at| at > 0)?;
        Some(&name[dot + 1..])
    }

    /// Appends one raw component.
    ///
    /// # Errors
    /// `invalid_input` if `name` is empty, `.`, `..`, or holds `/` or NUL.
    pub fn join(&self, name: &[u8]) -> Result<Self, Error> {
        if matches!(name, b"" | b"." | b"..") || name.iter().any(|b| matches!(b, 0 | b'/')) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("`{}` is not a file name", escape(name)),
            ));
        }
        let mut bytes = self.0.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Ok(Self(bytes))
    }

    /// Yields the components' raw bytes from the root down.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|&b| b == b'/').filter(|part| !part.is_empty())
    }

    /// Tells whether this path is `ancestor` or lies below it.
    pub fn is_within(&self, ancestor: &Self) -> bool {
        ancestor.is_root()
            || (self.0.starts_with(&ancestor.0) && matches!(self.0.get(ancestor.0.len()), None | Some(b'/')))
    }
}

/// Writes raw bytes as text: valid UTF-8 as it is, other bytes as `\xNN`, a backslash as `\\`.
pub fn escape(raw: &[u8]) -> String {
    let mut text = String::with_capacity(raw.len());
    for chunk in raw.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                text.push('\\');
            }
            text.push(c);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Reads what [`escape`] writes.
///
/// # Errors
/// `invalid_input` for a backslash that begins neither `\\` nor `\xNN`.
pub fn unescape(text: &str) -> Result<Vec<u8>, Error> {
    let mut raw = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'\\' {
            raw.push(first);
            rest = tail;
        } else if tail.first() == Some(&b'\\') {
            raw.push(b'\\');
            rest = &tail[1..];
        } else {
            let byte = (tail.first() == Some(&b'x'))
                .then(|| tail.get(1..3))
                .flatten()
                .and_then(|hex| std::str::from_utf8(hex).ok())
                .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
                .and_then(|hex| u8::from_str_radix(hex, 16).ok())
                .ok_or_else(|| {
                    Error::new(ErrorKind::InvalidInput, format!("`{text}`: directories are separated by `/`; a backslash in a name is written `\\\\`, a raw byte `\\xNN`"))
                })?;
            raw.push(byte);
            rest = &tail[3..];
        }
    }
    Ok(raw)
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            f.write_str(".")
        } else {
            f.write_str(&escape(&self.0))
        }
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkspacePath({self})")
    }
}

impl FromStr for WorkspacePath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "a path cannot be empty; the root is `.`",
            ));
        }
        Self::from_raw(&unescape(text)?)
    }
}

impl Serialize for WorkspacePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for WorkspacePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            Self::from_raw(&Vec::<u8>::deserialize(deserializer)?).map_err(D::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> WorkspacePath {
        text.parse().unwrap()
    }

    #[test]
    fn normal_forms() {
        for (given, normal) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            (".", "."),
            ("a/..", "."),
            ("a/../b/.", "b"),
        ] {
            assert_eq!(path(given).to_string(), normal, "{given}");
        }
    }

    #[test]
    fn what_leaves_the_root_is_refused() {
        for bad in ["..", "a/../..", "/etc/passwd", "../a"] {
            assert_eq!(
                bad.parse::<WorkspacePath>().unwrap_err().kind,
                ErrorKind::OutsideWorkspace,
                "{bad}"
            );
        }
        for bad in ["", "a\0b", "a\\b", "\\x4"] {
            assert_eq!(
                bad.parse::<WorkspacePath>().unwrap_err().kind,
                ErrorKind::InvalidInput,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn parts() {
        let p = path("src/a.b.rs");
        assert_eq!(
            (p.parent().unwrap(), p.file_name().unwrap(), p.extension().unwrap()),
            (path("src"), &b"a.b.rs"[..], &b"rs"[..])
        );
        assert_eq!(path("a").parent(), Some(WorkspacePath::root()));
        assert_eq!(path(".hidden").extension(), None);
        assert_eq!(WorkspacePath::root().parent(), None);
        assert!(path("a/b").is_within(&path("a")) && !path("ab").is_within(&path("a")));
    }

    proptest! {
        #[test]
        fn every_raw_name_has_one_text(raw in proptest::collection::vec(1u8.., 1..24)) {
            let text = escape(&raw);
            prop_assert_eq!(unescape(&text).unwrap(), raw.clone());
            if let Ok(p) = WorkspacePath::from_raw(&raw) {
                prop_assert_eq!(path(&p.to_string()), p);
            }
        }
    }
}
