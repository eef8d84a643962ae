//! Structural search: a piece of code with metavariables, matched against syntax trees.
//!
//! `$NAME` stands for one node and `$$$NAME` (or `$$$`) for any number of siblings; the same name must stand for the same
//! text each time; a name that begins with `_` is not captured. The pattern is parsed by the language's own grammar, and
//! a node matches when its kind and its children match in order; comments and punctuation do not count. The rules follow
//! those of ast-grep (<https://ast-grep.github.io/guide/pattern-syntax.html>).

use std::collections::BTreeMap;

use tree_sitter::{Node, Tree};
use zero_contracts::Error;

use super::{Context, Found};
use crate::answer::Hit;
use crate::facts::Span;
use crate::facts_builder::words;
use crate::language::{self, Lang, Language, languages};
use crate::parse::{MAX_DEPTH, Parsing, errors};
use crate::pool;
use crate::world::WorldFileId;

/// What metavariables are written as while a grammar reads the pattern: identifiers in every language.
const MARK: &str = "µ";

/// A pattern in one language.
struct Pattern {
    source: String,
    tree: Tree,
}

/// Finds the nodes that match a pattern.
pub fn pattern(context: &Context<'_>) -> Result<Found, Error> {
    let query = context.request.query.trim();
    if query.is_empty() {
        return Err(Error::invalid("the pattern is empty").with_path("query"));
    }
    let mut patterns: Vec<(Lang, Pattern)> = Vec::new();
    let mut wanted: Vec<Lang> = Vec::new();
    for file in &context.world.files {
        let lang = file.facts.lang;
        if lang != Lang::Manifest && !wanted.contains(&lang) && context.scope.contains(&file.path) {
            wanted.push(lang);
        }
    }
    for &lang in &wanted {
        let Some(language) = languages().iter().find(|l| l.grammar(lang).is_some()) else {
            continue;
        };
        if let Some(pattern) = compile(*language, lang, query, context)? {
            patterns.push((lang, pattern));
        }
    }
    if patterns.is_empty() && !wanted.is_empty() {
        return Err(Error::invalid("the pattern is no code of any language in scope").with_path("query"));
    }
    let files: Vec<WorldFileId> = (0..context.world.files.len() as WorldFileId)
        .filter(|&id| {
            let file = context.world.file(id);
            context.scope.contains(&file.path) && patterns.iter().any(|(lang, _)| *lang == file.facts.lang)
        })
        .collect();
    // A file that lacks a word of the pattern cannot match it.
    let literal: Vec<&str> = query.split_whitespace().flat_map(plain_words).collect();
    let parts = pool::map(
        files.len(),
        context.threads,
        context.token,
        || Parsing::new(context.token),
        |parsing, index| {
            let file = context.world.file(files[index]);
            let content = context.view.read(&file.path, context.token)?;
            if content.digest != file.digest {
                return Err(crate::answer::changed(&file.path));
            }
            let (Some((language, lang)), Ok(text)) =
                (language::of_path(&file.path), std::str::from_utf8(&content.bytes))
            else {
                return Ok(Vec::new());
            };
            if literal
                .iter()
                .any(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_none())
            {
                return Ok(Vec::new());
            }
            let Some((_, pattern)) = patterns.iter().find(|(l, _)| *l == lang) else {
                return Ok(Vec::new());
            };
            let tree = parsing.parse(language, lang, text.as_bytes())?;
            let mut hits = Vec::new();
            for (span, captures) in matches(pattern, &tree, text, context)? {
                let mut hit = Hit::at(&file.path, file.digest, span);
                hit.captures = captures;
                hit.kind = Some("pattern");
                hits.push(hit);
            }
            Ok(hits)
        },
    )?;
    let mut hits: Vec<Hit> = parts.into_iter().flatten().collect();
    hits.sort_by(|a, b| (&a.path, a.span).cmp(&(&b.path, b.span)));
    Ok(Found {
        hits,
        names: Vec::new(),
    })
}

fn plain_words(part: &str) -> impl Iterator<Item = &str> {
    words(part).filter(move |word| !part.contains(&format!("${word}")))
}

/// Parses a pattern; none if it is no code of this language.
fn compile(language: &dyn Language, lang: Lang, query: &str, context: &Context<'_>) -> Result<Option<Pattern>, Error> {
    let marked = query.replace("$$$", "µµµ").replace('$', MARK);
    // A rest without a name still needs to be an identifier.
    let marked = name_rests(&marked);
    // An expression may need a function around it, a statement its semicolon.
    // `from $M` of an import needs a string.
    let marked = quote_modules(lang, &marked);
    let forms: &[(&str, &str)] = match lang {
        Lang::Rust => &[("", ""), ("fn µ_(){", "}"), ("fn µ_(){let _=", ";}"), ("impl µ_{", "}")],
        Lang::Go => &[("", ""), ("package p\n", ""), ("package p\nfunc µ_(){", "}")],
        Lang::Java => &[
            ("", ""),
            ("class µ_{", "}"),
            ("class µ_{void µ_(){", ";}}"),
            ("class µ_{void µ_(){", "}}"),
        ],
        Lang::C | Lang::Cpp => &[("", ""), ("void µ_(){", "}"), ("void µ_(){", ";}")],
        _ => &[("", "")],
    };
    let mut parsing = Parsing::new(context.token);
    for (prefix, suffix) in forms {
        let source = format!("{prefix}{marked}{suffix}");
        let tree = parsing.parse(language, lang, source.as_bytes())?;
        // A rest of items is no item by itself, so the grammar calls it an error; it is none.
        let is_rest = |span: &Span| rest_variable(&source[span.start as usize..span.end as usize]).is_some();
        if tree.root_node().has_error() && !errors(&tree).iter().all(is_rest) {
            continue;
        }
        if find(&tree, prefix.len(), prefix.len() + marked.len()).is_some() {
            return Ok(Some(Pattern { source, tree }));
        }
    }
    Ok(None)
}

fn quote_modules(lang: Lang, text: &str) -> String {
    let modules = matches!(lang, Lang::TypeScript | Lang::Tsx | Lang::JavaScript);
    match text
        .rsplit_once(" from ")
        .filter(|_| modules && text.starts_with(['i', 'e']))
    {
        Some((names, module)) if variable(module.trim_end_matches(';')).is_some() => {
            let plain = module.trim_end_matches(';');
            format!("{names} from \"{plain}\"{}", &module[plain.len()..])
        }
        _ => text.to_owned(),
    }
}

fn name_rests(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("µµµ") {
        let end = at + "µµµ".len();
        result.push_str(&rest[..end]);
        rest = &rest[end..];
        if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            result.push('_');
        }
    }
    result.push_str(rest);
    result
}

/// Returns the outermost node that covers exactly a range, below wrappers that add nothing.
fn find(tree: &Tree, start: usize, end: usize) -> Option<Node<'_>> {
    let mut node = tree.root_node();
    loop {
        let mut cursor = node.walk();
        let inside: Vec<Node<'_>> = node
            .named_children(&mut cursor)
            .filter(|c| c.start_byte() >= start && c.end_byte() <= end)
            .collect();
        if node.start_byte() >= start && node.end_byte() <= end && node.parent().is_some() {
            // `f($A)` alone is an expression, not a statement.
            return Some(match inside[..] {
                [only] if only.byte_range() == node.byte_range() || node.kind() == "expression_statement" => {
                    if node.kind() == "expression_statement" && only.end_byte() == node.end_byte() {
                        only
                    } else {
                        node
                    }
                }
                _ => node,
            });
        }
        let mut cursor = node.walk();
        let next = node
            .named_children(&mut cursor)
            .find(|c| c.start_byte() <= start && c.end_byte() >= end);
        match (next, &inside[..]) {
            (Some(next), _) => node = next,
            (None, [only]) => node = *only,
            // Several statements.
            _ => return (node.parent().is_none() && inside.len() == 1).then(|| inside[0]),
        }
    }
}

type Captures = BTreeMap<String, String>;

fn matches(pattern: &Pattern, tree: &Tree, text: &str, context: &Context<'_>) -> Result<Vec<(Span, Captures)>, Error> {
    let (start, end) = range(pattern);
    let Some(wanted) = find(&pattern.tree, start, end) else {
        return Ok(Vec::new());
    };
    let matcher = Matcher {
        pattern: &pattern.source,
        text,
    };
    let mut found = Vec::new();
    let mut cursor = tree.walk();
    let mut steps = 0u32;
    loop {
        let node = cursor.node();
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(1024) {
            context.token.check()?;
        }
        if node.is_named() {
            let mut captures = Captures::new();
            if matcher.node(wanted, node, &mut captures, 0) {
                captures.retain(|name, _| !name.starts_with('_'));
                found.push((Span::from(node), captures));
            }
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(found);
            }
        }
    }
}

/// Returns the part of the source that is the pattern itself.
fn range(pattern: &Pattern) -> (usize, usize) {
    for (prefix, suffix) in [
        ("fn µ_(){let _=", ";}"),
        ("fn µ_(){", "}"),
        ("impl µ_{", "}"),
        ("package p\nfunc µ_(){", "}"),
        ("package p\n", ""),
        ("class µ_{void µ_(){", ";}}"),
        ("class µ_{void µ_(){", "}}"),
        ("class µ_{", "}"),
        ("void µ_(){", ";}"),
        ("void µ_(){", "}"),
    ] {
        if pattern.source.starts_with(prefix) && pattern.source.ends_with(suffix) {
            return (prefix.len(), pattern.source.len() - suffix.len());
        }
    }
    (0, pattern.source.len())
}

struct Matcher<'m> {
    pattern: &'m str,
    text: &'m str,
}

impl Matcher<'_> {
    fn node(&self, wanted: Node<'_>, node: Node<'_>, captures: &mut Captures, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let source = &self.pattern[wanted.byte_range()];
        if let Some(name) = variable(source).or_else(|| module_variable(wanted, source)) {
            return self.capture(name, &self.text[node.byte_range()], captures);
        }
        if wanted.kind_id() != node.kind_id() {
            return false;
        }
        let (wanted_children, children) = (significant(wanted), significant(node));
        let only_rests = |nodes: &[Node<'_>]| {
            nodes
                .iter()
                .all(|n| rest_variable(&self.pattern[n.byte_range()]).is_some())
        };
        if wanted_children.is_empty() || (children.is_empty() && !only_rests(&wanted_children)) {
            return source == &self.text[node.byte_range()];
        }
        // Operators and keywords between the children tell `a + b` from `a - b`.
        if tokens(wanted) != tokens(node) && !has_rest(&wanted_children, self.pattern) {
            return false;
        }
        self.list(&wanted_children, &children, captures, depth + 1)
    }

    fn list(&self, wanted: &[Node<'_>], nodes: &[Node<'_>], captures: &mut Captures, depth: usize) -> bool {
        let Some((first, rest)) = wanted.split_first() else {
            return nodes.is_empty();
        };
        if let Some(name) = rest_variable(&self.pattern[first.byte_range()]) {
            // A rest after a comma at the end stands for something, as in ast-grep.
            let least = usize::from(rest.is_empty() && after_comma(*first));
            for taken in least..=nodes.len() {
                let mut attempt = captures.clone();
                let text = match (nodes.first(), taken) {
                    (Some(from), 1..) => &self.text[from.start_byte()..nodes[taken - 1].end_byte()],
                    _ => "",
                };
                if self.capture(name, text, &mut attempt) && self.list(rest, &nodes[taken..], &mut attempt, depth) {
                    *captures = attempt;
                    return true;
                }
            }
            return false;
        }
        let Some((node, others)) = nodes.split_first() else {
            return false;
        };
        let mut attempt = captures.clone();
        if self.node(*first, *node, &mut attempt, depth) && self.list(rest, others, &mut attempt, depth) {
            *captures = attempt;
            return true;
        }
        false
    }

    fn capture(&self, name: &str, text: &str, captures: &mut Captures) -> bool {
        if name.is_empty() || name.starts_with('_') {
            return true;
        }
        match captures.get(name) {
            Some(known) => known == text,
            None => {
                captures.insert(name.to_owned(), text.to_owned());
                true
            }
        }
    }
}

/// Returns the name of a metavariable for one node.
fn variable(source: &str) -> Option<&str> {
    let name = source.strip_prefix(MARK).filter(|rest| !rest.starts_with(MARK))?;
    let plain = !name.is_empty() && name.chars().all(|c| c.is_uppercase() || c == '_' || c.is_numeric());
    plain.then_some(name)
}

/// Returns the name of a metavariable that stands for the module of an import.
fn module_variable<'s>(wanted: Node<'_>, source: &'s str) -> Option<&'s str> {
    let plain = source.strip_prefix('"')?.strip_suffix('"')?;
    let import = wanted
        .parent()
        .is_some_and(|parent| matches!(parent.kind(), "import_statement" | "export_statement"));
    variable(plain).filter(|_| import)
}

fn after_comma(node: Node<'_>) -> bool {
    node.prev_sibling().is_some_and(|before| before.kind() == ",")
}

/// Returns the name of a metavariable for several nodes.
fn rest_variable(source: &str) -> Option<&str> {
    let name = source.trim_end_matches(';').strip_prefix("µµµ")?;
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(name)
}

fn has_rest(nodes: &[Node<'_>], source: &str) -> bool {
    nodes
        .iter()
        .any(|node| rest_variable(&source[node.byte_range()]).is_some())
}

/// Returns the named children that are no comments.
fn significant(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| !child.is_extra() || child.is_error())
        .collect()
}

/// Returns the tokens between the children, without brackets and separators.
fn tokens(node: Node<'_>) -> Vec<u16> {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .filter(|child| !child.is_named() && !matches!(child.kind(), "," | ";" | "(" | ")" | "{" | "}"))
        .map(|child| child.kind_id())
        .collect()
}
