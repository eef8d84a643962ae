//! Scores the engine's answers against compiler-grade ground truth.
//!
//! A truth file lists definitions, references (pairs of a use's place and definitions) and callers (pairs of functions)
//! of one published package. The scorer asks the engine as any cell would (`symbols`, `references`, `callers`) and
//! counts pairs: every pair answered that the truth does not have is wrong. Some of those the truth cannot have
//! (module `silence`); they are counted by class in a column of their own, and stay wrong in precision and in every target.
//! Beside the engine stands the naive answer: every identifier equal to a definition's name refers to it.

mod classes;
mod silence;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use zero_contracts::find::{Confidence, FindItem, FindMode, FindOptions, FindRequest};
use zero_contracts::{CancelToken, Error, SourceView, StructureEngine};

use self::classes::Classifier;
use self::silence::Silence;
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
    /// Those of the wrong pairs that the truth cannot have, for a reason that its own content shows.
    pub silent: usize,
}

impl Row {
    /// Returns right pairs by pairs answered; 1 when nothing was answered.
    pub fn precision(&self) -> f64 {
        ratio(self.right, self.right + self.wrong)
    }

    /// Returns precision over the pairs that the truth could have.
    pub fn heard_precision(&self) -> f64 {
        ratio(self.right, self.right + self.wrong - self.silent)
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
    /// Pairs answered that the truth does not have, by relation, each with its class.
    pub wrong: Vec<(&'static str, Pair, String)>,
    /// Pairs of the truth that were not answered, by relation, each with its class.
    pub missed: Vec<(&'static str, Pair, String)>,
    /// Wrong pairs that the truth cannot have, by relation and class.
    pub silent: BTreeMap<(&'static str, &'static str), usize>,
    /// What is missed or wrong, by relation and class, without what is silent.
    pub classes: BTreeMap<(&'static str, String), usize>,
    silence: Silence,
    classifier: Classifier,
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
        classifier: Classifier::new(truth, &view)?,
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
    // Every site of a function can hold calls, also those that `symbols` does not list.
    let mut sites = Vec::new();
    for name in &names {
        sites.extend(asker.all(FindMode::Definitions, name)?);
    }
    for item in symbols.iter().chain(&sites) {
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
        let name = match relation.split('.').next() {
            Some("definitions") => "definitions",
            Some("references") => "references",
            _ => "callers",
        };
        let (mut wrong, mut silent) = (Vec::new(), 0);
        for pair in answer.difference(known) {
            let class = self.silence.class(name, pair);
            silent += usize::from(class.is_some());
            if list && let Some(class) = class {
                *self.silent.entry((name, class)).or_default() += 1;
            }
            wrong.push((pair, class));
        }
        self.rows.push(Row {
            package: truth.package.clone(),
            relation: relation.to_owned(),
            right,
            wrong: wrong.len(),
            missed: known.len() - right,
            silent: if relation.ends_with("naive") { 0 } else { silent },
        });
        if list {
            for (pair, silent) in wrong {
                let class = match silent {
                    Some(class) => format!("silent: {class}"),
                    None => {
                        let class = self.classifier.wrong(name, pair, known, answer);
                        *self.classes.entry((name, class.clone())).or_default() += 1;
                        class
                    }
                };
                self.wrong.push((name, pair.clone(), class));
            }
            for pair in known.difference(answer) {
                let class = self.classifier.missed(name, pair, answer);
                *self.classes.entry((name, class.clone())).or_default() += 1;
                self.missed.push((name, pair.clone(), class));
            }
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
                let comment = if path.ends_with(".py") { "#" } else { "//" };
                let source = source.split(comment).next().unwrap_or_default();
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

/// The least precision and recall.
type Least = (f64, f64);

/// What each language must reach, by extension: definitions, references and callers; then the references that are
/// called exact.
const TARGETS: &[(&str, [Least; 3], Option<Least>)] = &[
    ("rs", [(0.99, 0.99), (0.95, 0.92), (0.93, 0.90)], Some((0.99, 0.70))),
    ("ts", [(0.98, 0.98), (0.90, 0.80), (0.85, 0.75)], None),
    ("tsx", [(0.98, 0.98), (0.90, 0.80), (0.85, 0.75)], None),
    ("py", [(0.98, 0.98), (0.90, 0.80), (0.85, 0.75)], None),
];

/// Returns the least precision and recall of a relation; none if there is no target for it.
fn target(truth: &Truth, relation: &str) -> Option<Least> {
    let extension = truth.files.first()?.rsplit('.').next()?;
    let (_, all, exact) = TARGETS.iter().find(|(language, ..)| *language == extension)?;
    match relation {
        "definitions" => Some(all[0]),
        "references" => Some(all[1]),
        "callers" => Some(all[2]),
        "references.exact" => *exact,
        _ => None,
    }
}

/// Runs the scorer as a command: `--truth FILE --source DIR`, repeated; `--list RELATION` prints every pair that differs,
/// `--classes all` the classes of what is missed or wrong even where every target is met. Each row goes to `print`.
///
/// # Errors
/// `invalid_input` for arguments; errors of reading and of the engine.
pub fn run(arguments: &[String], print: &mut dyn FnMut(String)) -> Result<Vec<Row>, Error> {
    let (mut truths, mut sources, mut list, mut classes) = (Vec::new(), Vec::new(), None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let value = rest
            .next()
            .ok_or_else(|| Error::invalid(format!("`{argument}` needs a value")))?;
        match argument.as_str() {
            "--truth" => truths.push(value.clone()),
            "--source" => sources.push(value.clone()),
            "--list" => list = Some(value.clone()),
            "--classes" if value == "all" => classes = true,
            other => {
                return Err(
                    Error::invalid(format!("unknown argument `{other} {value}`")).with_accepted([
                        "--truth FILE",
                        "--source DIR",
                        "--list RELATION",
                        "--classes all",
                    ]),
                );
            }
        }
    }
    if truths.len() != sources.len() {
        return Err(Error::invalid("each --truth needs its --source"));
    }
    let mut rows = Vec::new();
    for (file, source) in truths.iter().zip(&sources) {
        let truth = read(Path::new(file))?;
        let mut score = score(&truth, Path::new(source))?;
        let mut short = false;
        for row in &score.rows {
            let below = target(&truth, &row.relation)
                .is_some_and(|(precision, recall)| row.precision() < precision || row.recall() < recall);
            short |= below;
            print(format!(
                "{:<13} {:<23} precision {:.3} recall {:.3}  right {:>5} wrong {:>6} missed {:>5}  silent {:>4} without them {:.3}{}",
                row.package,
                row.relation,
                row.precision(),
                row.recall(),
                row.right,
                row.wrong,
                row.missed,
                row.silent,
                if row.silent == 0 {
                    row.precision()
                } else {
                    row.heard_precision()
                },
                if below { "  SHORT" } else { "" }
            ));
        }
        for ((relation, class), count) in &score.silent {
            print(format!("{:<13} silent  {relation}: {count:>5} {class}", truth.package));
        }
        if short || classes {
            let mut classes: Vec<_> = score.classes.iter().collect();
            classes.sort_by_key(|((relation, _), count)| (*relation, std::cmp::Reverse(**count)));
            for ((relation, class), count) in classes {
                print(format!("{:<13} differs {relation}: {count:>5} {class}", truth.package));
            }
        }
        if let Some(relation) = &list {
            for (what, pairs) in [("wrong", &mut score.wrong), ("missed", &mut score.missed)] {
                pairs.sort();
                for ((path, line, column), (to, to_line, to_column), class) in pairs
                    .iter()
                    .filter(|(r, ..)| r == relation)
                    .map(|(_, (from, to), class)| (from, to, class))
                {
                    let text = score.classifier.line(path, *line);
                    print(format!(
                        "{what} {path}:{line}:{column} -> {to}:{to_line}:{to_column} [{class}] {text}"
                    ));
                }
            }
        }
        rows.extend(score.rows);
    }
    Ok(rows)
}
