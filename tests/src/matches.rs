//! Comparing a response with what a scenario wants of it.

use serde_json::Value;

/// Notes where a value is not as wanted. Every member of a wanted object must be in the given one; arrays have the same
/// length; a wanted string that begins with `~` is part of the given one, and `"*"` stands for any value but `null`.
pub fn matches(given: &Value, wanted: &Value, at: &str, misses: &mut Vec<String>) {
    match (given, wanted) {
        (Value::Object(given), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                let given = given.get(key).unwrap_or(&Value::Null);
                matches(given, wanted, &format!("{at}.{key}"), misses);
            }
        }
        (Value::Array(given), Value::Array(wanted)) if given.len() == wanted.len() => {
            for (n, (given, wanted)) in given.iter().zip(wanted).enumerate() {
                matches(given, wanted, &format!("{at}[{n}]"), misses);
            }
        }
        (Value::String(given), Value::String(wanted)) if wanted.starts_with('~') => {
            if !given.contains(&wanted[1..]) {
                misses.push(format!("{at}: {given:?} does not contain {:?}", &wanted[1..]));
            }
        }
        (given, Value::String(any)) if any == "*" && !given.is_null() => {}
        _ if given == wanted => {}
        _ => misses.push(format!("{at}: {given}, not {wanted}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn misses(given: &Value, wanted: &Value) -> usize {
        let mut misses = Vec::new();
        matches(given, wanted, "response", &mut misses);
        misses.len()
    }

    #[test]
    fn what_is_wanted_must_be_there_and_more_may_be() {
        let given = json!({"a": [1, {"b": "some text"}], "c": null, "d": true});
        assert_eq!(
            misses(&given, &json!({"a": [1, {"b": "~e te"}], "c": null, "d": "*"})),
            0
        );
        for wrong in [
            json!({"a": [1]}),
            json!({"a": [{"b": "~e te"}, 1]}),
            json!({"c": "*"}),
            json!({"e": 1}),
            json!({"d": "~true"}),
            json!([]),
        ] {
            assert_ne!(misses(&given, &wrong), 0, "{wrong}");
        }
    }
}
