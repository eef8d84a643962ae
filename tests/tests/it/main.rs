//! Cross-engine tests: scenario folders through the whole kernel.

use std::collections::BTreeSet;
use std::path::Path;

use zero_tests::Scenario;
use zerostack::contracts::ErrorKind;

fn scenarios() -> Vec<Scenario> {
    Scenario::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")).expect("scenarios")
}

fn cookbook() -> Vec<Scenario> {
    Scenario::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cookbook")).expect("cookbook")
}

/// Tells what is not as the scenarios say.
fn misses<'a>(scenarios: impl Iterator<Item = &'a Scenario>) -> Vec<String> {
    scenarios
        .filter_map(|scenario| {
            let misses = scenario.run().unwrap_or_else(|e| vec![e.to_string()]);
            (!misses.is_empty()).then(|| format!("{}:\n  {}", scenario.name(), misses.join("\n  ")))
        })
        .collect()
}

#[test]
fn the_cookbook_works_as_it_is_printed() {
    let cells = cookbook();
    let failed = misses(cells.iter());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let printed = include_str!("../../../docs/cookbook.md");
    for cell in &cells {
        let source = std::fs::read_to_string(cell.cell().unwrap()).unwrap();
        let block = format!("```js\n{source}```\n");
        assert!(
            printed.contains(&block),
            "docs/cookbook.md does not show {} as it is",
            cell.name()
        );
        assert!(
            printed.contains(&format!("<a id=\"{}\">", cell.name())),
            "{}",
            cell.name()
        );
    }
    assert!(cells.len() >= 15, "{} cells", cells.len());
}

/// Names of the members of an object's options, and of the forms of a union.
fn members(schema: &serde_json::Value) -> BTreeSet<String> {
    let forms = schema["oneOf"].as_array().into_iter().flatten();
    std::iter::once(schema)
        .chain(forms)
        .filter_map(|schema| schema["properties"].as_object())
        .flat_map(|properties| properties.keys().cloned())
        .collect()
}

#[test]
fn the_page_on_cells_names_everything_that_they_can_say() {
    let page = include_str!("../../../docs/cells.md");
    let schemas = zerostack::schemas();
    let defs = &schemas["$defs"];
    let sections: Vec<_> = page.split("\n## ").collect();
    for (operation, unions) in [
        ("read", vec![]),
        ("find", vec![]),
        ("edit", vec!["change"]),
        ("apply", vec!["operation", "effectRequest"]),
        ("run", vec![]),
    ] {
        let heading = format!("`z.{operation}(");
        let section = sections
            .iter()
            .find(|section| section.starts_with(&heading))
            .expect(operation);
        let mut names = members(&defs[operation]["properties"]["options"]);
        names.extend(unions.into_iter().flat_map(|union| members(&defs[union])));
        assert!(!names.is_empty(), "{operation}");
        // A change of one file is told of at `z.edit`.
        names.retain(|name| operation != "apply" || !members(&defs["change"]).contains(name));
        for name in names {
            let told = section.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
            assert!(told, "docs/cells.md says nothing of `{name}` at z.{operation}");
        }
    }
    let modes = defs["find"]["properties"]["options"]["properties"]["mode"]["enum"]
        .as_array()
        .expect("modes");
    for mode in modes.iter().filter_map(|mode| mode.as_str()) {
        assert!(
            page.contains(&format!("`{mode}`")),
            "docs/cells.md says nothing of the mode `{mode}`"
        );
    }
}

/// Runs every fourth scenario, so that they run on several processors.
fn run_share(share: usize) {
    let failed = misses(scenarios().iter().skip(share).step_by(4));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn scenarios_end_as_they_say_1() {
    run_share(0);
}

#[test]
fn scenarios_end_as_they_say_2() {
    run_share(1);
}

#[test]
fn scenarios_end_as_they_say_3() {
    run_share(2);
}

#[test]
fn scenarios_end_as_they_say_4() {
    run_share(3);
}

/// The process of a scenario whose `setup.json` has `killedAtEveryStep`.
#[test]
#[ignore = "started by such a scenario, and mostly killed"]
fn a_process_that_is_killed() {
    assert!(zero_tests::VICTIM == "a_process_that_is_killed");
    zero_tests::be_the_victim().unwrap();
}

#[test]
fn scenarios_cover_every_operation_and_every_kind_of_error() {
    let scenarios = scenarios();
    let mut kinds = BTreeSet::new();
    let mut failing = 0;
    for scenario in &scenarios {
        let wanted = scenario.wanted().unwrap();
        let caught = wanted["value"]["kind"]
            .as_str()
            .filter(|_| wanted["value"]["caught"] == true);
        let kind = wanted["error"]["kind"].as_str().or(caught);
        failing += usize::from(kind.is_some());
        kinds.extend(kind.map(str::to_owned));
    }
    for operation in ["read", "find", "edit", "apply", "run", "state"] {
        let count = scenarios
            .iter()
            .filter(|scenario| scenario.name().starts_with(&format!("{operation}-")))
            .count();
        assert!(count >= 15, "{count} scenarios of z.{operation}");
    }
    assert!(scenarios.len() >= 120, "{} scenarios", scenarios.len());
    assert!(
        failing * 5 >= scenarios.len() * 2,
        "{failing} of {} fail or conflict",
        scenarios.len()
    );
    let missing: Vec<&str> = ErrorKind::ALL
        .iter()
        .map(|kind| kind.as_str())
        .filter(|kind| !kinds.contains(*kind))
        .collect();
    assert!(missing.is_empty(), "no scenario ends in {missing:?}");
}
