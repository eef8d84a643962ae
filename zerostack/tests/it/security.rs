//! SECURITY.md names a test for each of its lines: they exist.

use std::path::Path;

#[test]
fn every_test_that_security_md_names_exists() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(here.join("../SECURITY.md")).unwrap();
    let directories = ["tests/it", "supervisor/tests/it", "../fszero/tests/it"].map(|directory| here.join(directory));
    let mut named = 0;
    for line in text
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains("::"))
    {
        for name in line.split('`').skip(1).step_by(2).filter(|name| name.contains("::")) {
            let (module, test) = name.rsplit_once("::").unwrap();
            let file = format!("{}.rs", module.replace("::", "/"));
            let sources = directories
                .iter()
                .filter_map(|directory| std::fs::read_to_string(directory.join(&file)).ok());
            let found = sources
                .into_iter()
                .any(|source| source.contains(&format!("fn {test}(")));
            assert!(found, "SECURITY.md names {name}, which is not there");
            named += 1;
        }
    }
    assert!(named > 40, "{named} names");
}
