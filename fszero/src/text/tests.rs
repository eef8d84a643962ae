use super::*;
use proptest::prelude::*;
use zero_contracts::edit::Change;
use zero_contracts::json::from_text;

/// Gives a source in pieces of a few bytes, so that every border inside a text is met.
struct Pieces(Vec<u8>, usize, usize);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.2.min(buffer.len()).min(self.0.len() - self.1);
        buffer[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
        self.1 += n;
        Ok(n)
    }
}

fn edited_in(piece: usize, source: &[u8], change: &Change) -> Result<Vec<u8>, Error> {
    let open = || Ok(Box::new(Pieces(source.to_vec(), 0, piece)) as Box<dyn Read + Send>);
    let token = CancelToken::new();
    let plan = plan(change, &open, &token)?;
    assert_eq!((plan.base, plan.size), (Digest::of(source), source.len() as u64));
    let mut out = Vec::new();
    let copied = splice(&plan.splices, &mut *open()?, &mut out, &token)?;
    check_base(&plan, &copied)?;
    Ok(out)
}

fn edited(source: &[u8], change: &str) -> Result<Vec<u8>, Error> {
    let change: Change = from_text(change).unwrap();
    let whole = edited_in(1 << 20, source, &change);
    assert_eq!(edited_in(1, source, &change), whole, "pieces of one byte differ");
    assert_eq!(edited_in(3, source, &change), whole, "pieces of three bytes differ");
    whole
}

#[track_caller]
fn gives(source: &[u8], change: &str, expected: &[u8]) {
    let got = edited(source, change).unwrap_or_else(|e| panic!("{change}: {e}"));
    assert_eq!(
        String::from_utf8_lossy(&got),
        String::from_utf8_lossy(expected),
        "{change}"
    );
    assert_eq!(got, expected);
}

#[track_caller]
fn conflicts(source: &[u8], change: &str, word: &str) {
    let error = edited(source, change).unwrap_err();
    assert!(error.detail.contains(word), "{change}: {error}");
}

#[test]
fn bytes_are_found_and_stand_as_they_are() {
    // `\xff\n` is looked for as it is: in a file with `\r\n` it does not occur.
    gives(
        b"a\xff\r\nb\r\n",
        r#"{"find": {"base64": "/w=="}, "replacement": {"base64": "AAo="}}"#,
        b"a\0\n\r\nb\r\n",
    );
    conflicts(
        b"a\xff\r\nb\r\n",
        r#"{"find": {"base64": "/wo="}, "replacement": ""}"#,
        "does not occur",
    );
    // What is given as text is text, beside bytes too.
    gives(
        b"a\r\n\xff\r\n",
        r#"{"find": {"base64": "/w=="}, "replacement": "x\ny"}"#,
        b"a\r\nx\r\ny\r\n",
    );
    gives(
        b"a\xff\nb\n",
        r#"{"insertAfter": {"base64": "/w=="}, "content": {"base64": "/g=="}}"#,
        b"a\xff\n\xfe\nb\n",
    );
    // @@ -1 +1 @@ with the line \xff replaced by \xfe.
    gives(
        b"\xff\n",
        r#"{"patch": {"base64": "QEAgLTEgKzEgQEAKLf8KK/4K"}}"#,
        b"\xfe\n",
    );
    for blank in ["", "ICA=", "DQo="] {
        let change = format!(r#"{{"find": {{"base64": "{blank}"}}, "replacement": "x"}}"#);
        assert!(from_text::<Change>(&change).is_err(), "{change}");
    }
}

#[test]
fn whole_content_that_is_text_keeps_mark_and_newline_style() {
    let bytes = |raw: &[u8]| Content::Bytes(zero_contracts::content::Bytes(raw.to_vec()));
    let cases: [(&[u8], Content, &[u8]); 11] = [
        (b"a\r\nb\r\n", "x\ny\n".into(), b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\n".into(), b"x\r\ny\r\n"),
        // The end of the text is the file's end.
        (b"a\r\nb\r\n", "x\ny".into(), b"x\r\ny"),
        (b"a\r\nb\n", "x\ny\n".into(), b"x\ny\n"),
        (b"a\nb\n", "x\r\ny\n".into(), b"x\r\ny\n"),
        (b"a", "x\ny\n".into(), b"x\ny\n"),
        (b"\xef\xbb\xbfa\r\n", "x\n".into(), b"\xef\xbb\xbfx\r\n"),
        // A mark that is named does not double, and an emptied file is empty.
        (b"\xef\xbb\xbfa\n", "\u{feff}x\n".into(), b"\xef\xbb\xbfx\n"),
        (b"\xef\xbb\xbfa\n", "".into(), b""),
        (b"a\n", "\u{feff}x\n".into(), b"\xef\xbb\xbfx\n"),
        // Bytes name everything.
        (b"\xef\xbb\xbfa\r\n", bytes(b"x\n"), b"x\n"),
    ];
    for (source, content, expected) in cases {
        for piece in [1, 3, 1 << 20] {
            let open = || Ok(Box::new(Pieces(source.to_vec(), 0, piece)) as Box<dyn Read + Send>);
            let got = whole(&content, &open, &CancelToken::new()).unwrap();
            assert_eq!(got, expected, "{content:?} in place of {source:?}");
        }
    }
}

#[test]
fn replacement_is_literal_and_keeps_what_it_does_not_name() {
    gives(b"a", r#"{"find": "a", "replacement": "$&$1\\0"}"#, b"$&$1\\0");
    gives(b"a\r\nb\r\n", r#"{"find": "a", "replacement": "x"}"#, b"x\r\nb\r\n");
    gives(
        b"a\r\nb\r\nc",
        r#"{"find": "a\nb", "replacement": "x\ny\nz"}"#,
        b"x\r\ny\r\nz\r\nc",
    );
    gives(b"a\nb\r\nc\n", r#"{"find": "b\nc", "replacement": "d"}"#, b"a\nd\n");
    gives(
        b"a\nb\r\nc\n",
        r#"{"find": "a\nb", "replacement": "x\ny"}"#,
        b"x\ny\r\nc\n",
    );
    gives(
        b"\xef\xbb\xbfa\xff\xfea",
        r#"{"find": "a", "replacement": "é", "count": 2}"#,
        b"\xef\xbb\xbf\xc3\xa9\xff\xfe\xc3\xa9",
    );
    gives(
        b"aaaaa",
        r#"{"find": "aa", "replacement": "b", "count": "all"}"#,
        b"bba",
    );
    gives(b"x", r#"{"find": "x", "replacement": ""}"#, b"");
}

#[test]
fn counts_that_differ_are_told_with_their_places() {
    conflicts(
        b"x\nx\n",
        r#"{"find": "x", "replacement": "y"}"#,
        "there are 2 matches (lines 1, 2) where 1 was expected",
    );
    conflicts(
        b"x\n",
        r#"{"find": "x", "replacement": "y", "count": 2}"#,
        "there is 1 match (line 1) where 2 were expected",
    );
    conflicts(
        b"let  a = 1;\n",
        r#"{"find": "let a = 1;", "replacement": "y"}"#,
        "line 1 is the same but for white space",
    );
    conflicts(
        b"fn alpha() {}\nfn beta() {}\n",
        r#"{"find": "fn alphas() {}", "replacement": "y"}"#,
        "nearest is line 1",
    );
    conflicts(
        b"zzz",
        r#"{"find": "qqq", "replacement": "y", "count": "all"}"#,
        "does not occur",
    );
    let many = "x\n".repeat(50);
    conflicts(
        many.as_bytes(),
        r#"{"find": "x", "replacement": "y"}"#,
        "50 matches (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)",
    );
}

#[test]
fn lines_keep_their_ends() {
    for (source, change, expected) in [
        ("a\nb\nc\n", r#"{"lines": [2, 2], "content": "x"}"#, "a\nx\nc\n"),
        ("a\nb\nc\n", r#"{"lines": [2, 2], "content": "x\ny\n"}"#, "a\nx\ny\nc\n"),
        ("a\nb\nc\n", r#"{"lines": [2, 9], "content": "x"}"#, "a\nx\n"),
        ("a\nb\nc", r#"{"lines": [3, 3], "content": "x\n"}"#, "a\nb\nx"),
        ("a\nb\nc", r#"{"lines": [2, 3], "content": ""}"#, "a"),
        ("a\nb\nc\n", r#"{"lines": [2, 3], "content": ""}"#, "a\n"),
        ("a\nb\nc\n", r#"{"lines": [1, 3], "content": ""}"#, ""),
        (
            "a\r\nb\r\n",
            r#"{"lines": [1, 1], "content": "x\ny"}"#,
            "x\r\ny\r\nb\r\n",
        ),
        (
            "a\nb\r\nc\n",
            r#"{"lines": [2, 2], "content": "x\ny"}"#,
            "a\nx\r\ny\r\nc\n",
        ),
        (
            "\u{feff}a\nb\n",
            r#"{"lines": [1, 1], "content": "x"}"#,
            "\u{feff}x\nb\n",
        ),
        (
            "\u{feff}a\nb\n",
            r#"{"lines": [1, 1], "content": "\ufeffx"}"#,
            "\u{feff}x\nb\n",
        ),
        ("", r#"{"lines": [1, 1], "content": "x\n"}"#, "x\n"),
        ("a", r#"{"lines": [1, 1], "content": "b"}"#, "b"),
        ("\n\n", r#"{"lines": [2, 2], "content": "x"}"#, "\nx\n"),
    ] {
        gives(source.as_bytes(), change, expected.as_bytes());
    }
    conflicts(
        b"a\n",
        r#"{"lines": [2, 3], "content": "x"}"#,
        "starts at 2 but there are 1 lines",
    );
}

#[test]
fn insertions_go_beside_lines() {
    for (source, change, expected) in [
        ("a\nb\n", r#"{"insertBefore": 1, "content": "x"}"#, "x\na\nb\n"),
        ("a\nb\n", r#"{"insertAfter": 0, "content": "x\n"}"#, "x\na\nb\n"),
        ("a\nb\n", r#"{"insertAfter": 2, "content": "x"}"#, "a\nb\nx\n"),
        ("a\nb", r#"{"insertAfter": 2, "content": "x\n"}"#, "a\nb\nx"),
        ("a", r#"{"insertAfter": 1, "content": "b"}"#, "a\nb"),
        ("a\r\nb", r#"{"insertAfter": 2, "content": "x\ny"}"#, "a\r\nb\r\nx\r\ny"),
        (
            "a\nbcd\ne\n",
            r#"{"insertBefore": "c", "content": "x"}"#,
            "a\nx\nbcd\ne\n",
        ),
        (
            "a\nbcd\ne\n",
            r#"{"insertAfter": "a\nb", "content": "x"}"#,
            "a\nbcd\nx\ne\n",
        ),
        (
            "a\r\nb\r\n",
            r#"{"insertAfter": "a\n", "content": "x"}"#,
            "a\r\nx\r\nb\r\n",
        ),
        (
            "\u{feff}a\n",
            r#"{"insertBefore": 1, "content": "x"}"#,
            "\u{feff}x\na\n",
        ),
        ("", r#"{"insertAfter": 0, "content": "x"}"#, "x"),
    ] {
        gives(source.as_bytes(), change, expected.as_bytes());
    }
    conflicts(b"a\na\n", r#"{"insertAfter": "a", "content": "x"}"#, "2 matches");
    conflicts(b"a\n", r#"{"insertAfter": 2, "content": "x"}"#, "there is no line 2");
}

#[test]
fn patches_need_exact_context() {
    let patch = r#"{"patch": "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+b2\n c\n@@ -5,2 +6,1 @@\n e\n-f\n"}"#;
    gives(b"a\nb\nc\nd\ne\nf\n", patch, b"a\nB\nb2\nc\nd\ne\n");
    gives(
        b"a\r\nb\r\nc\r\nd\r\ne\r\nf\r\n",
        patch,
        b"a\r\nB\r\nb2\r\nc\r\nd\r\ne\r\n",
    );
    gives(b"0\n0\na\nb\nc\nd\ne\nf\n", patch, b"0\n0\na\nB\nb2\nc\nd\ne\n");
    conflicts(b"a\nb \nc\nd\ne\nf\n", patch, "hunk 1 does not fit anywhere");
    conflicts(b"0\na\nb\nc\na\nb\nc\n", patch, "fits at lines 2 and 5");
    gives(
        b"a\nb",
        r#"{"patch": "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n"}"#,
        b"a\nc\n",
    );
    gives(
        b"a\nb\n",
        r#"{"patch": "@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n"}"#,
        b"a\nc",
    );
    gives(b"", r#"{"patch": "@@ -0,0 +1,2 @@\n+a\n+b\n"}"#, b"a\nb\n");
    gives(
        b"\xef\xbb\xbfa\n",
        r#"{"patch": "@@ -1 +1 @@\n-a\n+b\n"}"#,
        b"\xef\xbb\xbfb\n",
    );
    for bad in [
        "nothing",
        "@@ -1 +1 @@\n-a\n",
        "@@ -1 +1 @@\n-a\n+b\n+c\n",
        "@@ bad @@\n",
        "@@ -1 +1 @@\n*a\n",
    ] {
        let change = Change::Patch { patch: bad.into() };
        let error = edited_in(9, b"a\n", &change).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::InvalidInput), "{bad:?}: {error}");
    }
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => Just(b"a".to_vec()), 4 => Just(b"b".to_vec()), 3 => Just(b"\n".to_vec()), 2 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()), 1 => Just(b"\xff".to_vec()), 1 => Just(b"\xef\xbb\xbf".to_vec()), 1 => Just("é".as_bytes().to_vec())
    ];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn replacing_all_equals_the_obvious_loop(source in text(), find in "[ab]{1,3}", replacement in "[abc$]{0,3}", piece in 1..9_usize) {
        let change = Change::Replace {
            find: find.clone().into(),
            replacement: replacement.clone().into(),
            count: Count::All,
        };
        let mut expected = Vec::new();
        let (mut at, mut count) = (0, 0);
        while at < source.len() {
            if source[at..].starts_with(find.as_bytes()) {
                expected.extend_from_slice(replacement.as_bytes());
                at += find.len();
                count += 1;
            } else {
                expected.push(source[at]);
                at += 1;
            }
        }
        match edited_in(piece, &source, &change) {
            Ok(got) => prop_assert_eq!(got, expected),
            Err(e) => prop_assert!(count == 0 && e.kind == ErrorKind::Conflict),
        }
    }

    #[test]
    fn lines_change_only_those_lines(source in text(), first in 1..6_u64, more in 0..3_u64, content in "[xy\n]{0,4}", piece in 1..9_usize) {
        let lines = LineRange::new(first, first + more).unwrap();
        let change = Change::Lines { lines, content: Content::Text(content.clone()) };
        let body = source.strip_prefix(scan::BOM).unwrap_or(&source);
        let bom = source.len() - body.len();
        let all: Vec<&[u8]> = body.split_inclusive(|&b| b == b'\n').collect();
        let total = all.len().max(1) as u64;
        match edited_in(piece, &source, &change) {
            Err(e) => prop_assert!(first > total && e.kind == ErrorKind::InvalidInput),
            Ok(got) => {
                prop_assert!(first <= total);
                prop_assert_eq!(&got[..bom], &source[..bom]);
                let rest = &got[bom..];
                let head: Vec<u8> = all.iter().take(first as usize - 1).copied().flatten().copied().collect();
                let tail: Vec<u8> = all.iter().skip((first + more) as usize).copied().flatten().copied().collect();
                // Only the line end before a removed end may go.
                let trimmed = head.strip_suffix(b"\n").map(|h| h.strip_suffix(b"\r").unwrap_or(h)).unwrap_or(&head);
                prop_assert!(rest.starts_with(&head) || (content.is_empty() && rest == trimmed));
                prop_assert!(rest.ends_with(&tail));
                if !content.is_empty() && !content.ends_with("\n\n") && !rest.is_empty() && !body.is_empty() {
                    // A text whose last line is empty cannot lack the line end of the one before.
                    let cut = rest.strip_suffix(b"\n").map(|r| r.strip_suffix(b"\r").unwrap_or(r));
                    let last_empty = cut.is_some_and(|r| r.is_empty() || r.ends_with(b"\n"));
                    prop_assert!(rest.ends_with(b"\n") == body.ends_with(b"\n") || (last_empty && !body.ends_with(b"\n")));
                }
            }
        }
    }

    #[test]
    fn a_diff_of_two_texts_is_a_patch_from_one_to_the_other(
        before in proptest::collection::vec("[abc]{0,2}", 0..30), after in proptest::collection::vec("[abc]{0,2}", 0..30),
        newline in any::<(bool, bool)>(),
    ) {
        let join = |lines: &[String], newline: bool| {
            let mut text = lines.join("\n");
            if newline && !text.is_empty() {
                text.push('\n');
            }
            text
        };
        let (before, after) = (join(&before, newline.0), join(&after, newline.1));
        let patch = diff::unified(before.as_bytes(), after.as_bytes());
        if before != after {
            let got = edited_in(7, before.as_bytes(), &Change::Patch { patch: patch.clone().into() });
            prop_assert_eq!(got.map(|got| String::from_utf8(got).unwrap()), Ok(after), "{}", patch);
        }
    }

    #[test]
    fn nothing_panics(source in text(), change in "[-+ @0-9,a-b\n\\\\]{0,60}", line in 0..5_u64, piece in 1..5_usize) {
        for change in [
            Change::Patch { patch: change.clone().into() },
            Change::InsertAfter { anchor: Anchor::Line(line), content: Content::Text(change.clone()) },
            Change::InsertBefore { anchor: Anchor::Text(change.clone().into()), content: Content::Text("x".into()) },
        ] {
            let _ = edited_in(piece, &source, &change);
        }
    }
}
