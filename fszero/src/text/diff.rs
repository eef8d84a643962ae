//! Bounded unified diffs for receipts.

use std::time::{Duration, Instant};

use similar::{Algorithm, ChangeTag, DiffOp};

/// Longest diff of a receipt, in bytes.
const DIFF_BYTES: usize = 16 * 1024;

/// Longest differing middle that is compared line by line, in bytes; a longer one is only measured.
const MIDDLE_BYTES: usize = 128 * 1024;

const CONTEXT: usize = 3;

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns a unified diff of two texts without file headers; empty where either is no text, or both are equal.
///
/// What both have in common at the start and the end is found without a line-by-line comparison, so the cost follows
/// the change, not the file.
pub(crate) fn unified(before: &[u8], after: &[u8]) -> String {
    let is_text = |bytes: &[u8]| memchr::memchr(0, &bytes[..bytes.len().min(8192)]).is_none();
    if before == after || !is_text(before) || !is_text(after) {
        return String::new();
    }
    // Common whole lines at the start, less the context.
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let head = memchr::memrchr(b'\n', &before[..same]).map_or(0, |at| at + 1);
    let head = back(&before[..head], CONTEXT);
    let skipped = memchr::memchr_iter(b'\n', &before[..head]).count();
    let (a, b) = (&before[head..], &after[head..]);
    let limit = a.len().min(b.len());
    let same = a
        .iter()
        .rev()
        .zip(b.iter().rev())
        .take(limit)
        .take_while(|(a, b)| a == b)
        .count();
    let tail = memchr::memchr(b'\n', &a[a.len() - same..]).map_or(0, |at| same - at - 1);
    let tail = tail - forward(&a[a.len() - tail..], CONTEXT);
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    if a.len() + b.len() > MIDDLE_BYTES {
        return format!(
            "@@ {} bytes become {} from line {} on @@\n",
            a.len(),
            b.len(),
            skipped + 1
        );
    }
    let (Ok(a), Ok(b)) = (std::str::from_utf8(a), std::str::from_utf8(b)) else {
        return String::new();
    };
    print(&split(a), &split(b), skipped)
}

/// Start of the last `lines` whole lines.
fn back(bytes: &[u8], lines: usize) -> usize {
    memchr::memrchr_iter(b'\n', bytes).nth(lines).map_or(0, |at| at + 1)
}

/// Length of the first `lines` lines.
fn forward(bytes: &[u8], lines: usize) -> usize {
    memchr::memchr_iter(b'\n', bytes)
        .nth(lines - 1)
        .map_or(bytes.len(), |at| at + 1)
}

fn print(a: &[&str], b: &[&str], skipped: usize) -> String {
    let deadline = Instant::now() + Duration::from_millis(15);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, a, b, Some(deadline));
    let mut out = String::new();
    for group in similar::group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let span = |start: usize, end: usize| match end - start {
            0 => format!("{},0", start + skipped),
            1 => format!("{}", start + skipped + 1),
            n => format!("{},{n}", start + skipped + 1),
        };
        let old = span(first.old_range().start, last.old_range().end);
        let new = span(first.new_range().start, last.new_range().end);
        out.push_str(&format!("@@ -{old} +{new} @@\n"));
        for change in group.iter().flat_map(|op: &DiffOp| op.iter_changes(a, b)) {
            let line = change.value();
            out.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            out.push_str(line);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
            if out.len() > DIFF_BYTES {
                let mut cut = DIFF_BYTES;
                while !out.is_char_boundary(cut) {
                    cut -= 1;
                }
                out.truncate(out[..cut].rfind('\n').map_or(cut, |at| at + 1));
                out.push_str("… the diff goes on\n");
                return out;
            }
        }
    }
    out
}
