//! `z.read`: files, directories, handles, snapshots and files outside.

mod directory;
mod handle;
pub(crate) mod searched;
mod select;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use zero_contracts::content::{Bytes, Content};
use zero_contracts::read::{
    Encoding, EntryKind, Extent, FileView, Newline, PartialRead, ReadOptions, ReadRequest, ReadResult, SnapshotRead,
    ViewTag,
};
use zero_contracts::source::Entry;
use zero_contracts::tokens::ProjectText;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, Handle, Result, SourceView, WorkspacePath, path};

use super::reply;
use crate::cell::{Cell, lock};
use crate::frame::CallReply;
use crate::targets::{Target, in_mount};
use searched::{Measured, Searched};
use select::Selection;

/// Tokens of a view's preview.
const PREVIEW_TOKENS: u64 = 1_000;

/// Bytes of a binary file that a preview shows, in hexadecimal.
const PREVIEW_BYTES: usize = 64;

/// Answers `z.read`.
pub(crate) fn read(cell: &Arc<Cell>, request: ReadRequest, token: &CancelToken) -> Result<CallReply> {
    let options = &request.options;
    let result = match cell.kernel.places.target(&request.target)? {
        Target::Path(path) => {
            let tree = Tree {
                view: cell.view(),
                mount: None,
            };
            read_path(cell, &tree, &path, options, token)
        }
        Target::Mount(mount, path) => read_mount(cell, &mount, &path, options, token),
        Target::Handle(handle) => handle::read(cell, handle, options, token),
        Target::External(path) => read_external(cell, &path, options, token),
    };
    answer(result.map_err(|e| {
        if e.path.is_none() {
            e.with_path(&request.target)
        } else {
            e
        }
    })?)
}

/// Bytes travel beside the JSON and become `Uint8Array`s.
fn answer(result: ReadResult) -> Result<CallReply> {
    match result {
        ReadResult::Whole(Content::Bytes(Bytes(bytes))) => Ok(CallReply::bytes(bytes)),
        ReadResult::Partial(PartialRead {
            content: Content::Bytes(Bytes(bytes)),
            range,
            of,
            digest,
            snapshot,
            next,
        }) => {
            let hollow = PartialRead {
                content: Content::Text(String::new()),
                range,
                of,
                digest,
                snapshot,
                next,
            };
            Ok(reply(&hollow)?.with_bytes("/content", bytes))
        }
        ReadResult::Snapshot(mut read) if matches!(read.content, Content::Bytes(_)) => {
            let bytes = std::mem::replace(&mut read.content, Content::Text(String::new())).into_bytes();
            Ok(reply(&read)?.with_bytes("/content", bytes))
        }
        other => reply(&other),
    }
}

/// Names the options that do not fit what is read.
fn refuse(options: &[(&str, bool)], what: &str) -> Result<()> {
    match options.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Error::invalid(format!("`{name}` does not apply to {what}")).with_path(format!("options.{name}")))
        }
    }
}

fn directory_options(options: &ReadOptions) -> [(&'static str, bool); 2] {
    [("recursive", options.recursive), ("ignored", options.ignored)]
}

fn file_options(options: &ReadOptions) -> [(&'static str, bool); 7] {
    [
        ("snapshot", options.snapshot),
        ("full", options.full),
        ("lines", options.lines.is_some()),
        ("bytes", options.bytes.is_some()),
        ("symbol", options.symbol.is_some()),
        ("match", options.match_text.is_some()),
        ("pointer", options.pointer.is_some()),
    ]
}

fn read_path(
    cell: &Cell,
    tree: &Tree<'_>,
    path: &WorkspacePath,
    options: &ReadOptions,
    token: &CancelToken,
) -> Result<ReadResult> {
    let view = &*tree.view;
    let Some(entry) = view.resolve(path)? else {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no `{path}`")).with_path(path));
    };
    if entry.kind == EntryKind::Directory {
        refuse(&file_options(options), "a directory")?;
        return directory::list(view, &entry.path, options, token).map(ReadResult::Directory);
    }
    refuse(&directory_options(options), "a file")?;
    let selection = Selection::of(options)?;
    if selection.is_none() && !options.full && entry.bytes > cell.budgets.inline_bytes {
        if options.snapshot {
            return Err(Error::new(
                ErrorKind::Budget,
                format!(
                    "`{path}` has {} bytes; a snapshot holds whole content up to {}: read a part of it, or `full`",
                    entry.bytes, cell.budgets.inline_bytes
                ),
            ));
        }
        return large_view(cell, tree, &entry, token).map(ReadResult::View);
    }
    let heap = cell.budgets.heap_bytes;
    if entry.bytes > heap {
        return Err(Error::new(
            ErrorKind::Budget,
            format!(
                "`{path}` has {} bytes, more than the heap budget of {heap}: read it without `full`, then by the handle's parts",
                entry.bytes
            ),
        ));
    }
    let name = tree.name(path)?;
    if let Some(selection) = selection.as_ref().filter(|selection| selection.is_match())
        && entry.stamp.settled
        && let Some(held) = { lock(&cell.held).file(&name, entry.stamp.value) }
    {
        let part = selection.select(cell, path, &held.bytes, token)?;
        lock(&cell.held).keep(&held, part.goes_on(), heap);
        return part.of(&held, held.snapshot()).map(ReadResult::Partial);
    }
    let content = view.read(path, token)?;
    // Both names are noted: an edit may use the symlink or its target.
    cell.note_read(name.clone(), content.digest, content.bytes.len() as u64);
    if content.entry.path != *path {
        lock(&cell.reads).note(tree.name(&content.entry.path)?, content.digest);
    }
    let mode = content.entry.mode;
    let snapshot = |cell: &Cell| -> Result<Handle> {
        cell.kernel.objects.put(&content.bytes)?;
        cell.kernel
            .files
            .snapshot_file(path, mode, content.digest, content.bytes.len() as u64)
    };
    if let Some(selection) = selection {
        let part = selection.select(cell, path, &content.bytes, token)?;
        let snapshot = snapshot(cell)?;
        if selection.is_match() && part.goes_on() && content.entry.stamp.settled {
            let held = Arc::new(Searched {
                digest: content.digest,
                measured: Measured::new(&content.bytes),
                file: Some((name, content.entry.stamp.value, snapshot)),
                bytes: content.bytes,
            });
            lock(&cell.held).keep(&held, true, heap);
            return part.of(&held, Some(snapshot)).map(ReadResult::Partial);
        }
        return part
            .partial(&content.bytes, content.digest, Some(snapshot))
            .map(ReadResult::Partial);
    }
    if options.snapshot {
        let (encoding, newline) = (encoding(&content.bytes), newline(&content.bytes));
        return Ok(ReadResult::Snapshot(SnapshotRead {
            path: path.clone(),
            snapshot: snapshot(cell)?,
            digest: content.digest,
            encoding,
            newline,
            bom: content.bytes.starts_with(b"\xef\xbb\xbf"),
            mode,
            bytes: content.bytes.len() as u64,
            lines: lines(&content.bytes),
            content: Content::from_bytes(content.bytes.to_vec()),
        }));
    }
    if encoding(&content.bytes) == Encoding::Binary && !options.full {
        let digest = cell.kernel.objects.put(&content.bytes)?;
        return Ok(ReadResult::View(binary_view(
            digest,
            &content.bytes,
            content.bytes.len() as u64,
        )));
    }
    Ok(ReadResult::Whole(whole(content.bytes.to_vec())))
}

/// Reads from a read-only mount: nothing of it can guard an edit.
fn read_mount(
    cell: &Cell,
    mount: &str,
    path: &WorkspacePath,
    options: &ReadOptions,
    token: &CancelToken,
) -> Result<ReadResult> {
    refuse(&[("snapshot", options.snapshot)], "a mount, which nothing can change")?;
    let tree = Tree {
        view: Arc::clone(cell.kernel.mount(mount)?),
        mount: Some(mount),
    };
    let mut result = read_path(cell, &tree, path, options, token).map_err(|e| match &e.path {
        Some(at) if *at == path.to_string() => {
            let at = in_mount(mount, at);
            e.with_path(at)
        }
        _ => e,
    })?;
    match &mut result {
        ReadResult::Partial(part) => part.snapshot = None,
        ReadResult::Directory(listing) => {
            for entry in &mut listing.entries {
                entry.path = tree.name(&entry.path)?;
            }
        }
        _ => {}
    }
    Ok(result)
}

/// A tree that is read: the cell's own, or a mount.
struct Tree<'a> {
    view: Arc<dyn SourceView>,
    mount: Option<&'a str>,
}

impl Tree<'_> {
    /// Names a path of this tree as a cell does.
    fn name(&self, path: &WorkspacePath) -> Result<WorkspacePath> {
        match self.mount {
            None => Ok(path.clone()),
            Some(mount) => in_mount(mount, &path.to_string()).parse(),
        }
    }
}

fn read_external(cell: &Cell, file: &Path, options: &ReadOptions, token: &CancelToken) -> Result<ReadResult> {
    use std::os::unix::ffi::OsStrExt;
    cell.kernel.config.external_reads.check(file)?;
    refuse(&directory_options(options), "a file outside the workspace")?;
    refuse(
        &[("snapshot", options.snapshot), ("symbol", options.symbol.is_some())],
        "a file outside the workspace, which is read as bytes only",
    )?;
    let shown = path::escape(file.as_os_str().as_bytes());
    let mut reader = cell.kernel.files.open_external(file)?;
    lock(&cell.record).external_reads.push(shown.clone());
    let selection = Selection::of(options)?;
    let inline = if options.full || selection.is_some() {
        cell.budgets.heap_bytes
    } else {
        cell.budgets.inline_bytes
    };
    let mut head = Vec::new();
    let mut limited = (&mut reader).take(inline + 1);
    limited.read_to_end(&mut head).map_err(|e| Error::from_io(&e, &shown))?;
    token.check()?;
    cell.bytes_read.fetch_add(head.len() as u64, Ordering::Relaxed);
    if head.len() as u64 > inline {
        if inline == cell.budgets.heap_bytes {
            return Err(Error::new(
                ErrorKind::Budget,
                format!("`{shown}` is larger than the heap budget of {inline} bytes"),
            ));
        }
        let (digest, bytes) = cell
            .kernel
            .objects
            .put_from(&mut head.as_slice().chain(reader), token)?;
        return stored_view(cell, digest, bytes, &head, None, token).map(ReadResult::View);
    }
    if let Some(selection) = selection {
        let part = selection.select(cell, &WorkspacePath::root(), &head, token)?;
        return part.partial(&head, Digest::of(&head), None).map(ReadResult::Partial);
    }
    if encoding(&head) == Encoding::Binary && !options.full {
        let digest = cell.kernel.objects.put(&head)?;
        return Ok(ReadResult::View(binary_view(digest, &head, head.len() as u64)));
    }
    Ok(ReadResult::Whole(whole(head)))
}

/// A string if the bytes are text, else bytes.
fn whole(bytes: Vec<u8>) -> Content {
    match encoding(&bytes) {
        Encoding::Utf8 => Content::from_bytes(bytes),
        Encoding::Binary => Content::Bytes(Bytes(bytes)),
    }
}

/// Stores a large file while reading it and shows a projection.
fn large_view(cell: &Cell, tree: &Tree<'_>, entry: &Entry, token: &CancelToken) -> Result<FileView> {
    let view = &*tree.view;
    let mut reader = view.open(&entry.path)?;
    let mut head = Vec::new();
    (&mut reader)
        .take(8 * 1024)
        .read_to_end(&mut head)
        .map_err(|e| Error::from_io(&e, &entry.path))?;
    let (digest, bytes) = cell
        .kernel
        .objects
        .put_from(&mut head.as_slice().chain(reader), token)?;
    // A stamp settles by the mere passing of time.
    let same = |now: &Entry| (now.kind, now.bytes, now.stamp.value) == (entry.kind, entry.bytes, entry.stamp.value);
    if !view.resolve(&entry.path)?.as_ref().is_some_and(same) {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!("`{}` changed while it was read", entry.path),
        )
        .retryable(true));
    }
    cell.note_read(tree.name(&entry.path)?, digest, bytes);
    stored_view(cell, digest, bytes, &head, Some(&entry.path), token)
}

/// Shows a projection of stored bytes whose first few are `head`.
fn stored_view(
    cell: &Cell,
    digest: Digest,
    bytes: u64,
    head: &[u8],
    path: Option<&WorkspacePath>,
    token: &CancelToken,
) -> Result<FileView> {
    if looks_binary(head) {
        return Ok(binary_view(digest, head, bytes));
    }
    let kernel = &cell.kernel;
    let outline = match path {
        Some(path) if bytes <= cell.budgets.heap_bytes => kernel
            .structure
            .outline(path, &kernel.objects.get(&digest)?, token)?
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    let how = ProjectText {
        budget: PREVIEW_TOKENS,
        outline: &outline,
        ..ProjectText::default()
    };
    let projected = kernel.tokens.project_object(&digest, &how, &*kernel.objects, token)?;
    let mut counted = LineCount::default();
    std::io::copy(&mut kernel.objects.open(&digest)?, &mut counted)
        .map_err(|e| Error::from_io(&e, "counting lines"))?;
    Ok(FileView {
        kind: ViewTag::View,
        handle: Handle::blob(digest),
        bytes,
        lines: Some(counted.lines()),
        encoding: Encoding::Utf8,
        preview: projected.text,
        outline,
        omitted: projected.cuts.iter().map(|cut| cut.bytes).sum(),
    })
}

fn binary_view(digest: Digest, head: &[u8], bytes: u64) -> FileView {
    let shown = &head[..head.len().min(PREVIEW_BYTES)];
    let preview: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    FileView {
        kind: ViewTag::View,
        handle: Handle::blob(digest),
        bytes,
        lines: None,
        encoding: Encoding::Binary,
        preview: preview.join(" "),
        outline: Vec::new(),
        omitted: bytes - shown.len() as u64,
    }
}

/// Text is valid UTF-8 without NUL.
pub(super) fn encoding(bytes: &[u8]) -> Encoding {
    if bytes.contains(&0) || std::str::from_utf8(bytes).is_err() {
        Encoding::Binary
    } else {
        Encoding::Utf8
    }
}

/// Judges by the first bytes, which may end inside a character.
fn looks_binary(head: &[u8]) -> bool {
    head.contains(&0) || std::str::from_utf8(head).is_err_and(|e| e.error_len().is_some())
}

/// Lines of a text; a last one without a line end counts.
pub(super) fn lines(bytes: &[u8]) -> u64 {
    let mut counted = LineCount::default();
    counted.add(bytes);
    counted.lines()
}

fn extent(bytes: &[u8]) -> Extent {
    let lines = (encoding(bytes) == Encoding::Utf8).then(|| lines(bytes));
    Extent {
        lines,
        bytes: bytes.len() as u64,
    }
}

fn newline(bytes: &[u8]) -> Newline {
    let all = bytes.iter().filter(|&&b| b == b'\n').count();
    let crlf = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
    match (all, crlf) {
        (0, _) => Newline::None,
        (_, 0) => Newline::Lf,
        (all, crlf) if all == crlf => Newline::Crlf,
        _ => Newline::Mixed,
    }
}

#[derive(Default)]
struct LineCount {
    ends: u64,
    unfinished: bool,
}

impl LineCount {
    fn add(&mut self, bytes: &[u8]) {
        self.ends += bytes.iter().filter(|&&b| b == b'\n').count() as u64;
        if let Some(last) = bytes.last() {
            self.unfinished = *last != b'\n';
        }
    }

    fn lines(&self) -> u64 {
        self.ends + u64::from(self.unfinished)
    }
}

impl std::io::Write for LineCount {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_newlines() {
        for (text, count, style) in [
            ("", 0, Newline::None),
            ("a", 1, Newline::None),
            ("a\n", 1, Newline::Lf),
            ("a\r\nb", 2, Newline::Crlf),
            ("a\r\nb\n", 2, Newline::Mixed),
        ] {
            assert_eq!(
                (lines(text.as_bytes()), newline(text.as_bytes())),
                (count, style),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_cut_character_does_not_make_a_head_binary() {
        assert!(!looks_binary(&"é".as_bytes()[..1]));
        assert!(looks_binary(b"\xff"));
        assert!(looks_binary(b"a\0"));
    }
}
