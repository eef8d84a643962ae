//! `macro_rules!` of the same file, expanded as far as to tell which arguments of a call become names of items.
//!
//! `macro_rules! check { ($name:ident, $e:expr) => { #[test] fn $name() { … } } }` makes `check!(works, 1)` define a
//! function `works`, whose name stands in the call. Patterns are matched as the language does it, except that a fragment
//! such as `$e:expr` takes everything up to the next token that the pattern names.

use std::collections::HashMap;

use crate::facts::Kind;

/// A token, or a group in brackets.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// An identifier or keyword, with its place.
    Word(String, usize),
    /// One character of punctuation.
    Mark(char),
    /// A literal or lifetime.
    Literal,
    /// `(…)`, `[…]` or `{…}`.
    Group(char, Vec<Token>),
}

#[derive(Clone, Debug, PartialEq)]
enum Pattern {
    Token(Token),
    Variable(String, String),
    Group(char, Vec<Pattern>),
    Repeat(Vec<Pattern>, Option<Token>),
}

/// One rule: its pattern, and what it produces if that can define an item by name.
#[derive(Clone, Debug)]
pub struct Rule {
    pattern: Vec<Pattern>,
    body: Vec<Token>,
}

/// An item that a call defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Where its name begins in the text of the call's arguments.
    pub at: usize,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Whether it is a test.
    pub test: bool,
}

/// Reads a text as tokens.
pub fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut stack: Vec<(char, Vec<Token>)> = vec![(' ', Vec::new())];
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let Some(c) = rest.chars().next() else { break };
        let mut length = c.len_utf8();
        let mut push = |token| {
            if let Some((_, list)) = stack.last_mut() {
                list.push(token);
            }
        };
        if rest.starts_with("//") {
            length = rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            length = rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if c == '"' || rest.starts_with("b\"") || rest.starts_with("r\"") || rest.starts_with("r#\"") {
            length = string_length(rest);
            push(Token::Literal);
        } else if c == '_' || c.is_alphabetic() {
            length = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            push(Token::Word(rest[..length].to_owned(), at));
        } else if c.is_numeric() {
            length = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            push(Token::Literal);
        } else if c == '\'' {
            length = char_length(rest);
            push(Token::Literal);
        } else if matches!(c, '(' | '[' | '{') {
            stack.push((c, Vec::new()));
        } else if matches!(c, ')' | ']' | '}') {
            if stack.len() > 1
                && let Some((open, list)) = stack.pop()
                && let Some((_, outer)) = stack.last_mut()
            {
                outer.push(Token::Group(open, list));
            }
        } else if !c.is_whitespace() {
            push(Token::Mark(c));
        }
        at += length.max(1);
    }
    while stack.len() > 1 {
        let Some((open, list)) = stack.pop() else { break };
        if let Some((_, outer)) = stack.last_mut() {
            outer.push(Token::Group(open, list));
        }
    }
    stack.pop().map(|(_, list)| list).unwrap_or_default()
}

fn string_length(text: &str) -> usize {
    let raw = text.starts_with('r');
    let hashes = text.bytes().skip(1).take_while(|&b| raw && b == b'#').count();
    let open = text.find('"').map_or(text.len(), |at| at + 1);
    if raw {
        let close = format!("\"{}", "#".repeat(hashes));
        return text[open..]
            .find(&close)
            .map_or(text.len(), |at| open + at + close.len());
    }
    let mut at = open;
    let bytes = text.as_bytes();
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    let mut end = (at + 1).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    end
}

fn char_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[2..].find('\'').map_or(1, |at| at + 3),
        Some((at, c)) if text[at + c.len_utf8()..].starts_with('\'') => at + c.len_utf8() + 1,
        // A lifetime.
        _ => text[1..]
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .map_or(text.len(), |at| at + 1),
    }
}

/// Reads the rules of a `macro_rules!` body that define items by name.
pub fn rules(body: &str) -> Vec<Rule> {
    let mut all = tokens(body);
    if let [Token::Group(_, inner)] = &all[..] {
        all = inner.clone();
    }
    let mut rules = Vec::new();
    for window in all.windows(4) {
        let [
            Token::Group(_, left),
            Token::Mark('='),
            Token::Mark('>'),
            Token::Group(_, right),
        ] = window
        else {
            continue;
        };
        rules.push(Rule {
            pattern: patterns(left),
            body: if may_define(right) { right.clone() } else { Vec::new() },
        });
    }
    rules
}

fn item_kind(keyword: &str) -> Option<Kind> {
    Some(match keyword {
        "fn" => Kind::Function,
        "struct" => Kind::Struct,
        "enum" => Kind::Enum,
        "union" => Kind::Union,
        "trait" => Kind::Trait,
        "mod" => Kind::Module,
        "const" => Kind::Constant,
        "static" => Kind::StaticVariable,
        "type" => Kind::TypeAlias,
        _ => return None,
    })
}

/// Tells whether tokens hold a keyword of items or a call of a macro.
fn may_define(tokens: &[Token]) -> bool {
    tokens.iter().enumerate().any(|(at, token)| match token {
        Token::Word(word, _) => item_kind(word).is_some() || tokens.get(at + 1) == Some(&Token::Mark('!')),
        Token::Group(_, inner) => may_define(inner),
        _ => false,
    })
}

/// Collects the items that an expansion defines under a name from the call, and the calls of macros in it.
fn introduced<'t>(tokens: &'t [Token], found: &mut Vec<Named>, calls: &mut Vec<(&'t str, &'t [Token])>) {
    let mut test = false;
    for (at, token) in tokens.iter().enumerate() {
        match (token, tokens.get(at + 1), tokens.get(at + 2)) {
            (Token::Word(name, NOWHERE), Some(Token::Mark('!')), Some(Token::Group(_, arguments))) => {
                calls.push((name, arguments));
            }
            (Token::Group(_, inner), ..) => {
                if let [Token::Word(word, _), ..] = &inner[..] {
                    test |= word == "test" || word == "bench";
                }
                introduced(inner, found, calls);
            }
            // A keyword that stands in the call is seen where the arguments are read as items.
            (Token::Word(keyword, NOWHERE), next, _) => {
                let Some(kind) = item_kind(keyword) else { continue };
                if let Some(Token::Word(name, place)) = next.filter(|next| !matches!(next, Token::Word(_, NOWHERE))) {
                    found.push(Named {
                        at: *place,
                        name: name.clone(),
                        kind,
                        test: test && kind == Kind::Function,
                    });
                }
                test &= kind != Kind::Function;
            }
            _ => {}
        }
    }
}

fn patterns(tokens: &[Token]) -> Vec<Pattern> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match (&tokens[at], tokens.get(at + 1)) {
            (Token::Mark('$'), Some(Token::Word(name, _))) => {
                if let (Some(Token::Mark(':')), Some(Token::Word(fragment, _))) =
                    (tokens.get(at + 2), tokens.get(at + 3))
                {
                    all.push(Pattern::Variable(name.clone(), fragment.clone()));
                    at += 4;
                } else {
                    at += 2;
                }
            }
            (Token::Mark('$'), Some(Token::Group('(', inner))) => {
                at += 2;
                let separator = repetition(tokens, &mut at);
                all.push(Pattern::Repeat(patterns(inner), separator));
            }
            (Token::Group(open, inner), _) => {
                all.push(Pattern::Group(*open, patterns(inner)));
                at += 1;
            }
            (token, _) => {
                all.push(Pattern::Token(token.clone()));
                at += 1;
            }
        }
    }
    all
}

/// Tokens that the expansions of one call may come to: macros that call themselves can grow without bound.
const MAX_TOKENS: usize = 50_000;

/// Returns the items that a call of a macro with these arguments defines, by the first rule that fits; calls of other
/// macros of the file in what it produces are followed.
pub fn defined(macros: &HashMap<String, Vec<Rule>>, name: &str, arguments: &[Token]) -> Vec<Named> {
    let (mut found, mut budget) = (Vec::new(), MAX_TOKENS);
    expand(macros, name, arguments, &mut budget, 0, &mut found);
    found
}

fn expand(
    macros: &HashMap<String, Vec<Rule>>,
    name: &str,
    arguments: &[Token],
    budget: &mut usize,
    depth: usize,
    found: &mut Vec<Named>,
) {
    for rule in macros.get(name).into_iter().flatten() {
        let mut bound = Bound::default();
        if fit(&rule.pattern, arguments, &mut bound, 0) != Some(arguments.len()) {
            continue;
        }
        let body = substitute(&rule.body, &[&bound]);
        let mut calls = Vec::new();
        introduced(&body, found, &mut calls);
        for (name, arguments) in calls {
            let size = count(arguments);
            if depth < 64 && size < *budget {
                *budget -= size + 1;
                expand(macros, name, arguments, budget, depth + 1, found);
            }
        }
        return;
    }
}

fn count(tokens: &[Token]) -> usize {
    tokens
        .iter()
        .map(|token| {
            if let Token::Group(_, inner) = token {
                1 + count(inner)
            } else {
                1
            }
        })
        .sum()
}

/// Replaces variables by what they are bound to. Words of the macro's own body have no place in the call.
fn substitute(tokens: &[Token], bound: &[&Bound]) -> Vec<Token> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match (&tokens[at], tokens.get(at + 1)) {
            (Token::Mark('$'), Some(Token::Word(name, _))) => {
                if let Some(tokens) = bound.iter().find_map(|b| b.get(name)) {
                    all.extend(tokens.iter().cloned());
                }
                at += 2;
                continue;
            }
            (Token::Mark('$'), Some(Token::Group('(', inner))) => {
                at += 2;
                let separator = repetition(tokens, &mut at);
                let variables = variables(inner);
                let rounds = bound.iter().flat_map(|b| &b.repeats).find(|rounds| {
                    rounds
                        .iter()
                        .any(|round| variables.iter().any(|name| round.mentions(name)))
                });
                for (index, round) in rounds.into_iter().flatten().enumerate() {
                    if index > 0 {
                        all.extend(separator.clone());
                    }
                    let mut inside = vec![round];
                    inside.extend(bound);
                    all.extend(substitute(inner, &inside));
                }
                continue;
            }
            (Token::Group(open, inner), _) => all.push(Token::Group(*open, substitute(inner, bound))),
            (Token::Word(word, _), _) => all.push(Token::Word(word.clone(), NOWHERE)),
            (token, _) => all.push(token.clone()),
        }
        at += 1;
    }
    all
}

/// Reads what follows `$(…)` up to its `*`, `+` or `?`; returns the separator.
fn repetition(tokens: &[Token], at: &mut usize) -> Option<Token> {
    let mut separator = None;
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        if matches!(token, Token::Mark('*' | '+' | '?')) {
            break;
        }
        separator = Some(token.clone());
    }
    separator
}

/// Lists the variables that tokens mention.
fn variables(tokens: &[Token]) -> Vec<&str> {
    let mut all = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match (token, tokens.get(at + 1)) {
            (Token::Mark('$'), Some(Token::Word(name, _))) => all.push(name.as_str()),
            (Token::Group(_, inner), _) => all.extend(variables(inner)),
            _ => {}
        }
    }
    all
}

/// The place of a word that does not stand in the call.
const NOWHERE: usize = usize::MAX;

/// What variables are bound to: outside repetitions, and in each round of each repetition.
#[derive(Debug, Default)]
struct Bound {
    single: Vec<(String, Vec<Token>)>,
    repeats: Vec<Vec<Bound>>,
}

impl Bound {
    fn get(&self, name: &str) -> Option<&[Token]> {
        self.single
            .iter()
            .find(|(variable, _)| variable == name)
            .map(|(_, tokens)| &tokens[..])
    }

    fn mentions(&self, name: &str) -> bool {
        self.get(name).is_some() || self.repeats.iter().flatten().any(|round| round.mentions(name))
    }
}

/// Fits patterns to the beginning of tokens; returns how many tokens they took.
fn fit(patterns: &[Pattern], tokens: &[Token], bound: &mut Bound, depth: usize) -> Option<usize> {
    if depth > 32 {
        return None;
    }
    let mut at = 0;
    for (index, pattern) in patterns.iter().enumerate() {
        match pattern {
            Pattern::Token(wanted) => {
                if !same(wanted, tokens.get(at)?) {
                    return None;
                }
                at += 1;
            }
            Pattern::Group(open, inner) => match tokens.get(at)? {
                Token::Group(found, list) if found == open && fit(inner, list, bound, depth + 1)? == list.len() => {
                    at += 1
                }
                _ => return None,
            },
            Pattern::Variable(name, fragment) => match fragment.as_str() {
                "ident" => match tokens.get(at)? {
                    token @ Token::Word(..) => {
                        bound.single.push((name.clone(), vec![token.clone()]));
                        at += 1;
                    }
                    _ => return None,
                },
                "tt" | "literal" | "lifetime" | "block" => {
                    if fragment == "literal" && tokens.get(at) == Some(&Token::Mark('-')) {
                        at += 1;
                    }
                    bound.single.push((name.clone(), vec![tokens.get(at)?.clone()]));
                    at += 1;
                }
                _ => {
                    let stop = patterns.get(index + 1).and_then(first_token);
                    let start = at;
                    let mut angles = 0i32;
                    while let Some(token) = tokens.get(at) {
                        // No fragment but these crosses a comma or semicolon, except inside `<…>` of a type.
                        let ends = matches!(token, Token::Mark(',' | ';')) && fragment != "item";
                        if angles == 0 && (ends || stop.is_some_and(|stop| same(stop, token))) {
                            break;
                        }
                        if matches!(fragment.as_str(), "ty" | "path" | "item") {
                            match token {
                                Token::Mark('<') => angles += 1,
                                Token::Mark('>') if tokens.get(at.wrapping_sub(1)) != Some(&Token::Mark('-')) => {
                                    angles = (angles - 1).max(0);
                                }
                                _ => {}
                            }
                        }
                        at += 1;
                    }
                    if at == start && fragment != "vis" {
                        return None;
                    }
                    bound.single.push((name.clone(), tokens[start..at].to_vec()));
                }
            },
            Pattern::Repeat(inner, separator) => {
                let mut rounds = Vec::new();
                while at < tokens.len() {
                    let mut round = Bound::default();
                    let end = match separator {
                        // Each round ends before the separator.
                        Some(separator) => tokens[at..]
                            .iter()
                            .position(|t| same(separator, t))
                            .map_or(tokens.len(), |p| at + p),
                        None => tokens.len(),
                    };
                    let Some(taken) = fit(inner, &tokens[at..end], &mut round, depth + 1).filter(|&taken| taken > 0)
                    else {
                        break;
                    };
                    rounds.push(round);
                    at += taken;
                    match separator {
                        Some(separator) if tokens.get(at).is_some_and(|t| same(separator, t)) => at += 1,
                        Some(_) => break,
                        None => {}
                    }
                }
                bound.repeats.push(rounds);
            }
        }
    }
    Some(at)
}

fn first_token(pattern: &Pattern) -> Option<&Token> {
    match pattern {
        Pattern::Token(token) => Some(token),
        Pattern::Repeat(inner, separator) => inner.first().and_then(first_token).or(separator.as_ref()),
        _ => None,
    }
}

fn same(a: &Token, b: &Token) -> bool {
    match (a, b) {
        (Token::Word(a, _), Token::Word(b, _)) => a == b,
        (Token::Mark(a), Token::Mark(b)) => a == b,
        (Token::Literal, Token::Literal) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(body: &str, arguments: &str) -> Vec<Named> {
        let macros = HashMap::from([("m".to_owned(), rules(body))]);
        defined(&macros, "m", &tokens(arguments))
    }

    fn names(body: &str, arguments: &str) -> Vec<(String, Kind)> {
        all(body, arguments).into_iter().map(|n| (n.name, n.kind)).collect()
    }

    #[test]
    fn names_come_from_arguments() {
        let one = "{ ($name:ident, $e:expr) => { #[test] fn $name() { assert!($e) } }; }";
        assert_eq!(names(one, "works, f(1, 2) + 3"), [("works".into(), Kind::Function)]);
        assert!(all(one, "works, 1")[0].test);
        assert_eq!(names(one, "works"), []);
        let many = "{ ($($name:ident: $t:ty),* $(,)?) => { $(struct $name($t);)* } }";
        assert_eq!(
            names(many, "A: Vec<u8>, B: u8,"),
            [("A".into(), Kind::Struct), ("B".into(), Kind::Struct)]
        );
        let keyed = "{ (@private $n:ident) => {}; (pub $n:ident = $e:expr;) => { pub const $n: u8 = $e; } }";
        assert_eq!(names(keyed, "pub X = '\\'' as u8;"), [("X".into(), Kind::Constant)]);
        assert_eq!(names(keyed, "@private X"), []);
        let more = "{ ($n:ident) => { m!($n, 1); }; ($n:ident, $e:expr) => { fn $n() {} } }";
        assert_eq!(names(more, "later"), [("later".into(), Kind::Function)]);
        let nested = "{ (@one $n:ident, $e:expr) => { fn $n() {} }; ($($tt:tt)*) => { m!(@one $($tt)*); } }";
        assert_eq!(names(nested, "passed, f(1)"), [("passed".into(), Kind::Function)]);
        let rounds =
            "{ (@one $n:ident $t:ty) => { struct $n($t); }; ($($n:ident: $t:ty),*) => { $( m!(@one $n $t); )* } }";
        assert_eq!(
            names(rounds, "A: u8, B: Vec<u8>"),
            [("A".into(), Kind::Struct), ("B".into(), Kind::Struct)]
        );
    }
}
