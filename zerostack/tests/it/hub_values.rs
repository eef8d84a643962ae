//! What a response shows of a large value, and how the rest comes back.

use serde_json::json;
use zero_contracts::Handle;

use crate::hub_support::Workspace;

#[test]
fn a_long_string_inside_a_value_is_a_view_and_its_handle_brings_it_back() {
    let ws = Workspace::new(&[]);
    let response = ws.run(
        "const log = Array.from({length: 5000}, (_, i) => `test case_${i} ... ${i === 2500 ? 'FAILED' : 'ok'}`).join('\\n');
         return {code: 101, log, list: [1, {deep: 'word '.repeat(20000)}]}",
    );
    let value = response.value.clone().unwrap().0;
    assert_eq!((&value["code"], &value["list"][0]), (&json!(101), &json!(1)));
    assert_eq!(
        (&value["log"]["kind"], &value["log"]["lines"]),
        (&json!("view"), &json!(5000))
    );
    assert_eq!(value["list"][1]["deep"]["kind"], "view");
    assert!(
        value["log"]["preview"]
            .as_str()
            .unwrap()
            .contains("case_2500 ... FAILED"),
        "{value}"
    );
    assert!(response.ledger.tokens_visible <= 8000 && response.ledger.tokens_raw > 40_000);
    // Both views' handles, and that of the whole value.
    let handles: Vec<Handle> = response.handles.clone();
    assert_eq!(handles.len(), 3, "{handles:?}");
    let (log, deep) = (
        value["log"]["handle"].clone(),
        value["list"][1]["deep"]["handle"].clone(),
    );
    let cell = format!(
        "const log = await z.read({log}, {{lines: [2501, 2501]}}); const deep = await z.read({deep});
         return [log.content, log.of.lines, deep === 'word '.repeat(20000)]"
    );
    assert_eq!(ws.value(&cell), json!(["test case_2500 ... FAILED\n", 5000, true]));
    let whole = handles
        .iter()
        .find(|handle| ![&log, &deep].iter().any(|view| *view == &json!(handle)))
        .unwrap();
    let cell = format!("return (await z.read('{whole}', {{pointer: '/log'}})).content.length");
    assert!(ws.value(&cell).as_u64().unwrap() > 100_000);
}
