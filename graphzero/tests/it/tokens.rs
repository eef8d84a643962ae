//! Arguments of macros that are read from their tokens give what parsing their text gives.

use graphzero::code::Code;
use graphzero::facts::FileFacts;
use graphzero::language::{self, Lang};
use graphzero::parse::Parsing;
use proptest::prelude::*;
use zero_contracts::CancelToken;

fn facts(text: &str) -> FileFacts {
    let token = CancelToken::new();
    let (rust, _) = language::of_path(&"a.rs".parse().expect("a path")).expect("Rust is built in");
    rust.facts(Lang::Rust, text, &mut Parsing::new(&token))
        .expect("nobody cancels")
}

/// Names, of locals too, paths, literals, and every operator that the reader knows, in any order and depth.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "(a|b|x|closure|closure|item|Self|self|self|None)",
        "(x|crate|Self|std::mem)::(a|T::new|CONST)",
        "(1|0x1f|2u8|1.5|'c'|b'c'|\"t\"|b\"t\"|r\"t\"|true)",
        "(inner|std::format|vec)!\\((|a|\"f\", b|x::y)\\)",
        // Not plain: these are parsed on both ways.
        "(\\|p\\| p\\.f\\(a\\)|if a \\{ b \\} else \\{ x \\}|S \\{ f: a \\}|a as u8|x::<T>\\(a\\)|a\\.\\.b)",
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(|all| all.join(", "));
        let operator = "(==|!=|<|<=|>|>=|&&|\\|\\||\\+|-|\\*|/|%|<<|>>|&|\\^|\\|)";
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(l, op, r)| format!("{l} {op} {r}")),
            ("(&|&mut |\\*|-|!)", inner.clone()).prop_map(|(op, e)| format!("{op}{e}")),
            (inner.clone(), "(f|push|len)", list.clone()).prop_map(|(e, m, args)| format!("{e}.{m}({args})")),
            (inner.clone(), "(field|0|await)").prop_map(|(e, f)| format!("{e}.{f}")),
            (inner.clone(), list.clone()).prop_map(|(e, args)| format!("{e}({args})")),
            (inner.clone(), inner.clone()).prop_map(|(e, i)| format!("{e}[{i}]")),
            inner.clone().prop_map(|e| format!("{e}?")),
            inner.clone().prop_map(|e| format!("({e})")),
            inner.clone().prop_map(|e| format!("({e},)")),
            list.clone().prop_map(|l| format!("[{l}]")),
            (inner, "/\\* c \\*/").prop_map(|(e, c)| format!("{c} {e}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn read_from_tokens_as_from_text(
        arguments in prop::collection::vec((prop::option::of("(name|a)"), expression()), 1..4),
        which in "(m|assert_eq|vec)",
    ) {
        let written: Vec<String> = arguments
            .into_iter()
            .map(|(name, e)| name.filter(|_| which != "vec").map_or(e.clone(), |name| format!("{name} = {e}")))
            .collect();
        let of = |more: &str| {
            let list = written.join(", ");
            facts(&format!("impl T {{ fn t(&self, a: A, b: &B) {{ let x = 1; let closure = |y| y; {which}!({list}{more}); x.end() }} }}"))
        };
        // A loop is read by the grammar alone, and adds nothing.
        let (tokens, text) = (of(""), of(", loop {}"));
        // Where the file itself does not parse, what recovery makes of it depends on what follows.
        prop_assume!(tokens.errors.is_empty() && text.errors.is_empty());
        let shown = |facts: &FileFacts| -> Vec<(String, u32, String)> {
            let uses = facts.uses.iter().filter(|u| facts.name(u.name) != "end");
            uses.map(|u| (facts.name(u.name).to_owned(), u.at, format!("{:?}", u.kind))).collect()
        };
        prop_assert_eq!(shown(&tokens), shown(&text));
        let (Code::Rust(tokens), Code::Rust(text)) = (tokens.code, text.code) else {
            panic!("it is Rust");
        };
        prop_assert_eq!(tokens.links, text.links);
        if which != "vec" {
            prop_assert_eq!(tokens.exprs, text.exprs);
        }
    }
}
