//! An engine that fails, for what no tree can bring about.

use zerostack::contracts::find::{FindRequest, FindResult};
use zerostack::contracts::read::OutlineItem;
use zerostack::contracts::{CancelToken, Error, ErrorKind, SourceView, StructureEngine, TextRange, WorkspacePath};

/// Answers every call with one kind of error.
pub(crate) struct FailingStructure(pub ErrorKind);

impl FailingStructure {
    fn fail<T>(&self) -> Result<T, Error> {
        Err(Error::new(self.0, "this engine fails at everything"))
    }
}

impl StructureEngine for FailingStructure {
    fn find(&self, _: &dyn SourceView, _: &FindRequest, _: &CancelToken) -> Result<FindResult, Error> {
        self.fail()
    }

    fn outline(&self, _: &WorkspacePath, _: &[u8], _: &CancelToken) -> Result<Option<Vec<OutlineItem>>, Error> {
        self.fail()
    }

    fn symbol(&self, _: &WorkspacePath, _: &[u8], _: &str, _: &CancelToken) -> Result<Vec<TextRange>, Error> {
        self.fail()
    }

    fn syntax_errors(&self, _: &WorkspacePath, _: &[u8], _: &CancelToken) -> Result<Option<Vec<TextRange>>, Error> {
        self.fail()
    }
}
