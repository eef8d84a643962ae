//! `cargo xtask bench`: medians and ratios against a floor or peer measured in the same run.
//!
//! Each bench is a program that prints one JSON row a line: `{bench, case, median, p95, unit, against, ratio}`.

mod report;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::cargo::{build_supervisor, cargo, output, workspace};
use crate::node;

/// Name of a bench, and the package that has it.
const BENCHES: [(&str, &str); 7] = [
    ("frame", "zerostack"),
    ("cell", "zerostack"),
    ("fs", "fszero"),
    ("run", "zero-supervisor"),
    ("run", "zerostack"),
    ("graph", "graphzero"),
    ("tokens", "tokenzero"),
];

/// The bench that is a program of Node's.
const NODE: &str = "node";

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    bench: String,
    case: String,
    median: f64,
    p95: f64,
    unit: String,
    #[serde(default)]
    against: Option<Against>,
    #[serde(default)]
    ratio: Option<f64>,
}

/// What a row is compared with: a case by name, or the floor's own median in the row's unit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Against {
    Case(String),
    Median(f64),
}

impl std::fmt::Display for Against {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Case(case) => f.write_str(case),
            Self::Median(median) => write!(f, "{median:.3}"),
        }
    }
}

/// Runs one bench, or all of them, prints a table and writes the rows to `json`; all of them make the report in
/// `benchmarks/` anew.
pub fn bench(name: &str, json: Option<&Path>) -> Result<()> {
    let chosen: Vec<_> = BENCHES
        .into_iter()
        .filter(|(bench, _)| name == "all" || *bench == name)
        .collect();
    let on_node = name == "all" || name == NODE;
    if chosen.is_empty() && !on_node {
        let names: Vec<_> = BENCHES.iter().map(|(name, _)| *name).chain([NODE]).collect();
        bail!("`{name}` is not a bench; the benches are all, {}", names.join(", "));
    }
    let mut rows = Vec::new();
    for (bench, package) in chosen {
        // Its own bench builds the supervisor as a test's program, so that it is linked anew for those that come after.
        build_supervisor("release")?;
        // A place of its own: beside a store, whatever lies there is confined entry by entry.
        let temporary = tempfile::Builder::new().prefix("zero-bench-").tempdir()?;
        let words = ["bench", "--quiet", "--package", package, "--bench", bench];
        let printed = output(cargo(&words).env("TMPDIR", temporary.path()))?;
        rows.extend(
            printed
                .lines()
                .filter_map(|line| serde_json::from_str::<Row>(line).ok()),
        );
    }
    if on_node {
        rows.extend(
            node::bench::bench()?
                .lines()
                .filter_map(|line| serde_json::from_str::<Row>(line).ok()),
        );
    }
    print!("{}", table(&rows));
    if name == "all" && !rows.is_empty() {
        report::write(&rows, &workspace().join("benchmarks"))?;
    }
    if let Some(json) = json {
        fs_err::write(json, serde_json::to_string_pretty(&rows)? + "\n")?;
    }
    if rows.is_empty() {
        bail!("the bench printed no row");
    }
    Ok(())
}

/// Makes the report in `benchmarks/` of rows measured one bench after another.
pub fn report(files: &[PathBuf]) -> Result<()> {
    let mut rows: Vec<Row> = Vec::new();
    for file in files {
        let text = fs_err::read(file)?;
        rows.extend(serde_json::from_slice::<Vec<Row>>(&text).with_context(|| format!("reading {}", file.display()))?);
    }
    report::write(&rows, &workspace().join("benchmarks"))
}

fn table(rows: &[Row]) -> String {
    let width = |text: fn(&Row) -> usize, least: usize| rows.iter().map(text).max().unwrap_or(0).max(least);
    let (bench, case) = (width(|row| row.bench.len(), 5), width(|row| row.case.len(), 4));
    let mut table = format!(
        "{:bench$}  {:case$}  {:>12}  {:>12}  {:6}  {:>6}  against\n",
        "bench", "case", "median", "p95", "unit", "ratio"
    );
    for row in rows {
        let ratio = row.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        table += &format!(
            "{:bench$}  {:case$}  {:>12.3}  {:>12.3}  {:6}  {ratio:>6}  {}\n",
            row.bench,
            row.case,
            row.median,
            row.p95,
            row.unit,
            row.against.as_ref().map(Against::to_string).unwrap_or_default()
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_line_up_and_a_missing_ratio_is_blank() {
        let row = |case: &str, ratio| Row {
            bench: "fs".into(),
            case: case.into(),
            median: 1.0,
            p95: 2.5,
            unit: "ms".into(),
            against: Some(Against::Case("cp".into())),
            ratio,
        };
        let table = table(&[row("short", Some(1.25)), row("a longer case", None)]);
        let lines: Vec<_> = table.lines().collect();
        let column = |line: &str, text: &str| line.find(text).unwrap();
        assert_eq!(column(lines[1], "cp"), column(lines[2], "cp"));
        assert!(lines[1].contains("1.25"));
    }
}
