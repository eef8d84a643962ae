//! Plans: which calls of `z` a cell can make, told from its text alone.
//!
//! What is looked at is the JavaScript that V8 would run. A cell gets at `z` through a name that it does not bind itself, `z`
//! or `globalThis`: there is no other way into the global object in strict code, and no code from strings. Wherever that
//! name is used in another way than to call one of its operations, the operations that it gives away are planned with
//! arguments that are not known.
//!
//! Arguments that are written out reach the host as they are written: texts, numbers and truth values are never asked for a
//! `toJSON`, and plain objects and arrays only for one of their own.

use oxc::allocator::Allocator;
use oxc::ast::AstKind;
use oxc::ast::ast::{
    Argument, ArrayExpressionElement, BindingPattern, CallExpression, Expression, ObjectPropertyKind, PropertyKey,
    PropertyKind, UnaryOperator,
};
use oxc::semantic::{AstNodes, NodeId, Semantic, SemanticBuilder};
use oxc::span::GetSpan as _;
use serde_json::{Map, Value};
use zero_contracts::plan::{PlannedArgument, PlannedArguments, PlannedOperation};
use zero_contracts::{JsonValue, Location, Operation, Plan, Result};

use crate::syntax::{BEFORE, at, check, later, location, parse_wrapped, utf16_place, wrapped};
use crate::typescript::{self, Places};

/// Deeper literals are planned as computed.
const DEEPEST: usize = 100;

/// Plans a cell. Call it where the stack fits ([`with_fitting_stack`](crate::syntax)).
///
/// # Errors
/// `syntax` for a cell that is neither JavaScript nor TypeScript.
pub(crate) fn plan(source: &str) -> Result<Plan> {
    let means_typescript = typescript::may_have_type_arguments(source) && typescript::has_type_arguments(source);
    let javascript = if means_typescript {
        None
    } else {
        Some(of_javascript(source, source, None))
    };
    match javascript {
        Some(Ok(plan)) => Ok(plan),
        None => of_typescript(source),
        Some(Err(javascript)) => of_typescript(source).map_err(|typescript| later(javascript, typescript)),
    }
}

fn of_typescript(source: &str) -> Result<Plan> {
    let made = typescript::to_javascript(source)?;
    of_javascript(&made.code, source, Some(&made.places))
}

fn of_javascript(code: &str, source: &str, places: Option<&Places>) -> Result<Plan> {
    let allocator = Allocator::default();
    let text = wrapped(code);
    let program = parse_wrapped(&allocator, &text, code)?;
    let analysed = SemanticBuilder::new()
        .with_build_nodes(true)
        .with_check_syntax_error(true)
        .build(&program);
    check(code, BEFORE, &analysed.diagnostics)?;
    let mut planner = Planner {
        nodes: analysed.semantic.nodes(),
        semantic: &analysed.semantic,
        operations: Vec::new(),
        place: |byte: usize| match places {
            None => location(source, byte.saturating_sub(BEFORE)),
            Some(places) => {
                let (line, column) = utf16_place(code, byte.saturating_sub(BEFORE));
                places
                    .original(line, column)
                    .and_then(|(line, column)| at(source, line as usize + 1, column as usize))
                    .unwrap_or(Location { line: 1, column: 1 })
            }
        },
    };
    planner.plan();
    Ok(Plan {
        operations: planner.operations,
    })
}

struct Planner<'p, 'a, F> {
    nodes: &'p AstNodes<'a>,
    semantic: &'p Semantic<'a>,
    operations: Vec<PlannedOperation>,
    place: F,
}

/// How a value is used.
enum Use<'a> {
    /// A member of it is taken, by name or by something computed.
    Member(NodeId, Option<&'a str>),
    /// It is called.
    Call(&'a CallExpression<'a>),
    /// Members of it are bound, by these names.
    Destructured(Vec<&'a str>),
    /// Nothing that gives it away: `typeof z`.
    Harmless,
    /// Anything else.
    Escapes,
}

impl<'a, F: Fn(usize) -> Location> Planner<'_, 'a, F> {
    fn plan(&mut self) {
        for node in self.nodes.iter() {
            if let AstKind::IdentifierReference(name) = node.kind()
                && self.semantic.is_reference_to_global_variable(name)
            {
                match name.name.as_str() {
                    "z" => self.z(node.id()),
                    "globalThis" => self.global(node.id()),
                    _ => {}
                }
            }
        }
    }

    fn global(&mut self, node: NodeId) {
        match self.usage(node) {
            Use::Member(member, Some("z")) => self.z(member),
            Use::Destructured(names) if !names.contains(&"z") && !names.contains(&"globalThis") => {}
            Use::Harmless => {}
            _ => self.everything(node),
        }
    }

    fn z(&mut self, node: NodeId) {
        match self.usage(node) {
            Use::Member(member, Some("state")) => self.state(member),
            Use::Member(member, Some(name)) if operation(name).is_some() => {
                if let Some(operation) = operation(name) {
                    self.operation(member, operation, None);
                }
            }
            // A name that is no operation is one of `Object.prototype`, which is not on `z` and does not get at it alone.
            Use::Destructured(names) => {
                for operation in names.into_iter().filter_map(operation) {
                    self.add(node, operation, None, PlannedArguments::Dynamic);
                }
            }
            Use::Harmless => {}
            Use::Member(..) | Use::Call(_) | Use::Escapes => self.everything(node),
        }
    }

    fn state(&mut self, node: NodeId) {
        match self.usage(node) {
            Use::Member(member, Some(method)) if ["get", "set", "test", "delete", "list"].contains(&method) => {
                self.operation(member, Operation::State, Some(method));
            }
            Use::Harmless => {}
            _ => self.add(node, Operation::State, None, PlannedArguments::Dynamic),
        }
    }

    fn operation(&mut self, node: NodeId, operation: Operation, method: Option<&str>) {
        let arguments = match self.usage(node) {
            Use::Harmless => return,
            Use::Call(call) => listed(&call.arguments),
            _ => PlannedArguments::Dynamic,
        };
        self.add(node, operation, method, arguments);
    }

    fn everything(&mut self, node: NodeId) {
        for operation in Operation::ALL {
            self.add(node, operation, None, PlannedArguments::Dynamic);
        }
    }

    fn add(&mut self, node: NodeId, operation: Operation, method: Option<&str>, arguments: PlannedArguments) {
        self.operations.push(PlannedOperation {
            operation,
            method: method.map(str::to_owned),
            arguments,
            location: (self.place)(self.nodes.kind(node).span().start as usize),
        });
    }

    /// How the value of an expression is used by what is around it.
    fn usage(&self, node: NodeId) -> Use<'a> {
        let mut node = node;
        while let AstKind::ParenthesizedExpression(_) | AstKind::ChainExpression(_) = self.nodes.parent_kind(node) {
            node = self.nodes.parent_id(node);
        }
        let (span, parent) = (self.nodes.kind(node).span(), self.nodes.parent_id(node));
        match self.nodes.kind(parent) {
            AstKind::StaticMemberExpression(member) if member.object.span() == span => {
                Use::Member(parent, Some(member.property.name.as_str()))
            }
            AstKind::ComputedMemberExpression(member) if member.object.span() == span => {
                Use::Member(parent, text(&member.expression))
            }
            AstKind::CallExpression(call) if call.callee.span() == span => Use::Call(call),
            AstKind::VariableDeclarator(declarator)
                if declarator.init.as_ref().is_some_and(|init| init.span() == span) =>
            {
                match &declarator.id {
                    BindingPattern::ObjectPattern(pattern) if pattern.rest.is_none() => pattern
                        .properties
                        .iter()
                        .map(|property| if property.computed { None } else { key(&property.key) })
                        .collect::<Option<_>>()
                        .map_or(Use::Escapes, Use::Destructured),
                    _ => Use::Escapes,
                }
            }
            AstKind::UnaryExpression(unary)
                if matches!(
                    unary.operator,
                    UnaryOperator::Typeof | UnaryOperator::Void | UnaryOperator::LogicalNot
                ) =>
            {
                Use::Harmless
            }
            _ => Use::Escapes,
        }
    }
}

fn operation(name: &str) -> Option<Operation> {
    Operation::ALL.into_iter().find(|operation| operation.as_str() == name)
}

/// The text that an expression is, if it is written out.
fn text<'a>(expression: &Expression<'a>) -> Option<&'a str> {
    match expression {
        Expression::StringLiteral(literal) if !literal.lone_surrogates => Some(literal.value.as_str()),
        Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
            let quasi = template.quasis.first()?;
            let text = quasi.value.cooked.as_ref()?;
            (!quasi.lone_surrogates).then_some(text.as_str())
        }
        Expression::ParenthesizedExpression(inside) => text(&inside.expression),
        _ => None,
    }
}

fn key<'a>(key: &PropertyKey<'a>) -> Option<&'a str> {
    match key {
        PropertyKey::StaticIdentifier(name) => Some(name.name.as_str()),
        PropertyKey::StringLiteral(literal) if !literal.lone_surrogates => Some(literal.value.as_str()),
        _ => None,
    }
}

fn listed(arguments: &[Argument<'_>]) -> PlannedArguments {
    let mut listed = Vec::new();
    for argument in arguments {
        let Some(expression) = argument.as_expression() else {
            return PlannedArguments::Dynamic; // A spread.
        };
        listed.push(match literal(expression, 0) {
            Some(value) => PlannedArgument::Literal(JsonValue(value)),
            None => PlannedArgument::Dynamic,
        });
    }
    PlannedArguments::Listed(listed)
}

/// The value of an expression that is written out, as the host would get it.
fn literal(expression: &Expression<'_>, depth: usize) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    Some(match expression {
        Expression::NullLiteral(_) => Value::Null,
        Expression::BooleanLiteral(literal) => Value::Bool(literal.value),
        Expression::NumericLiteral(literal) => number(literal.value)?,
        Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryNegation => match &unary.argument {
            Expression::NumericLiteral(literal) => number(-literal.value)?,
            _ => return None,
        },
        Expression::ParenthesizedExpression(inside) => literal(&inside.expression, depth + 1)?,
        Expression::ArrayExpression(array) => Value::Array(
            array
                .elements
                .iter()
                .map(|element| match element {
                    ArrayExpressionElement::SpreadElement(_) | ArrayExpressionElement::Elision(_) => None,
                    element => literal(element.as_expression()?, depth + 1),
                })
                .collect::<Option<_>>()?,
        ),
        Expression::ObjectExpression(object) => {
            let mut members = Map::new();
            for property in &object.properties {
                let ObjectPropertyKind::ObjectProperty(property) = property else {
                    return None;
                };
                let name = key(&property.key).filter(|name| *name != "__proto__")?;
                if property.kind != PropertyKind::Init || property.computed {
                    return None;
                }
                members.insert(name.to_owned(), literal(&property.value, depth + 1)?);
            }
            Value::Object(members)
        }
        expression => Value::String(text(expression)?.to_owned()),
    })
}

/// A number as JSON text of JavaScript gives it: an integer where it is one.
fn number(value: f64) -> Option<Value> {
    serde_json::from_str(&format!("{value}"))
        .ok()
        .filter(|_| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(source: &str) -> Value {
        let plan = plan(source).unwrap_or_else(|error| panic!("{error}: {source}"));
        let one = |planned: &PlannedOperation| {
            let name = match &planned.method {
                Some(method) => format!("{}.{method}", planned.operation),
                None => planned.operation.to_string(),
            };
            match &planned.arguments {
                PlannedArguments::Dynamic => json!([name, "dynamic"]),
                PlannedArguments::Listed(listed) => {
                    let shown = listed.iter().map(|argument| match argument {
                        PlannedArgument::Literal(value) => value.0.clone(),
                        PlannedArgument::Dynamic => json!("?"),
                    });
                    json!([name, shown.collect::<Vec<_>>()])
                }
            }
        };
        plan.operations.iter().map(one).collect()
    }

    #[test]
    fn what_is_written_out_is_planned_as_it_is_written() {
        assert_eq!(shown("return await z.read('a')"), json!([["read", ["a"]]]));
        assert_eq!(
            shown("await z.edit(`b`, {create: 'x', n: [1, -2, 1.5, null, true]}); z?.find?.((\"q\"), input.mode)"),
            json!([["edit", ["b", {"create": "x", "n": [1, -2, 1.5, null, true]}]], ["find", ["q", "?"]]])
        );
        assert_eq!(
            shown("z['state']['get']('k'); z.state.set(k, 2); if (0) { (z).run(['ls', 1e21, 1e-7]) }"),
            json!([
                ["state.get", ["k"]],
                ["state.set", ["?", 2]],
                ["run", [["ls", 1e21, 1e-7]]]
            ])
        );
        assert_eq!(
            shown("globalThis.z.read('a'); globalThis['z'].run(x)"),
            json!([["read", ["a"]], ["run", ["?"]]])
        );
        assert_eq!(shown("return 1 + 2"), json!([]));
        assert_eq!(
            shown("1 <!-- `\nz.run('x') // `"),
            json!([["run", ["x"]]]),
            "a comment, for V8"
        );
        assert_eq!(shown("typeof z; typeof z.read; typeof globalThis"), json!([]));
        assert_eq!(
            shown("const f = (z) => z.read('a'); { let z = 1; z }"),
            json!([]),
            "a name of its own"
        );
    }

    #[test]
    fn what_is_given_away_is_dynamic() {
        let all = json!([
            ["read", "dynamic"],
            ["find", "dynamic"],
            ["edit", "dynamic"],
            ["apply", "dynamic"],
            ["run", "dynamic"],
            ["state", "dynamic"]
        ]);
        for source in [
            "const a = z",
            "f(z)",
            "return z",
            "z[name]('x')",
            "const {...rest} = z",
            "const {[k]: a} = z",
            "z.valueOf()",
            "[z]",
            "({z})",
            "g = z",
            "for (const k in z) k",
            "globalThis[k]",
            "f(globalThis)",
            "const {z: a} = globalThis",
            "globalThis.globalThis",
            "const x = globalThis",
            "({read: a} = z)",
            "z()",
            "`${z}`",
            "z + 1",
        ] {
            assert_eq!(shown(source), all, "{source}");
        }
        for (source, wanted) in [
            ("const r = z.read", json!([["read", "dynamic"]])),
            ("[1].map(z.read)", json!([["read", "dynamic"]])),
            ("z.read.call(0, 'a')", json!([["read", "dynamic"]])),
            ("z.read(...['a'])", json!([["read", "dynamic"]])),
            ("z.read`a`", json!([["read", "dynamic"]])),
            (
                "const {read, find: f = 1, toString} = z",
                json!([["read", "dynamic"], ["find", "dynamic"]]),
            ),
            ("const {state: {get}} = z", json!([["state", "dynamic"]])),
            (
                "const {get} = z.state; z.state[k]()",
                json!([["state", "dynamic"], ["state", "dynamic"]]),
            ),
            (
                "z.read({__proto__: a}, {get b() { return 1 }}, [,], {...c}, '\\ud800')",
                json!([["read", ["?", "?", "?", "?", "?"]]]),
            ),
            ("const {Array: A} = globalThis", json!([])),
        ] {
            assert_eq!(shown(source), wanted, "{source}");
        }
    }

    #[test]
    fn typescript_is_planned_as_what_it_becomes() {
        let source = "declare const z: any;\nenum E { A }\nconst a: string = await z.read<string>('x');\n(z as any)!.run(['ls'] as const)";
        assert_eq!(shown(source), json!([["read", ["x"]], ["run", [["ls"]]]]));
        let plan = plan(source).unwrap();
        assert_eq!(
            (plan.operations[0].location.line, plan.operations[0].location.column),
            (3, 25)
        );
        assert_eq!(plan.operations[1].location.line, 4);
        assert_eq!(shown("namespace N { export const q = z }").as_array().unwrap().len(), 6);
    }

    #[test]
    fn what_does_not_parse_is_a_syntax_error_with_its_place() {
        for source in [
            "return (",
            "const a: = 1",
            "import a from 'a'",
            "}); z.run('x'); (() => {",
        ] {
            let error = plan(source).unwrap_err();
            assert!(
                error.kind == zero_contracts::ErrorKind::Syntax && error.location.is_some(),
                "{source}: {error:?}"
            );
        }
    }
}
