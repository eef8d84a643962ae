//! Node kinds and fields of the grammar as enumerations, so that the walk compares small integers instead of strings.

use std::sync::LazyLock;

static LANGUAGE: LazyLock<tree_sitter::Language> = LazyLock::new(|| tree_sitter_rust::LANGUAGE.into());

macro_rules! kinds {
    ($($name:ident = $text:literal,)*) => {
        /// A named node kind of tree-sitter-rust; those that no code looks at are `Other`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum K { Other, $($name,)* }

        static SYMBOLS: LazyLock<Vec<Symbol>> = LazyLock::new(|| {
            (0..LANGUAGE.node_kind_count() as u16)
                .map(|id| {
                    let named = LANGUAGE.node_kind_is_named(id);
                    let text = LANGUAGE.node_kind_for_id(id).unwrap_or_default();
                    let kind = match text {
                        $($text if named => K::$name,)*
                        _ => K::Other,
                    };
                    Symbol { kind, named, text }
                })
                .collect()
        });
    };
}

/// What the grammar says of a kind of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// Its kind.
    pub kind: K,
    /// Whether it has a name, unlike punctuation and keywords.
    pub named: bool,
    /// The name, or the token itself.
    pub text: &'static str,
}

/// What error recovery skipped has no place in the grammar.
static ERROR: Symbol = Symbol {
    kind: K::Other,
    named: true,
    text: "ERROR",
};

/// Returns what the grammar says of a kind of nodes.
pub fn symbol(id: u16) -> &'static Symbol {
    SYMBOLS.get(usize::from(id)).unwrap_or(&ERROR)
}

kinds! {
    Arguments = "arguments", ArrayExpression = "array_expression", ArrayType = "array_type",
    AssignmentExpression = "assignment_expression", AssociatedType = "associated_type", AsyncBlock = "async_block",
    AttributeItem = "attribute_item", AwaitExpression = "await_expression", AbstractType = "abstract_type",
    BaseFieldInitializer = "base_field_initializer", BinaryExpression = "binary_expression", Block = "block",
    BlockComment = "block_comment", BooleanLiteral = "boolean_literal", BoundedType = "bounded_type",
    BracketedType = "bracketed_type", BreakExpression = "break_expression", CallExpression = "call_expression",
    CapturedPattern = "captured_pattern", CharLiteral = "char_literal", ClosureExpression = "closure_expression",
    ClosureParameters = "closure_parameters", CompoundAssignment = "compound_assignment_expr",
    ConstBlock = "const_block", ConstItem = "const_item", ConstParameter = "const_parameter", Crate = "crate",
    DeclarationList = "declaration_list", DynamicType = "dynamic_type", ElseClause = "else_clause",
    EmptyStatement = "empty_statement", EnumItem = "enum_item", EnumVariant = "enum_variant",
    ExpressionStatement = "expression_statement", ExternCrate = "extern_crate_declaration",
    FieldDeclaration = "field_declaration", FieldDeclarationList = "field_declaration_list",
    FieldExpression = "field_expression", FieldIdentifier = "field_identifier",
    FieldInitializer = "field_initializer", FieldInitializerList = "field_initializer_list",
    FieldPattern = "field_pattern", FloatLiteral = "float_literal", ForExpression = "for_expression",
    ForeignModItem = "foreign_mod_item", FunctionItem = "function_item",
    FunctionSignature = "function_signature_item", FunctionType = "function_type",
    GenericFunction = "generic_function", GenericPattern = "generic_pattern", GenericType = "generic_type",
    GenericTypeTurbofish = "generic_type_with_turbofish", HigherRanked = "higher_ranked_trait_bound",
    Identifier = "identifier", IfExpression = "if_expression", ImplItem = "impl_item",
    IndexExpression = "index_expression", InnerAttribute = "inner_attribute_item",
    IntegerLiteral = "integer_literal", LetChain = "let_chain", LetCondition = "let_condition",
    LetDeclaration = "let_declaration", Lifetime = "lifetime", LineComment = "line_comment",
    LoopExpression = "loop_expression", MacroDefinition = "macro_definition", MacroInvocation = "macro_invocation",
    MatchArm = "match_arm", MatchExpression = "match_expression", Metavariable = "metavariable",
    ModItem = "mod_item", MutPattern = "mut_pattern", MutableSpecifier = "mutable_specifier",
    NegativeLiteral = "negative_literal", NeverType = "never_type", OrPattern = "or_pattern",
    OrderedFields = "ordered_field_declaration_list", Parameter = "parameter", Parameters = "parameters",
    ParenthesizedExpression = "parenthesized_expression", PointerType = "pointer_type",
    PrimitiveType = "primitive_type", QualifiedType = "qualified_type", RangeExpression = "range_expression",
    RangePattern = "range_pattern", RawStringLiteral = "raw_string_literal", RefPattern = "ref_pattern",
    ReferenceExpression = "reference_expression", ReferencePattern = "reference_pattern",
    ReferenceType = "reference_type", RemainingField = "remaining_field_pattern",
    RemovedBound = "removed_trait_bound", ReturnExpression = "return_expression",
    ScopedIdentifier = "scoped_identifier", ScopedTypeIdentifier = "scoped_type_identifier",
    ScopedUseList = "scoped_use_list", SelfKeyword = "self", SelfParameter = "self_parameter",
    ShorthandFieldIdentifier = "shorthand_field_identifier",
    ShorthandFieldInitializer = "shorthand_field_initializer", SlicePattern = "slice_pattern",
    StaticItem = "static_item", StringLiteral = "string_literal", StructExpression = "struct_expression",
    StructItem = "struct_item", StructPattern = "struct_pattern", Super = "super", TokenTree = "token_tree",
    TraitBounds = "trait_bounds", TraitItem = "trait_item", TryBlock = "try_block", TryExpression = "try_expression",
    TupleExpression = "tuple_expression", TuplePattern = "tuple_pattern",
    TupleStructPattern = "tuple_struct_pattern", TupleType = "tuple_type", TypeArguments = "type_arguments",
    TypeBinding = "type_binding", TypeCast = "type_cast_expression", TypeIdentifier = "type_identifier",
    TypeItem = "type_item", TypeParameter = "type_parameter", TypeParameters = "type_parameters",
    UnaryExpression = "unary_expression", UnionItem = "union_item", UnitExpression = "unit_expression",
    UnitType = "unit_type", UnsafeBlock = "unsafe_block", UseAsClause = "use_as_clause",
    UseDeclaration = "use_declaration", UseList = "use_list", UseWildcard = "use_wildcard",
    VisibilityModifier = "visibility_modifier", WhereClause = "where_clause", WherePredicate = "where_predicate",
    WhileExpression = "while_expression", YieldExpression = "yield_expression", GenBlock = "gen_block",
    LifetimeParameter = "lifetime_parameter", MacroRule = "macro_rule", MatchPattern = "match_pattern",
}

macro_rules! fields {
    ($($name:ident = $text:literal,)*) => {
        /// A field of the grammar; those that no code looks at are `None`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum F { None, $($name,)* }

        static FIELDS: LazyLock<Vec<F>> = LazyLock::new(|| {
            (0..=LANGUAGE.field_count() as u16)
                .map(|id| match LANGUAGE.field_name_for_id(id) {
                    $(Some($text) => F::$name,)*
                    _ => F::None,
                })
                .collect()
        });
    };
}

/// Returns the field with an id.
pub fn field_of_id(id: u16) -> F {
    FIELDS.get(usize::from(id)).copied().unwrap_or(F::None)
}

fields! {
    Alias = "alias", Alternative = "alternative", Arguments = "arguments", Body = "body", Bounds = "bounds",
    Condition = "condition", Consequence = "consequence", DefaultType = "default_type", Element = "element",
    Field = "field", Function = "function", Left = "left", List = "list", Macro = "macro", Name = "name",
    Operator = "operator", Parameters = "parameters", Path = "path", Pattern = "pattern", ReturnType = "return_type",
    Right = "right", Trait = "trait", Type = "type", TypeArguments = "type_arguments",
    TypeParameters = "type_parameters", Value = "value", Argument = "argument", Length = "length", Doc = "doc",
}
