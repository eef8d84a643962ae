//! Scores the engine's answers against compiler-grade ground truth.
//!
//! A truth file lists definitions, references (pairs of a use's place and definitions) and callers (pairs of functions)
//! of one published package. The scorer asks the engine as any cell would (`symbols`, `references`, `callers`) and
//! counts pairs. Where the truth is silent for a reason that can be told from the source, a pair is *disputed* and listed by
//! class instead of counted. Beside the engine stands the naive answer: every identifier equal to a definition's name refers to it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use zero_contracts::find::{Confidence, FindItem, FindMode, FindOptions, FindRequest};
use zero_contracts::{CancelToken, Error, SourceView, StructureEngine};

use crate::GraphZero;
use crate::testing::DirectoryView;

/// A truth file.
#[derive(Debug, Deserialize)]
pub struct Truth {
    /// Name of the package.
    #[serde(rename = "crate")]
    pub package: String,
    /// Its version.
    pub version: String,
    /// The files it speaks of.
    pub files: Vec<String>,
    definitions: Vec<TruthDefinition>,
    references: Vec<TruthReference>,
    callers: Vec<TruthCaller>,
}

#[derive(Debug, Deserialize)]
struct TruthDefinition {
    id: u64,
    path: String,
    line: u64,
    column: u64,
    name: String,
    kind: String,
}

#[derive(Debug, Deserialize)]
struct TruthReference {
    path: String,
    line: u64,
    column: u64,
    defs: Vec<u64>,
}

#[derive(Debug, Deserialize)]
struct TruthCaller {
    callee: u64,
    caller: u64,
}

/// One row of the score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The package.
    pub package: String,
    /// What was scored.
    pub relation: String,
    /// Pairs that both have.
    pub right: usize,
    /// Pairs that only the answer has.
    pub wrong: usize,
    /// Pairs that only the truth has.
    pub missed: usize,
    /// Pairs that only the answer has, where the truth is silent for a stated reason; not counted as wrong.
    pub disputed: usize,
}

impl Row {
    /// Returns right pairs by pairs answered; 1 when nothing was answered.
    pub fn precision(&self) -> f64 {
        ratio(self.right, self.right + self.wrong)
    }

    /// Returns right pairs by pairs in the truth; 1 when there are none.
    pub fn recall(&self) -> f64 {
        ratio(self.right, self.right + self.missed)
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// A place: path, line, column.
type Place = (String, u64, u64);
/// Two places.
type Pair = (Place, Place);

/// What one scoring came to.
#[derive(Debug, Default)]
pub struct Score {
    /// The rows.
    pub rows: Vec<Row>,
    /// Pairs answered that the truth does not have, by relation.
    pub wrong: Vec<(&'static str, Pair)>,
    /// Pairs of the truth that were not answered, by relation.
    pub missed: Vec<(&'static str, Pair)>,
    /// Pairs answered where the truth is silent, by relation and class.
    pub disputed: BTreeMap<(&'static str, &'static str), usize>,
    silence: Silence,
}

/// Reads a truth file.
///
/// # Errors
/// `io` and `invalid_input`.
pub fn read(path: &Path) -> Result<Truth, Error> {
    let bytes = std::fs::read(path).map_err(|e| Error::from_io(&e, format!("reading {}", path.display())))?;
    serde_json::from_slice(&bytes).map_err(|e| Error::invalid(format!("{}: {e}", path.display())))
}

/// Kinds that the main row of definitions leaves out.
const ASIDE: &[&str] = &["field", "enum_member", "module", "variable"];

/// Scores a package whose sources lie in a directory.
///
/// # Errors
/// Errors of the engine and of reading.
pub fn score(truth: &Truth, source: &Path) -> Result<Score, Error> {
    let view = DirectoryView::new(source);
    let engine = GraphZero::new();
    let asker = Asker {
        view: &view,
        engine: &engine,
    };
    let files: HashSet<&str> = truth.files.iter().map(String::as_str).collect();
    let place = |d: &TruthDefinition| -> Place { (d.path.clone(), d.line, d.column) };
    let by_id: HashMap<u64, &TruthDefinition> = truth.definitions.iter().map(|d| (d.id, d)).collect();
    let kind_at: HashMap<Place, &str> = truth.definitions.iter().map(|d| (place(d), d.kind.as_str())).collect();
    let aside = |place: &Place| kind_at.get(place).is_some_and(|kind| ASIDE.contains(kind));
    let mut score = Score {
        silence: Silence::new(truth, &view)?,
        ..Score::default()
    };

    let symbols: Vec<FindItem> = asker
        .all(FindMode::Symbols, "")?
        .into_iter()
        .filter(|item| files.contains(item.path.as_str()))
        .collect();
    let found: HashSet<Place> = symbols.iter().map(start).collect();
    let listed: HashSet<Place> = truth.definitions.iter().map(place).collect();
    let own_aside = |item: &FindItem| {
        matches!(
            item.kind.as_deref(),
            Some("field" | "enum_member" | "module" | "variable")
        )
    };
    let aside_found: HashSet<Place> = symbols.iter().filter(|i| own_aside(i)).map(start).collect();
    let unary = |set: HashSet<Place>| -> HashSet<Pair> { set.into_iter().map(|p| (p.clone(), p)).collect() };
    let main = |set: &HashSet<Place>, own: bool| -> HashSet<Pair> {
        unary(
            set.iter()
                .filter(|p| !aside(p) && (!own || kind_at.contains_key(*p) || !aside_found.contains(*p)))
                .cloned()
                .collect(),
        )
    };
    score.add(truth, "definitions", &main(&found, true), &main(&listed, false), true);
    for kind in ASIDE {
        let of = |set: &HashSet<Place>| unary(set.iter().filter(|p| kind_at.get(*p) == Some(kind)).cloned().collect());
        if !of(&listed).is_empty() {
            score.add(truth, &format!("definitions.{kind}"), &of(&found), &of(&listed), false);
        }
    }

    let mut names: Vec<&str> = truth.definitions.iter().map(|d| d.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let (mut pairs, mut tiers): (HashSet<Pair>, BTreeMap<Confidence, HashSet<Pair>>) = Default::default();
    let mut calls: BTreeMap<Confidence, HashSet<Pair>> = BTreeMap::new();
    let mut owners: HashMap<(&str, &str), Vec<Place>> = HashMap::new();
    for item in &symbols {
        if let Some(symbol) = &item.symbol {
            owners
                .entry((item.path.as_str(), symbol.as_str()))
                .or_default()
                .push(start(item));
        }
    }
    let functions: HashSet<Place> = truth
        .definitions
        .iter()
        .filter(|d| {
            matches!(
                d.kind.as_str(),
                "function" | "method" | "trait_method" | "static_method"
            )
        })
        .map(place)
        .collect();
    for name in names {
        for item in asker.all(FindMode::References, name)? {
            let uses = start(&item);
            // Uses under another name are right, and not in the truth.
            if !files.contains(item.path.as_str()) || asker.word(&item) != name {
                continue;
            }
            for site in item.definition.iter().chain(&item.alternatives) {
                let definition = (site.path.clone(), site.line, site.column);
                if !files.contains(site.path.as_str()) {
                    continue;
                }
                let pair = (uses.clone(), definition);
                tiers
                    .entry(item.confidence.unwrap_or(Confidence::Name))
                    .or_default()
                    .insert(pair.clone());
                pairs.insert(pair);
            }
        }
        for item in asker.all(FindMode::Callers, name)? {
            let (Some(symbol), true) = (&item.symbol, files.contains(item.path.as_str())) else {
                continue;
            };
            let site = start(&item);
            let caller = owners
                .get(&(item.path.as_str(), symbol.as_str()))
                .and_then(|places| places.iter().filter(|p| (p.1, p.2) <= (site.1, site.2)).max().cloned());
            let Some(caller) = caller.filter(|c| functions.contains(c)) else {
                continue;
            };
            for site in item.definition.iter().chain(&item.alternatives) {
                let callee = (site.path.clone(), site.line, site.column);
                if functions.contains(&callee) {
                    calls
                        .entry(item.confidence.unwrap_or(Confidence::Name))
                        .or_default()
                        .insert((callee, caller.clone()));
                }
            }
        }
    }
    let mut known: HashSet<Pair> = HashSet::new();
    for reference in &truth.references {
        for id in &reference.defs {
            if let Some(definition) = by_id.get(id) {
                known.insert((
                    (reference.path.clone(), reference.line, reference.column),
                    place(definition),
                ));
            }
        }
    }
    score.add(truth, "references", &pairs, &known, true);
    let data = |pair: &&Pair| {
        !kind_at
            .get(&pair.1)
            .is_some_and(|kind| matches!(*kind, "field" | "variable"))
    };
    let without = |set: &HashSet<Pair>| -> HashSet<Pair> { set.iter().filter(data).cloned().collect() };
    score.add(truth, "references.nodata", &without(&pairs), &without(&known), false);
    for (tier, set) in &tiers {
        score.add(truth, &format!("references.{}", word(*tier)), set, &known, false);
    }
    let naive = asker.naive(truth, &by_id)?;
    score.add(truth, "references.naive", &naive, &known, false);

    let truth_calls: HashSet<Pair> = truth
        .callers
        .iter()
        .filter_map(|c| Some((place(by_id.get(&c.callee)?), place(by_id.get(&c.caller)?))))
        .collect();
    let all_calls: HashSet<Pair> = calls.values().flatten().cloned().collect();
    score.add(truth, "callers", &all_calls, &truth_calls, true);
    for (tier, set) in &calls {
        score.add(truth, &format!("callers.{}", word(*tier)), set, &truth_calls, false);
    }
    Ok(score)
}

fn word(tier: Confidence) -> &'static str {
    match tier {
        Confidence::Exact => "exact",
        Confidence::Scoped => "scoped",
        Confidence::Name => "name",
    }
}

fn start(item: &FindItem) -> Place {
    (item.path.clone(), item.range.start.line, item.range.start.column)
}

impl Score {
    fn add(&mut self, truth: &Truth, relation: &str, answer: &HashSet<Pair>, known: &HashSet<Pair>, list: bool) {
        let right = answer.intersection(known).count();
        let name = if relation.starts_with("def") {
            "definitions"
        } else if relation.starts_with("ref") {
            "references"
        } else {
            "callers"
        };
        let naive = relation.ends_with("naive");
        let (mut wrong, mut disputed) = (Vec::new(), 0);
        for pair in answer.difference(known) {
            match self.silence.class(name, pair).filter(|_| !naive) {
                Some(class) => {
                    disputed += 1;
                    if list {
                        *self.disputed.entry((name, class)).or_default() += 1;
                    }
                }
                None => wrong.push(pair),
            }
        }
        self.rows.push(Row {
            package: truth.package.clone(),
            relation: relation.to_owned(),
            right,
            wrong: wrong.len(),
            missed: known.len() - right,
            disputed,
        });
        if list {
            self.wrong.extend(wrong.into_iter().map(|pair| (name, pair.clone())));
            self.missed
                .extend(known.difference(answer).map(|pair| (name, pair.clone())));
        }
    }
}

/// Where the truth is silent: stretches under a condition that its indexer left out, modules in files of their own,
/// bodies of macros.
#[derive(Debug, Default)]
struct Silence {
    /// Lines of conditional definitions by file, and the places of out-of-line modules.
    conditional: HashMap<String, Vec<(u64, u64)>>,
    modules: HashSet<Place>,
    macros: HashMap<String, Vec<(u64, u64)>>,
    /// Definitions inside functions, and those with a `$` in their name.
    locals: HashSet<Place>,
    dollars: HashSet<Place>,
}

impl Silence {
    fn new(truth: &Truth, view: &DirectoryView) -> Result<Self, Error> {
        let token = CancelToken::new();
        let mut silence = Self::default();
        for path in &truth.files {
            let name: zero_contracts::WorkspacePath = path.parse()?;
            let Some((language, lang)) = crate::language::of_path(&name) else {
                continue;
            };
            let content = view.read(&name, &token)?;
            let Ok(text) = std::str::from_utf8(&content.bytes) else {
                continue;
            };
            let facts = crate::pool::on_large_stack(&token, || {
                language.facts(lang, text, &mut crate::parse::Parsing::new(&token))
            })?;
            let line = |at: u32| memchr::memchr_iter(b'\n', &text.as_bytes()[..at as usize]).count() as u64 + 1;
            for def in &facts.defs {
                let lines = (line(def.full.start), line(def.full.end));
                if def.conditional {
                    silence.conditional.entry(path.clone()).or_default().push(lines);
                }
                let place = (path.clone(), u64::from(def.line), u64::from(def.column));
                if facts.enclosing_callable(def.container).is_some() {
                    silence.locals.insert(place.clone());
                }
                if facts.name(def.name).contains('$') {
                    silence.dollars.insert(place);
                }
                if def.kind == crate::facts::Kind::Macro {
                    silence.macros.entry(path.clone()).or_default().push(lines);
                }
                if def.kind == crate::facts::Kind::Module && def.head == def.full.end {
                    silence
                        .modules
                        .insert((path.clone(), u64::from(def.line), u64::from(def.column)));
                }
            }
        }
        Ok(silence)
    }

    fn class(&self, relation: &str, (from, to): &Pair) -> Option<&'static str> {
        let inside = |lists: &HashMap<String, Vec<(u64, u64)>>, place: &Place| {
            lists
                .get(&place.0)
                .is_some_and(|list| list.iter().any(|(a, b)| (*a..=*b).contains(&place.1)))
        };
        if self.modules.contains(to) {
            Some("module in a file of its own")
        } else if inside(&self.conditional, from) || inside(&self.conditional, to) {
            Some("other configuration")
        } else if relation != "definitions" && inside(&self.macros, from) {
            Some("body of a macro")
        } else if self.locals.contains(to) {
            Some("local to a function")
        } else if self.dollars.contains(to) {
            Some("name with a dollar sign")
        } else {
            None
        }
    }
}

/// Asks the engine.
struct Asker<'a> {
    view: &'a DirectoryView,
    engine: &'a GraphZero,
}

impl Asker<'_> {
    fn all(&self, mode: FindMode, query: &str) -> Result<Vec<FindItem>, Error> {
        let token = CancelToken::new();
        let mut options = FindOptions {
            mode,
            limit: Some(100_000),
            ..FindOptions::default()
        };
        let mut items = Vec::new();
        loop {
            let request = FindRequest {
                query: query.to_owned(),
                options: options.clone(),
            };
            let answer = self.engine.find(self.view, &request, &token)?;
            items.extend(answer.items);
            match answer.next {
                Some(next) => options.next = Some(next),
                None => return Ok(items),
            }
        }
    }

    fn word(&self, item: &FindItem) -> String {
        let from = item.range.start.column.saturating_sub(1) as usize;
        item.text
            .chars()
            .skip(from)
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '#'))
            .collect()
    }

    /// The naive answer, without what stands in comments and strings.
    fn naive(&self, truth: &Truth, by_id: &HashMap<u64, &TruthDefinition>) -> Result<HashSet<Pair>, Error> {
        let mut named: HashMap<&str, Vec<Place>> = HashMap::new();
        for definition in by_id.values() {
            named.entry(definition.name.as_str()).or_default().push((
                definition.path.clone(),
                definition.line,
                definition.column,
            ));
        }
        let sites: HashSet<&Place> = named.values().flatten().collect();
        let token = CancelToken::new();
        let mut pairs = HashSet::new();
        for path in &truth.files {
            let content = self.view.read(&path.parse()?, &token)?;
            let Ok(text) = std::str::from_utf8(&content.bytes) else {
                continue;
            };
            for (line, source) in text.lines().enumerate() {
                let source = source.split("//").next().unwrap_or_default();
                let mut word = String::new();
                for (column, c) in (1u64..).zip(source.chars().chain([' '])) {
                    if c.is_alphanumeric() || c == '_' {
                        word.push(c);
                    } else if !word.is_empty() {
                        let place = (path.clone(), line as u64 + 1, column - word.chars().count() as u64);
                        if let Some(definitions) = named.get(word.as_str()).filter(|_| !sites.contains(&place)) {
                            pairs.extend(definitions.iter().map(|d| (place.clone(), d.clone())));
                        }
                        word.clear();
                    }
                }
            }
        }
        Ok(pairs)
    }
}

/// Runs the scorer as a command: `--truth FILE --source DIR`, repeated; `--list RELATION` prints every pair that differs.
/// Each row goes to `print`.
///
/// # Errors
/// `invalid_input` for arguments; errors of reading and of the engine.
pub fn run(arguments: &[String], print: &mut dyn FnMut(String)) -> Result<Vec<Row>, Error> {
    let (mut truths, mut sources, mut list) = (Vec::new(), Vec::new(), None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let value = rest
            .next()
            .ok_or_else(|| Error::invalid(format!("`{argument}` needs a value")))?;
        match argument.as_str() {
            "--truth" => truths.push(value.clone()),
            "--source" => sources.push(value.clone()),
            "--list" => list = Some(value.clone()),
            other => {
                return Err(Error::invalid(format!("unknown argument `{other}`"))
                    .with_accepted(["--truth", "--source", "--list"]));
            }
        }
    }
    if truths.len() != sources.len() {
        return Err(Error::invalid("each --truth needs its --source"));
    }
    let mut rows = Vec::new();
    for (file, source) in truths.iter().zip(&sources) {
        let truth = read(Path::new(file))?;
        let score = score(&truth, Path::new(source))?;
        for row in &score.rows {
            print(format!(
                "{:<14} {:<24} precision {:.3} recall {:.3}  right {:>6} wrong {:>5} missed {:>5} disputed {:>4}",
                row.package,
                row.relation,
                row.precision(),
                row.recall(),
                row.right,
                row.wrong,
                row.missed,
                row.disputed
            ));
        }
        for ((relation, class), count) in &score.disputed {
            print(format!("{:<14} disputed {relation}: {class}: {count}", truth.package));
        }
        if let Some(relation) = &list {
            for (what, pairs) in [("wrong", &score.wrong), ("missed", &score.missed)] {
                let mut pairs: Vec<_> = pairs
                    .iter()
                    .filter(|(r, _)| r == relation)
                    .map(|(_, pair)| pair)
                    .collect();
                pairs.sort();
                for ((path, line, column), (to, to_line, to_column)) in pairs {
                    print(format!("{what} {path}:{line}:{column} -> {to}:{to_line}:{to_column}"));
                }
            }
        }
        rows.extend(score.rows);
    }
    Ok(rows)
}
