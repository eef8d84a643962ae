//! The encodings by their names, and the models that use them.

use std::fmt;
use std::str::FromStr;

use zero_contracts::Error;

use crate::split::Pattern;
use crate::vocabulary::{CL100K, O200K, P50K, R50K, Vocabulary};

/// A tokenizer that is counted exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// `o200k_base`: GPT-4o, GPT-4.1, GPT-5 and the o series.
    #[default]
    O200kBase,
    /// `o200k_harmony`: the open gpt-oss models. As text it counts like `o200k_base`; only its special tokens differ.
    O200kHarmony,
    /// `cl100k_base`: GPT-4, GPT-3.5 and the embedding models.
    Cl100kBase,
    /// `p50k_base`: the code models.
    P50kBase,
    /// `r50k_base`: GPT-2 and GPT-3.
    R50kBase,
}

/// Models by their whole name.
const MODELS: &[(&str, Encoding)] = &[
    ("o1", Encoding::O200kBase),
    ("o3", Encoding::O200kBase),
    ("o4-mini", Encoding::O200kBase),
    ("gpt-4.1", Encoding::O200kBase),
    ("gpt-4o", Encoding::O200kBase),
    ("gpt-4", Encoding::Cl100kBase),
    ("gpt-3.5-turbo", Encoding::Cl100kBase),
    ("gpt-3.5", Encoding::Cl100kBase),
    ("gpt-35-turbo", Encoding::Cl100kBase),
    ("davinci-002", Encoding::Cl100kBase),
    ("babbage-002", Encoding::Cl100kBase),
    ("text-embedding-ada-002", Encoding::Cl100kBase),
    ("text-embedding-3-small", Encoding::Cl100kBase),
    ("text-embedding-3-large", Encoding::Cl100kBase),
    ("text-davinci-003", Encoding::P50kBase),
    ("text-davinci-002", Encoding::P50kBase),
    ("code-davinci-002", Encoding::P50kBase),
    ("code-davinci-001", Encoding::P50kBase),
    ("code-cushman-002", Encoding::P50kBase),
    ("code-cushman-001", Encoding::P50kBase),
    ("davinci-codex", Encoding::P50kBase),
    ("cushman-codex", Encoding::P50kBase),
    // As text, p50k_edit counts like p50k_base.
    ("text-davinci-edit-001", Encoding::P50kBase),
    ("code-davinci-edit-001", Encoding::P50kBase),
    ("text-davinci-001", Encoding::R50kBase),
    ("text-curie-001", Encoding::R50kBase),
    ("text-babbage-001", Encoding::R50kBase),
    ("text-ada-001", Encoding::R50kBase),
    ("davinci", Encoding::R50kBase),
    ("curie", Encoding::R50kBase),
    ("babbage", Encoding::R50kBase),
    ("ada", Encoding::R50kBase),
    ("text-similarity-davinci-001", Encoding::R50kBase),
    ("text-similarity-curie-001", Encoding::R50kBase),
    ("text-similarity-babbage-001", Encoding::R50kBase),
    ("text-similarity-ada-001", Encoding::R50kBase),
    ("text-search-davinci-doc-001", Encoding::R50kBase),
    ("text-search-curie-doc-001", Encoding::R50kBase),
    ("text-search-babbage-doc-001", Encoding::R50kBase),
    ("text-search-ada-doc-001", Encoding::R50kBase),
    ("code-search-babbage-code-001", Encoding::R50kBase),
    ("code-search-ada-code-001", Encoding::R50kBase),
    ("gpt2", Encoding::R50kBase),
    ("gpt-2", Encoding::R50kBase),
];

/// Families of models by how their names begin; the first that fits holds.
const FAMILIES: &[(&str, Encoding)] = &[
    ("o1-", Encoding::O200kBase),
    ("o3-", Encoding::O200kBase),
    ("o4-mini-", Encoding::O200kBase),
    ("gpt-5", Encoding::O200kBase),
    ("gpt-4.5-", Encoding::O200kBase),
    ("gpt-4.1-", Encoding::O200kBase),
    ("chatgpt-4o-", Encoding::O200kBase),
    ("gpt-4o-", Encoding::O200kBase),
    ("gpt-4-", Encoding::Cl100kBase),
    ("gpt-3.5-turbo-", Encoding::Cl100kBase),
    ("gpt-35-turbo-", Encoding::Cl100kBase),
    ("gpt-oss-", Encoding::O200kHarmony),
    ("codex-mini", Encoding::O200kBase),
];

impl Encoding {
    /// Every encoding, the default first.
    pub const ALL: [Self; 5] = [
        Self::O200kBase,
        Self::O200kHarmony,
        Self::Cl100kBase,
        Self::P50kBase,
        Self::R50kBase,
    ];

    /// Returns the encoding's name, such as `o200k_base`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::O200kHarmony => "o200k_harmony",
            Self::Cl100kBase => "cl100k_base",
            Self::P50kBase => "p50k_base",
            Self::R50kBase => "r50k_base",
        }
    }

    /// Returns the encoding of a model, by the model list of the reference tokenizer; none for a model it does not know.
    /// A fine-tuned model (`ft:BASE:…`) has the encoding of its base.
    pub fn of_model(model: &str) -> Option<Self> {
        let model = match model.strip_prefix("ft:") {
            Some(rest) => rest.split(':').next().unwrap_or(rest),
            None => model,
        };
        MODELS
            .iter()
            .find(|(name, _)| *name == model)
            .or_else(|| FAMILIES.iter().find(|(prefix, _)| model.starts_with(prefix)))
            .map(|(_, encoding)| *encoding)
    }

    pub(crate) fn pattern(self) -> Pattern {
        match self {
            Self::O200kBase | Self::O200kHarmony => Pattern::O200k,
            Self::Cl100kBase => Pattern::Cl100k,
            Self::P50kBase | Self::R50kBase => Pattern::Gpt2,
        }
    }

    pub(crate) fn vocabulary(self) -> &'static Vocabulary {
        match self {
            Self::O200kBase | Self::O200kHarmony => &O200K,
            Self::Cl100kBase => &CL100K,
            Self::P50kBase => &P50K,
            Self::R50kBase => &R50K,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Encoding {
    type Err = Error;

    /// Reads the name of an encoding or model.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|encoding| encoding.as_str() == name)
            .or_else(|| Self::of_model(name))
            .ok_or_else(|| {
                Error::invalid(format!("`{name}` is neither an encoding nor a known model"))
                    .with_accepted(Self::ALL.map(Self::as_str))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

    #[test]
    fn models_have_the_encoding_that_the_reference_gives_them() {
        let more = [
            "o1-preview",
            "o4",
            "gpt-5.2-codex",
            "gpt-4o-2024-05-13",
            "gpt-4-32k",
            "gpt-oss-120b",
            "gpt-6",
            "",
            "ft:gpt-4o:org:name:id",
            "ft:",
            "codex-mini-latest",
            "gpt-5",
            "claude-x",
            "chatgpt-4o-latest",
        ];
        for model in MODELS.iter().map(|(name, _)| *name).chain(more) {
            let reference = get_tokenizer(model).map(|tokenizer| match tokenizer {
                Tokenizer::O200kHarmony => Encoding::O200kHarmony,
                Tokenizer::O200kBase => Encoding::O200kBase,
                Tokenizer::Cl100kBase => Encoding::Cl100kBase,
                Tokenizer::P50kBase | Tokenizer::P50kEdit => Encoding::P50kBase,
                Tokenizer::R50kBase | Tokenizer::Gpt2 => Encoding::R50kBase,
            });
            assert_eq!(Encoding::of_model(model), reference, "{model}");
        }
    }

    #[test]
    fn names_come_back_and_unknown_ones_list_the_known() {
        for encoding in Encoding::ALL {
            assert_eq!(encoding.to_string().parse::<Encoding>().unwrap(), encoding);
        }
        assert_eq!("o200k".parse::<Encoding>().unwrap_err().accepted.len(), 5);
    }
}
