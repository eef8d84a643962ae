//! C: headers and sources, statics of one name, tags and typedefs, macros, conditions.

use zero_contracts::find::Confidence;
use zero_contracts::find::FindMode::{Callers, Definitions, Importers, Imports, References};

use crate::fixtures::Fixture;

const TREE: &str = r#"//- include/list.h
#ifndef LIST_H
#define LIST_H
#include <stddef.h>

// One node.
typedef struct /*node*/node {
    int /*value*/value;
    struct /*t1*/node *next;
} /*Node*/Node;

enum /*color*/color { /*RED*/RED, /*GREEN*/GREEN = /*K1*/LIMIT };
typedef enum { /*ON*/ON, OFF } /*State*/State;
typedef struct { int /*px*/x; } /*Point*/Point;
typedef int (*/*callback*/callback)(/*t2*/Node *n);
union /*either*/either { int i; float f; };

#define /*LIMIT*/LIMIT 3
#define /*TWICE*/TWICE(x) (list_size(x) * 2)

extern int /*shared_decl*/shared;
size_t /*size_decl*/list_size(const Node *list);
Node */*push_decl*/list_push(Node *list, int value);
static inline int /*inl*/is_red(enum /*t3*/color c) { return c == /*r1*/RED; }
#endif
//- src/list.c
#include "../include/list.h"

int /*shared*/shared = 1;
static int /*count_a*/counter;

static int /*helper_a*/helper(Node *n) { return n->/*v1*/value + /*c1*/counter; }

size_t /*size*/list_size(const Node *list) {
    size_t n = 0;
    for (const Node *at = list; at; at = at->next) n += /*h1*/helper(at);
    return n;
}
Node */*push*/list_push(Node *list, int value) {
    Node n = { ./*v2*/value = value, .next = list };
    n./*v3*/value++;
    return 0;
}
#ifdef WINDOWS
void /*plat1*/platform(void) {}
#else
void /*plat2*/platform(void) {}
#endif
//- src/main.c
#include <list.h>
#include <stdio.h>

static int /*helper_b*/helper(int x) { return x; }
static void /*handle*/handle(Node *n) { /*p1*/platform(); }

int /*main*/main(int argc, char **argv) {
    Node *list = /*l1*/list_push(0, 1);
    callback on = /*hh*/handle;
    on(list);
    list->next->/*v4*/value = /*h2*/helper(2);
    (*list)./*v5*/value = 1;
    Point p = { ./*x0*/x = 1 };
    Node all[3];
    all[0]./*v6*/value = p./*x1*/x;
    State s = /*on1*/ON;
    int list_size = 3;
    printf("%d", TWICE(list) + list_size + /*s1*/shared);
    if (is_red(/*g1*/GREEN)) goto end;
end:
    return /*l2*/list_push(list, ((Node *)argv)->/*v7*/value)->/*v8*/value;
}
//- other/tool.c
static int /*helper_c*/helper(void) { return 0; }
int tool(void) { return /*h3*/helper(); }
"#;

#[test]
fn definitions_and_declarations() {
    let f = Fixture::new(TREE);
    f.check(&[
        (Definitions, "node", &["node struct node"]),
        (Definitions, "Node", &["Node type_alias Node"]),
        (Definitions, "value", &["value field node.value"]),
        (Definitions, "color", &["color enum color"]),
        (Definitions, "GREEN", &["GREEN enum_member color.GREEN"]),
        (Definitions, "State", &["State enum State"]),
        (Definitions, "Point", &["Point struct Point"]),
        (Definitions, "callback", &["callback type_alias callback"]),
        (Definitions, "either", &["either union either"]),
        (Definitions, "LIMIT", &["LIMIT macro LIMIT"]),
        (Definitions, "LIST_H", &[]),
        (
            Definitions,
            "shared",
            &["shared_decl static_variable shared", "shared static_variable shared"],
        ),
        (
            Definitions,
            "list_size",
            &["size_decl function list_size", "size function list_size"],
        ),
        (
            Definitions,
            "platform",
            &["plat1 function platform", "plat2 function platform"],
        ),
        (
            Definitions,
            "helper",
            &[
                "helper_c function helper",
                "helper_a function helper",
                "helper_b function helper",
            ],
        ),
        (Definitions, "counter", &["count_a static_variable counter"]),
    ]);
}

#[test]
fn references_follow_types_and_includes() {
    let f = Fixture::new(TREE);
    f.check(&[
        (
            References,
            "value",
            &[
                "v1 > value",
                "v2 > value",
                "v3 > value",
                "v4 > value",
                "v5 > value",
                "v6 > value",
                "v7 > value",
                "v8 > value",
            ],
        ),
        (References, "node", &["t1 > node"]),
        (References, "counter", &["c1 > count_a"]),
        (References, "RED", &["r1 > RED"]),
        (References, "GREEN", &["g1 > GREEN"]),
        (References, "ON", &["on1 > ON"]),
        (References, "color", &["t3 > color"]),
        (References, "Point.x", &["x0 > px", "x1 > px"]),
        (
            References,
            "helper",
            &["h3 > helper_c", "h1 > helper_a", "h2 > helper_b"],
        ),
        (References, "LIMIT", &["K1 > LIMIT"]),
        (References, "handle", &["hh > handle"]),
        (References, "platform", &["p1 > plat1"]),
    ]);
    let shared = &f.ask(References, "shared").items[0];
    let body = shared.definition.as_ref().map(|site| site.path.as_str());
    assert_eq!(
        body,
        Some("src/list.c"),
        "what has the value comes before what only declares it"
    );
    assert_eq!(shared.confidence, Some(Confidence::Exact));
}

#[test]
fn callers_reach_through_macros_and_prototypes() {
    let f = Fixture::new(TREE);
    f.check(&[
        (Callers, "list_push", &["main", "main"]),
        (Callers, "list_size", &["TWICE"]),
        (Callers, "TWICE", &["main"]),
        (Callers, "is_red", &["main"]),
        (Callers, "helper", &["tool", "list_size", "main"]),
        (Callers, "platform", &["handle"]),
        (Callers, "handle", &["main"]),
    ]);
    let site = f.ask(Callers, "list_push").items.remove(0);
    assert_eq!(site.confidence, Some(Confidence::Exact));
    assert_eq!(site.definition.unwrap().path, "src/list.c");
}

#[test]
fn includes_lead_to_files() {
    let f = Fixture::new(TREE);
    f.check(&[
        (Imports, "src/list.c", &["src/list.c: \"../include/list.h\""]),
        (
            Imports,
            "src/main.c",
            &["src/main.c: <list.h>", "src/main.c: <stdio.h>"],
        ),
        (
            Importers,
            "include/list.h",
            &["src/list.c: \"../include/list.h\"", "src/main.c: <list.h>"],
        ),
        (
            Importers,
            "list.h",
            &["src/list.c: \"../include/list.h\"", "src/main.c: <list.h>"],
        ),
        (Importers, "stdio.h", &["src/main.c: <stdio.h>"]),
    ]);
}
