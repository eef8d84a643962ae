//! What a cell may do, told without running it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JsonValue, Location, Operation};

/// Every call of `z` that a cell can make.
///
/// It over-approximates: a call that is made when the cell runs is here (so many times as it likes), with its arguments where
/// they are written out; not every call that is here is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The calls, in the order they are written.
    pub operations: Vec<PlannedOperation>,
}

/// A call that a cell can make, or calls of one operation that are not known any further.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct PlannedOperation {
    /// Which of the six.
    pub operation: Operation,
    /// For `state`, which of its methods (`get`, `set`, …); absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// With what.
    pub arguments: PlannedArguments,
    /// Where it is written.
    pub location: Location,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub enum PlannedArguments {
    /// Any: the operation was aliased, destructured, computed, passed on, or called with a spread.
    Dynamic,
    /// As many as these, or fewer where the last ones are dynamic.
    Listed(Vec<PlannedArgument>),
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub enum PlannedArgument {
    /// Written out.
    Literal(JsonValue),
    /// Computed.
    Dynamic,
}

impl Plan {
    /// Tells whether a call is planned. `method` is that of `state`.
    pub fn covers(&self, operation: Operation, method: Option<&str>, arguments: &[Value]) -> bool {
        self.operations.iter().any(|planned| {
            planned.operation == operation
                && planned.method.as_deref().is_none_or(|name| method == Some(name))
                && planned.arguments.cover(arguments)
        })
    }
}

impl PlannedArguments {
    fn cover(&self, given: &[Value]) -> bool {
        match self {
            Self::Dynamic => true,
            Self::Listed(listed) => {
                given.len() <= listed.len()
                    && listed.iter().enumerate().all(|(at, planned)| match planned {
                        PlannedArgument::Dynamic => true,
                        PlannedArgument::Literal(literal) => given.get(at) == Some(&literal.0),
                    })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plan_covers_what_it_lists_and_nothing_else() {
        let location = Location { line: 1, column: 1 };
        let planned = |operation, method: Option<&str>, arguments| PlannedOperation {
            operation,
            method: method.map(str::to_owned),
            arguments,
            location,
        };
        let literal = |value: Value| PlannedArgument::Literal(JsonValue(value));
        let plan = Plan {
            operations: vec![
                planned(
                    Operation::Read,
                    None,
                    PlannedArguments::Listed(vec![literal(json!("a")), PlannedArgument::Dynamic]),
                ),
                planned(Operation::State, Some("get"), PlannedArguments::Dynamic),
                planned(Operation::Run, None, PlannedArguments::Dynamic),
            ],
        };
        assert!(plan.covers(Operation::Read, None, &[json!("a")]));
        assert!(plan.covers(Operation::Read, None, &[json!("a"), json!({"full": true})]));
        assert!(!plan.covers(Operation::Read, None, &[json!("b")]) && !plan.covers(Operation::Read, None, &[]));
        assert!(!plan.covers(Operation::Read, None, &[json!("a"), json!(1), json!(2)]));
        assert!(plan.covers(Operation::State, Some("get"), &[]) && !plan.covers(Operation::State, Some("set"), &[]));
        assert!(plan.covers(Operation::Run, None, &[json!("x")]) && !plan.covers(Operation::Find, None, &[]));
        assert_eq!(
            serde_json::to_value(&plan.operations[0]).unwrap(),
            json!({"operation": "read", "arguments": {"listed": [{"literal": "a"}, "dynamic"]}, "location": {"line": 1, "column": 1}})
        );
    }
}
