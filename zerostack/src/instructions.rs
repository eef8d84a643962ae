//! What a model is told about cells: short enough to stand in every prompt.

/// Returns the surface of a cell, described to a model in fewer than 900 tokens of o200k_base.
pub fn instructions() -> &'static str {
    include_str!("instructions.md")
}

#[cfg(test)]
mod tests {
    use tokenzero::{TokenConfig, TokenZero};
    use zero_contracts::{Operation, TokenEngine};

    use super::instructions;

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
