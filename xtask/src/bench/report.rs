//! The report in `benchmarks/`: every row in Markdown and JSON, and the ratios as a plot.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;

use super::{Against, Row};
use crate::cargo::{output, workspace};

/// What was measured on what: nobody can read a number without it.
fn machine() -> Result<Vec<(&'static str, String)>> {
    let field = |file: &str, name: &str| -> Option<String> {
        let text = fs_err::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let unknown = || "unknown".to_owned();
    let commit = output(
        Command::new("git")
            .args(["rev-parse", "--short", "HEAD"])
            .current_dir(workspace()),
    );
    let file_system = output(
        Command::new("stat")
            .args(["--file-system", "--format=%T"])
            .arg(workspace()),
    );
    Ok(vec![
        (
            "processor",
            field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
        ),
        ("processors used", std::thread::available_parallelism()?.to_string()),
        ("memory", field("/proc/meminfo", "MemTotal").unwrap_or_else(unknown)),
        (
            "kernel",
            fs_err::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        ),
        (
            "file system",
            file_system.map_or_else(|_| unknown(), |text| text.trim().to_owned()),
        ),
        (
            "compiler",
            output(Command::new("rustc").arg("--version"))?.trim().to_owned(),
        ),
        (
            "commit",
            commit.map_or_else(|_| unknown(), |text| text.trim().to_owned()),
        ),
    ])
}

/// Writes `latest.json`, `latest.md` and `latest.svg`.
pub(super) fn write(rows: &[Row], directory: &Path) -> Result<()> {
    fs_err::create_dir_all(directory)?;
    fs_err::write(
        directory.join("latest.json"),
        serde_json::to_string_pretty(rows)? + "\n",
    )?;
    fs_err::write(directory.join("latest.md"), markdown(rows, &machine()?))?;
    plot(rows, &directory.join("latest.svg"))
}

fn markdown(rows: &[Row], machine: &[(&str, String)]) -> String {
    let mut text = String::from(
        "# Benchmarks\n\nWritten by `cargo xtask bench all`, or of benches run one after another (option `--report`). A ratio compares with the floor or peer that the last column names, \
         measured in the same run: below 1 is faster or smaller than it, but for rates (units per second), where above 1 is.\n\n\
         | machine | |\n| --- | --- |\n",
    );
    // Writing to a string does not fail.
    for (name, value) in machine {
        let _ = writeln!(text, "| {name} | {value} |");
    }
    text += "\n![Ratios](latest.svg)\n";
    let mut bench = None;
    for row in rows {
        if bench != Some(&row.bench) {
            bench = Some(&row.bench);
            let _ = write!(
                text,
                "\n## {}\n\n| case | median | p95 | unit | ratio | against |\n| --- | ---: | ---: | --- | ---: | --- |\n",
                row.bench
            );
        }
        let _ = writeln!(
            text,
            "| {} | {:.3} | {:.3} | {} | {} | {} |",
            row.case,
            row.median,
            row.p95,
            row.unit,
            row.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            row.against.as_ref().map(Against::to_string).unwrap_or_default()
        );
    }
    text
}

/// Pixels of one bar with its gap.
const BAR: u32 = 22;

/// One bar a ratio, on a logarithmic scale around 1.
fn plot(rows: &[Row], file: &Path) -> Result<()> {
    let bars: Vec<(String, f64)> = rows
        .iter()
        .filter_map(|row| {
            Some((
                format!("{}: {}", row.bench, row.case),
                row.ratio.filter(|ratio| *ratio > 0.0)?,
            ))
        })
        .collect();
    if bars.is_empty() {
        return Ok(());
    }
    let most = bars
        .iter()
        .map(|(_, ratio)| ratio.log2().abs())
        .fold(1.0, f64::max)
        .ceil();
    let height = BAR * bars.len() as u32 + 80;
    let root = SVGBackend::new(file, (1000, height)).into_drawing_area();
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(
                "ratio to the floor or peer (logarithmic; the line is 1)",
                ("sans-serif", 16),
            )
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(10)
            .build_cartesian_2d(-most..most, 0.0..bars.len() as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_label_formatter(&|power| format!("{:.2}", power.exp2()))
            .draw()?;
        for (n, (name, ratio)) in bars.iter().enumerate() {
            let top = (bars.len() - n) as f64;
            let power = ratio.log2();
            let colour = if power > 0.0 {
                RGBColor(204, 121, 74)
            } else {
                RGBColor(74, 134, 150)
            };
            let bar = Rectangle::new(
                [(power.min(0.0), top - 0.85), (power.max(0.0), top - 0.15)],
                colour.filled(),
            );
            chart.draw_series([bar])?;
            let label = Text::new(format!("{name}  {ratio:.2}"), (-most, top - 0.25), ("sans-serif", 12));
            chart.draw_series([label])?;
        }
        chart.draw_series([PathElement::new([(0.0, 0.0), (0.0, bars.len() as f64)], BLACK)])?;
        root.present()?;
        Ok(())
    };
    draw()
        .map_err(|e| anyhow!("{e}"))
        .with_context(|| format!("drawing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_every_row_and_a_bar_for_every_ratio() {
        let row = |case: &str, ratio| Row {
            bench: "fs".into(),
            case: case.into(),
            median: 1.0,
            p95: 2.0,
            unit: "ms".into(),
            against: None,
            ratio,
        };
        let rows = [row("quick", Some(0.5)), row("slow", Some(3.0)), row("alone", None)];
        let text = markdown(&rows, &[("kernel", "6.1".into())]);
        assert!(text.contains("| kernel | 6.1 |") && text.contains("| alone | 1.000 | 2.000 | ms |  |  |"));
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("plot.svg");
        plot(&rows, &file).expect("a plot");
        let svg = std::fs::read_to_string(file).expect("the plot");
        assert!(svg.contains("fs: quick  0.50") && svg.contains("fs: slow  3.00") && !svg.contains("alone"));
    }
}
