//! TypeScript cells: types are taken away, enums, namespaces and parameter properties become JavaScript. Types are not
//! checked.
//!
//! A cell that is JavaScript runs as it is. A cell is TypeScript if it is not JavaScript, or if it calls something with type
//! arguments (`f<string>(x)`, which JavaScript would read as two comparisons). So there is nothing to declare, and a cell of
//! plain JavaScript pays nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use oxc::allocator::Allocator;
use oxc::ast::ast::{Declaration, ImportOrExportKind, Program, Statement, TSTypeParameterInstantiation};
use oxc::ast_visit::{Visit, walk};
use oxc::codegen::{Codegen, CodegenOptions, IndentChar};
use oxc::semantic::SemanticBuilder;
use oxc::semantic::SymbolFlags;
use oxc::span::{GetSpan as _, Span};
use oxc::transformer::{TransformOptions, Transformer};
use zero_contracts::{Error, ErrorKind, Result};

use crate::syntax::{check, location, parse_typescript, syntax_error};

/// The JavaScript of a TypeScript cell.
#[derive(Debug)]
pub(crate) struct JavaScript {
    pub code: String,
    pub places: Places,
}

/// Where the parts of the JavaScript stand in the author's source. Lines and columns count from 0, columns in UTF-16 units.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Line and column there and here, in order.
    tokens: Vec<((u32, u32), (u32, u32))>,
}

impl Places {
    /// The author's place of a place in the JavaScript: that of the last token at or before it, or of the first one.
    pub(crate) fn original(&self, line: u32, column: u32) -> Option<(u32, u32)> {
        let after = self.tokens.partition_point(|(there, _)| *there <= (line, column));
        let (_, here) = self.tokens.get(after.saturating_sub(1))?;
        Some(*here)
    }
}

/// Makes JavaScript of a TypeScript cell. Call it where the stack fits ([`with_fitting_stack`](crate::syntax)).
///
/// # Errors
/// `syntax` with the place.
pub(crate) fn to_javascript(source: &str) -> Result<JavaScript> {
    let allocator = Allocator::default();
    let mut program = parse_typescript(&allocator, source)?;
    refuse_modules(source, &program)?;
    let analysed = SemanticBuilder::new_compiler().with_enum_eval(true).build(&program);
    check(source, 0, &analysed.diagnostics)?;
    let scoping = analysed.semantic.into_scoping();
    // Nothing is lowered: V8 knows the whole language.
    let options = TransformOptions::default();
    let transformed =
        Transformer::new(&allocator, Path::new("cell"), &options).build_with_scoping(scoping, &mut program);
    // A warning says that what was made does not do what was written.
    if let Some(first) = transformed.diagnostics.first() {
        return Err(syntax_error(source, 0, first));
    }
    // A module whose imports were all types is marked as a module; the body of a function is none.
    program
        .body
        .retain(|statement| !matches!(statement, Statement::ExportNamedDeclaration(_)));
    let options = CodegenOptions {
        source_map_path: Some(PathBuf::from("cell")),
        // Indented, what nests as deep as it is long would grow with the square of it.
        indent_char: IndentChar::Space,
        indent_width: 0,
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(&program);
    let tokens = printed.map.iter().flat_map(|map| map.get_tokens()).map(|token| {
        (
            (token.get_dst_line(), token.get_dst_col()),
            (token.get_src_line(), token.get_src_col()),
        )
    });
    Ok(JavaScript {
        places: Places {
            tokens: tokens.collect(),
        },
        code: printed.code,
    })
}

/// Refuses a cell that is a module. Imports and exports of types alone mean nothing and are let through.
///
/// # Errors
/// `syntax` with the place.
fn refuse_modules(source: &str, program: &Program<'_>) -> Result<()> {
    let is_type = |statement: &Statement<'_>| match statement {
        Statement::ImportDeclaration(import) => import.import_kind == ImportOrExportKind::Type,
        Statement::ExportDeclaration(export) => matches!(
            export.declaration,
            Declaration::TSInterfaceDeclaration(_) | Declaration::TSTypeAliasDeclaration(_)
        ),
        _ => false,
    };
    match program
        .body
        .iter()
        .find(|statement| statement.is_module_declaration() && !is_type(statement))
    {
        None => Ok(()),
        Some(statement) => Err(Error::new(
            ErrorKind::Syntax,
            "SyntaxError: a cell has no imports and no exports: what it needs is in `z` and in the language",
        )
        .with_location(location(source, statement.span().start as usize))),
    }
}

/// Whether a source that is JavaScript, too, may have type arguments: a `<` that is closed by a `>` with nothing between
/// that no type has. Cheap, and never wrong when it says no, but for comments.
pub(crate) fn may_have_type_arguments(source: &str) -> bool {
    let bytes = source.as_bytes();
    memchr::memchr_iter(b'<', bytes).any(|open| {
        let mut at = open + 1;
        loop {
            match bytes.get(at) {
                Some(b'>') if bytes[at - 1] != b'=' => break at > open + 1,
                Some(b'=') if bytes.get(at + 1) == Some(&b'>') => at += 1,
                None | Some(b'+' | b'*' | b'/' | b'%' | b'!' | b'^' | b'~' | b'=' | b'<') => break false,
                Some(_) => at += 1,
            }
        }
    })
}

/// Whether a cell that is JavaScript, too, calls something with type arguments. `f(a < b, c > (d))` compares if `b` and `c` are
/// variables of the cell; what names anything else in that place (`string`, a class, a type) has no meaning as a comparison.
/// Call it where the stack fits.
pub(crate) fn has_type_arguments(source: &str) -> bool {
    struct Finder(Vec<Span>);
    impl<'a> Visit<'a> for Finder {
        fn visit_ts_type_parameter_instantiation(&mut self, arguments: &TSTypeParameterInstantiation<'a>) {
            self.0.push(arguments.span);
            walk::walk_ts_type_parameter_instantiation(self, arguments);
        }
    }
    let allocator = Allocator::default();
    let Ok(program) = parse_typescript(&allocator, source) else {
        return false;
    };
    let mut finder = Finder(Vec::new());
    finder.visit_program(&program);
    if finder.0.is_empty() {
        return false;
    }
    let scoping = SemanticBuilder::new().build(&program).semantic.into_scoping();
    let variables: HashSet<&str> = scoping
        .symbol_ids()
        .filter(|symbol| {
            scoping
                .symbol_flags(*symbol)
                .intersects(SymbolFlags::Variable | SymbolFlags::Function)
        })
        .map(|symbol| scoping.symbol_name(symbol))
        .collect();
    finder.0.iter().any(|span| {
        let text = &source[span.start as usize..span.end as usize];
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
        words.any(|word| word.starts_with(|c: char| !c.is_ascii_digit()) && !variables.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_arguments_are_told_from_comparisons() {
        for source in [
            "f<T>(x)",
            "await z.read<string>('a')",
            "new A<B, C[]>(1)",
            "f<{a: B}>(x)",
            "g<T>`x`",
            "f<A | B>(x)",
            "f<Map<string, number>>(x)",
            "f<() => void>(x)",
            "const g = f<T>;",
        ] {
            assert!(
                may_have_type_arguments(source) && has_type_arguments(source),
                "{source}"
            );
        }
        for source in [
            "for (let i = 0; i < n; i++) if (a > b) c()",
            "x => x",
            "a < b && c >= d",
            "`<a>` + '<b>'",
            "a << b >> c",
            "return items.filter((a) => a.n < 3).map((a) => a.n > 1)",
            "const a = 1, b = 2, c = 3; return [a < b, c > (a)]",
        ] {
            assert!(
                !(may_have_type_arguments(source) && has_type_arguments(source)),
                "{source}"
            );
        }
        assert!(!may_have_type_arguments("for (let i = 0; i < n; i++) if (a > b) c()"));
        assert!(!may_have_type_arguments("a.map((x) => x > 1)"));
    }

    #[test]
    fn places_are_the_authors() {
        let source = "type A = number;\nenum E { A, B = 5 }\nconst x: A = E.B;\nthrow   new Error(`${x}`);";
        let made = to_javascript(source).unwrap();
        let (line, text) = made
            .code
            .lines()
            .enumerate()
            .find(|(_, line)| line.contains("throw"))
            .unwrap();
        let column = text.find("new").unwrap();
        assert_eq!(made.places.original(line as u32, column as u32), Some((3, 8)));
    }
}
