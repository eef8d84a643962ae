//! Plans against what cells do.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use zero_contracts::{CancelToken, ErrorKind, Operation};
use zerostack::frame::{CallHandler, CallReply, CallRequest, FrameBudgets, FrameSpec, run};
use zerostack::plan_cell;

use crate::hub_support::Workspace;
use crate::program::program;

/// A call: its operation, its name, the JSON text of its arguments.
type Call = (Operation, &'static str, String);

/// Answers with what was asked, and keeps it.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Call>>>);

impl CallHandler for Recorder {
    fn call(&self, request: CallRequest) -> Pin<Box<dyn Future<Output = zero_contracts::Result<CallReply>> + Send>> {
        let answer = CallReply::json(request.arguments.clone());
        self.0
            .lock()
            .unwrap()
            .push((request.operation, request.name, request.arguments));
        Box::pin(async move { Ok(answer) })
    }
}

/// Runs a program and checks that each call it made was planned. Returns how many it made, and of them how many were planned
/// with arguments that are known.
fn check(source: &str) -> Result<(usize, usize), TestCaseError> {
    let recorder = Recorder::default();
    let spec = FrameSpec {
        source: source.to_owned(),
        budgets: FrameBudgets {
            wall: std::time::Duration::from_secs(5),
            ..FrameBudgets::default()
        },
        ..FrameSpec::default()
    };
    let outcome = run(spec, Arc::new(recorder.clone()), &CancelToken::new());
    prop_assert!(!outcome.given_up, "given up: {}", source);
    let plan = match plan_cell(source) {
        Ok(plan) => plan,
        Err(planned) => {
            let ran = outcome.settled.err().map(|error| error.kind);
            prop_assert_eq!(
                ran,
                Some(ErrorKind::Syntax),
                "{} was not planned: {:?}",
                source,
                planned
            );
            return Ok((0, 0));
        }
    };
    let calls = recorder.0.lock().unwrap();
    let mut known = 0;
    for (operation, name, arguments) in &*calls {
        let method = name.strip_prefix("state.");
        let arguments: Vec<Value> = serde_json::from_str(arguments).unwrap();
        prop_assert!(
            plan.covers(*operation, method, &arguments),
            "{} {:?} is not in the plan {:?} of\n{}",
            name,
            arguments,
            plan,
            source
        );
        let dynamic = |planned: &zero_contracts::plan::PlannedOperation| {
            planned.operation == *operation && planned.arguments == zero_contracts::plan::PlannedArguments::Dynamic
        };
        known += usize::from(!plan.operations.iter().any(dynamic));
    }
    Ok((calls.len(), known))
}

#[test]
fn every_call_that_a_program_makes_was_planned() {
    let cases = std::env::var("ZEROSTACK_PROGRAMS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(150);
    let config = ProptestConfig {
        cases,
        max_shrink_iters: 500,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&prop::collection::vec(any::<u8>(), 0..300), |bytes| {
            check(&program(&bytes)).map(|_| ())
        })
        .unwrap();
    // The programs do call.
    let mut runner = TestRunner::deterministic();
    let made = (0..40).map(|_| {
        let tree = prop::collection::vec(any::<u8>(), 0..300)
            .new_tree(&mut runner)
            .unwrap();
        check(&program(&tree.current())).unwrap().0
    });
    assert!(made.sum::<usize>() > 60);
    let known = check("await z.read('a', {lines: [1, 2]}); for (const k of ['x', 'y']) await z.state.get(k)");
    assert_eq!(known.unwrap(), (3, 3));
}

#[test]
fn a_plan_is_made_without_running_anything() {
    let ws = Workspace::new(&[("a", "x")]);
    let plan = ws
        .kernel
        .plan_cell("await z.edit('a', {content: 'y'}); z.run(input.command); for (;;) {}")
        .unwrap();
    assert_eq!(ws.file("a"), "x");
    assert_eq!(
        serde_json::to_value(&plan).unwrap(),
        json!({"operations": [
            {"operation": "edit", "arguments": {"listed": [{"literal": "a"}, {"literal": {"content": "y"}}]}, "location": {"line": 1, "column": 7}},
            {"operation": "run", "arguments": {"listed": ["dynamic"]}, "location": {"line": 1, "column": 36}},
        ]})
    );
    let error = ws.kernel.plan_cell("return (").unwrap_err();
    assert!(error.kind == ErrorKind::Syntax && error.location.is_some());
    assert_eq!(
        ws.kernel.plan_cell(&" ".repeat(300 << 10)).unwrap_err().kind,
        ErrorKind::InvalidInput
    );
}
