//! The border to the engine that owns structure and search.

use crate::find::{FindRequest, FindResult};
use crate::read::OutlineItem;
use crate::{CancelToken, Error, SourceView, TextRange, WorkspacePath};

/// The engine that answers `z.find`, outlines and symbol selectors.
///
/// It reads through a [`SourceView`] only, so that a cell's staged edits are seen; it never answers from content that is
/// not present, and never claims more than its coverage. All methods may be called from several threads.
pub trait StructureEngine: Send + Sync {
    /// Answers a query.
    ///
    /// # Errors
    /// `invalid_input` for a malformed query or scope, `not_found` for a scope without an entry, `unsupported` for a mode
    /// that this build does not have; `cancelled` and `deadline` from the token.
    fn find(&self, view: &dyn SourceView, request: &FindRequest, token: &CancelToken) -> Result<FindResult, Error>;

    /// Lists the symbols of one file's content in order; none if its language is unknown.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token.
    fn outline(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Vec<OutlineItem>>, Error>;

    /// Returns where a symbol (name or qualified tail) is defined in one file's content, in order.
    ///
    /// # Errors
    /// `unsupported` if the file's language is unknown; `cancelled` and `deadline` from the token.
    fn symbol(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        symbol: &str,
        token: &CancelToken,
    ) -> Result<Vec<TextRange>, Error>;

    /// Returns the places of syntax errors in one file's content; none if its language is unknown.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token.
    fn syntax_errors(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Vec<TextRange>>, Error>;

    /// Drops what is kept about contents that no file of a view has; returns the bytes freed on disk. Answers stay what they
    /// are. An engine that keeps nothing frees nothing.
    ///
    /// # Errors
    /// Errors of the view and of the file system; `cancelled` and `deadline` from the token.
    fn collect_absent(&self, view: &dyn SourceView, token: &CancelToken) -> Result<u64, Error> {
        let _ = (view, token);
        Ok(0)
    }
}
