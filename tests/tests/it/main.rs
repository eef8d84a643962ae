//! Cross-engine tests: scenario folders through the whole kernel.

use std::path::Path;

use zero_tests::Scenario;

#[test]
fn every_scenario_ends_as_it_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let scenarios = Scenario::all(&directory).unwrap();
    assert!(scenarios.len() >= 20, "{} scenarios", scenarios.len());
    let failed: Vec<String> = scenarios
        .iter()
        .filter_map(|scenario| {
            let misses = scenario.run().unwrap();
            (!misses.is_empty()).then(|| format!("{}:\n  {}", scenario.name(), misses.join("\n  ")))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
