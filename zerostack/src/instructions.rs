//! What a model is told about cells, short enough to stand in every prompt; and the schemas of what cells and hosts say.

/// Returns the surface of a cell, described to a model in fewer than 900 tokens of o200k_base.
pub fn instructions() -> &'static str {
    include_str!("instructions.md")
}

/// Returns the JSON Schemas (draft 2020-12) of requests, responses and events: see
/// [`zero_contracts::schema::SCHEMAS`].
pub fn schemas() -> serde_json::Value {
    // A test of this module reads the document; it is part of the program.
    serde_json::from_str(zero_contracts::schema::SCHEMAS).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokenzero::{TokenConfig, TokenZero};
    use zero_contracts::{Operation, TokenEngine};

    use super::instructions;

    #[test]
    fn there_is_a_schema_for_every_operation() {
        for operation in Operation::ALL {
            assert!(
                super::schemas()["$defs"][operation.as_str()].is_object(),
                "{operation:?}"
            );
        }
    }

    #[test]
    fn they_name_every_operation_in_fewer_than_900_tokens() {
        let text = instructions();
        for operation in Operation::ALL {
            assert!(text.contains(&format!("z.{}", operation.as_str())), "{operation:?}");
        }
        let tokens = TokenZero::new(TokenConfig::default());
        let count = tokens.count(text).tokens;
        assert!(count < 900, "{count}");
    }
}
