//! Scores the engine against truth files: `--truth FILE --source DIR`, repeated; `--list RELATION` shows what differs.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    graphzero::truth::run(&arguments, &mut |row| println!("{row}"))?;
    Ok(())
}
