//! A JSON text as a tree of places in it. Nothing is copied; order, spelling and white space of the text stay.

use std::ops::Range;

use zero_contracts::{Error, ErrorKind};

/// Kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number, `true`, `false` or `null`.
    Scalar,
    String,
    Array,
    Object,
}

/// One value.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub kind: Kind,
    /// Its bytes.
    pub start: usize,
    pub end: usize,
    /// Where its member starts (its key), or it does itself.
    pub member: usize,
    /// The container around it; itself for the outermost.
    pub parent: usize,
    /// Number of containers around it.
    pub depth: u32,
    /// The node after it and all it holds; its first child, if any, is the next node.
    pub skip: usize,
}

/// A text and its values in order of their starts.
pub(crate) struct Tree<'a> {
    pub text: &'a str,
    pub nodes: Vec<Node>,
}

impl<'a> Tree<'a> {
    /// Takes a text that is known to be valid JSON.
    pub(crate) fn of_valid(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut member = None;
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            let kind = match bytes[at] {
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => {
                    at += 1;
                    continue;
                }
                b']' | b'}' => {
                    at += 1;
                    if let Some(container) = open.pop() {
                        nodes[container].end = at;
                        nodes[container].skip = nodes.len();
                    }
                    continue;
                }
                b'"' => {
                    at = string_end(bytes, at);
                    let in_object = open.last().is_some_and(|container| nodes[*container].kind == Kind::Object);
                    if in_object && member.is_none() {
                        member = Some(start);
                        continue;
                    }
                    Kind::String
                }
                b'[' => {
                    at += 1;
                    Kind::Array
                }
                b'{' => {
                    at += 1;
                    Kind::Object
                }
                _ => {
                    at += bytes[at..].iter().take_while(|byte| !b" \t\r\n,:]}".contains(byte)).count().max(1);
                    Kind::Scalar
                }
            };
            nodes.push(Node {
                kind,
                start,
                end: at,
                member: member.take().unwrap_or(start),
                parent: open.last().copied().unwrap_or(0),
                depth: open.len() as u32,
                skip: nodes.len() + 1,
            });
            if matches!(kind, Kind::Array | Kind::Object) {
                open.push(nodes.len() - 1);
            }
        }
        Self { text, nodes }
    }

    /// Takes a text if it is valid JSON.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str::<Skipped>(text).ok()?;
        Some(Self::of_valid(text))
    }

    /// Returns the children of a container, in order.
    pub(crate) fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes[node].skip;
        let mut child = node + 1;
        std::iter::from_fn(move || {
            let this = (child < end).then_some(child)?;
            child = self.nodes[this].skip;
            Some(this)
        })
    }

    /// Returns the key of a member with its quotes.
    pub(crate) fn key(&self, node: usize) -> &'a str {
        let node = &self.nodes[node];
        let end = string_end(self.text.as_bytes(), node.member).min(node.start);
        &self.text[node.member..end]
    }
}

/// Any JSON value, read and forgotten.
type Skipped = serde::de::IgnoredAny;

/// Returns the place after a string that starts at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or(&[])) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Returns the bytes of the value at an RFC 6901 pointer.
///
/// # Errors
/// `invalid_input` for a malformed pointer, `not_found` if nothing is there.
pub(crate) fn pointer(tree: &Tree<'_>, pointer: &str) -> Result<Range<usize>, Error> {
    let invalid = |what: &str| Error::invalid(format!("`{pointer}` is no JSON pointer: {what}")).with_path("pointer");
    let missing = |at: &str| Error::new(ErrorKind::NotFound, format!("nothing at `{at}`")).with_path(pointer);
    let mut node = 0;
    if tree.nodes.is_empty() {
        return Err(missing(""));
    }
    if pointer.is_empty() {
        return Ok(tree.nodes[0].start..tree.nodes[0].end);
    }
    let rest = pointer.strip_prefix('/').ok_or_else(|| invalid("it is empty or starts with `/`"))?;
    let mut passed = String::new();
    for token in rest.split('/') {
        let unescaped = unescape(token).ok_or_else(|| invalid("`~` is written `~0` and `/` is written `~1`"))?;
        passed.push('/');
        passed.push_str(token);
        let child = match tree.nodes[node].kind {
            Kind::Object => tree
                .children(node)
                // Of a key that occurs twice, readers take the last.
                .filter(|child| serde_json::from_str::<String>(tree.key(*child)).is_ok_and(|key| key == unescaped))
                .last(),
            Kind::Array => {
                let plain = token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
                let index: Option<usize> = plain.then(|| token.parse().ok()).flatten();
                index.and_then(|index| tree.children(node).nth(index))
            }
            Kind::Scalar | Kind::String => None,
        };
        node = child.ok_or_else(|| missing(&passed))?;
    }
    Ok(tree.nodes[node].start..tree.nodes[node].end)
}

fn unescape(token: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#" {"a": [1, "x\"]", {"b/c~": null}], "d": {}, "a\u0062": -1.5e3 } "#;

    #[test]
    fn values_lie_where_they_are() {
        let tree = Tree::parse(TEXT).unwrap();
        let found = |at: &str| TEXT[pointer(&tree, at).unwrap()].to_owned();
        assert_eq!(found(""), TEXT.trim());
        assert_eq!(found("/a"), r#"[1, "x\"]", {"b/c~": null}]"#);
        assert_eq!(found("/a/1"), r#""x\"]""#);
        assert_eq!(found("/a/2/b~1c~0"), "null");
        assert_eq!(found("/d"), "{}");
        assert_eq!(found("/ab"), "-1.5e3");
    }

    #[test]
    fn what_is_not_there_is_not_found_and_what_is_no_pointer_is_invalid() {
        let tree = Tree::parse(TEXT).unwrap();
        let kind = |at: &str| pointer(&tree, at).unwrap_err().kind;
        for missing in ["/z", "/a/3", "/a/01", "/a/-", "/a/0/0", "/"] {
            assert_eq!(kind(missing), ErrorKind::NotFound, "{missing}");
        }
        for malformed in ["a", "/a~", "/~2"] {
            assert_eq!(kind(malformed), ErrorKind::InvalidInput, "{malformed}");
        }
    }

    #[test]
    fn what_is_no_json_is_no_tree() {
        for text in ["", "{", "[1,]", "{\"a\" 1}", "nul", "1 2"] {
            assert!(Tree::parse(text).is_none(), "{text}");
        }
    }
}
