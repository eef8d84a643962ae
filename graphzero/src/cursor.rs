//! Cursors: a page is an offset into an ordered answer that is computed again, so a cursor holds no state here.
//!
//! A cursor names the query it belongs to and the state of the files it was made from. When the files have changed, the
//! order may have, too, and the honest answer is a retryable conflict.

use zero_contracts::find::FindRequest;
use zero_contracts::{Digest, Error, ErrorKind};

/// What a cursor is bound to.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    query: u64,
    files: u64,
}

impl Binding {
    /// Binds to a request and to a fingerprint of the files that were looked at.
    pub fn new(request: &FindRequest, files: Digest) -> Self {
        let mut plain = request.clone();
        plain.options.next = None;
        plain.options.limit = None;
        let text = serde_json::to_vec(&plain).unwrap_or_default();
        Self {
            query: short(Digest::of(&text)),
            files: short(files),
        }
    }

    /// Writes the cursor of the page that begins at an offset.
    pub fn cursor(self, offset: usize) -> String {
        format!("g1.{offset:x}.{:016x}.{:016x}", self.query, self.files)
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// `invalid_input` for what is none or belongs to another query; a retryable `conflict` when files changed.
    pub fn offset(self, cursor: &str) -> Result<usize, Error> {
        let invalid = |why: &str| Error::invalid(format!("`{cursor}` {why}")).with_path("options.next");
        let mut parts = cursor.split('.');
        let (Some("g1"), Some(offset), Some(query), Some(files), None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(invalid("is no cursor of this engine"));
        };
        let number = |text: &str| u64::from_str_radix(text, 16).map_err(|_| invalid("is no cursor of this engine"));
        if number(query)? != self.query {
            return Err(invalid("belongs to another query or scope"));
        }
        if number(files)? != self.files {
            return Err(Error::new(
                ErrorKind::Conflict,
                "files in scope changed since the earlier page: ask again without `next`",
            )
            .with_path("options.next")
            .retryable(true));
        }
        usize::try_from(number(offset)?).map_err(|_| invalid("is out of range"))
    }
}

fn short(digest: Digest) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_be_bytes(eight)
}
