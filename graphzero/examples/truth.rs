//! Scores the engine against truth files: `truth FILE=DIR…`; `--list RELATION` prints each pair that differs.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut list = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--list" {
            list = arguments.next();
            continue;
        }
        let (file, source) = argument.split_once('=').ok_or("expected FILE=DIR")?;
        let truth = graphzero::truth::read(Path::new(file))?;
        let score = graphzero::truth::score(&truth, Path::new(source))?;
        for row in &score.rows {
            println!(
                "{:<14} {:<26} P {:.3} R {:.3}  right {:>6} wrong {:>5} missed {:>5} disputed {:>4}",
                row.package,
                row.relation,
                row.precision(),
                row.recall(),
                row.right,
                row.wrong,
                row.missed,
                row.disputed
            );
        }
        for ((relation, class), count) in &score.disputed {
            println!("{:<14} disputed: {relation}, {class}: {count}", truth.package);
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
                    println!("{what} {path}:{line}:{column} -> {to}:{to_line}:{to_column}");
                }
            }
        }
    }
    Ok(())
}
