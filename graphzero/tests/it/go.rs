//! Go: packages, embedding, methods in other files, several results, literals.

use zero_contracts::find::FindMode::{Callers, Definitions, Importers, Imports, References};

use crate::fixtures::Fixture;

const TREE: &str = r#"//- go.mod
module example.com/shop

go 1.22
//- store/types.go
// Package store keeps items.
package store

// Item is one thing.
type /*Item*/Item struct {
	/*Base*/Base
	/*Name*/Name, /*Other*/Other string
	/*parent*/parent *Item
}
type /*BaseT*/Base struct{ /*id*/id int }

type /*Store*/Store interface {
	/*Find*/Find(name string) (*Item, error)
}
type /*Items*/Items []*Item

const (
	/*Max*/Max = 10
	/*min*/min
)

var /*Default*/Default, /*count*/count = /*n1*/New("x"), 0

// New makes one.
func /*New*/New(name string) *Item { return &Item{/*n2*/Name: name, Base: Base{/*i1*/id: 1}} }
//- store/methods.go
package store

func (i *Item) /*Label*/Label() string { return i./*n3*/Name + i./*k1*/Key() }
func (b Base) /*Key*/Key() string { return helper(b./*i2*/id) }
func (l Items) /*First*/First() *Item {
	for _, each := range l {
		each./*l1*/Label()
	}
	return l[0]
}
func /*helper*/helper(n int) string { return "" }
func /*pair*/pair() (*Item, error) { return New("p"), nil }
//- mem/mem.go
package mem

import (
	"fmt"
	. "example.com/shop/dot"
	st "example.com/shop/store"
)

type /*Memory*/Memory struct{ items map[string]*st.Item }

func (m *Memory) /*MFind*/Find(name string) (*st.Item, error) {
	item, ok := m.items[name]
	if !ok {
		fmt.Println(/*d1*/Dotted())
	}
	item./*l2*/Label()
	item.Base./*k2*/Key()
	return item, nil
}

func /*Use*/Use(s st./*s1*/Store, any interface{}) {
	found, err := s./*f1*/Find("a")
	_ = err
	found./*l3*/Label()
	switch t := any.(type) {
	case *Memory:
		t./*f2*/Find("b")
	case st./*it1*/Item:
		t./*l4*/Label()
	}
	New := func() {}
	New()
	st./*n4*/New("q").parent./*l5*/Label()
	if x, ok := any.(*st.Item); ok {
		x./*l6*/Label()
	}
	go func(i *st.Item) { defer i./*l7*/Label() }(nil)
	st.Default./*l8*/Label()
}
//- dot/dot.go
package dot

func /*Dotted*/Dotted() int { return generic[int](1) }
func /*generic*/generic[T any](v T) T { return v }
//- dot/dot_test.go
package dot

import "testing"

func TestDotted(t *testing.T) { /*d2*/Dotted() }
"#;

#[test]
fn definitions_have_kind_and_holder() {
    Fixture::new(TREE).check(&[
        (Definitions, "Item", &["Item struct store.Item"]),
        (Definitions, "Base", &["BaseT struct store.Base"]),
        (Definitions, "Store", &["Store interface store.Store"]),
        (Definitions, "Items", &["Items type_alias store.Items"]),
        (Definitions, "Name", &["Name field store.Item.Name"]),
        (Definitions, "Other", &["Other field store.Item.Other"]),
        (Definitions, "Max", &["Max constant store.Max"]),
        (Definitions, "count", &["count variable store.count"]),
        (Definitions, "New", &["New function store.New"]),
        (Definitions, "Label", &["Label method store.Item.Label"]),
        (Definitions, "Item.Label", &["Label method store.Item.Label"]),
        (
            Definitions,
            "Find",
            &["MFind method mem.Memory.Find", "Find trait_method store.Store.Find"],
        ),
        (Definitions, "Memory.Find", &["MFind method mem.Memory.Find"]),
        (Definitions, "generic", &["generic function dot.generic"]),
    ]);
}

#[test]
fn references_follow_types_and_packages() {
    Fixture::new(TREE).check(&[
        (
            References,
            "Label",
            &[
                "l2 > Label",
                "l3 > Label",
                "l4 > Label",
                "l5 > Label",
                "l6 > Label",
                "l7 > Label",
                "l8 > Label",
                "l1 > Label",
            ],
        ),
        (References, "Key", &["k2 > Key", "k1 > Key"]),
        (References, "Name", &["n3 > Name", "n2 > Name"]),
        (References, "id", &["i2 > id", "i1 > id"]),
        (References, "Store.Find", &["f1 > Find"]),
        (References, "Memory.Find", &["f2 > MFind"]),
        (References, "Dotted", &["d2 > Dotted", "d1 > Dotted"]),
        (References, "Store", &["s1 > Store"]),
    ]);
}

#[test]
fn callers_are_functions_and_local_names_hide() {
    Fixture::new(TREE).check(&[
        (Callers, "New", &["mem.Use", "store.pair", "store.Default"]),
        (Callers, "helper", &["store.Base.Key"]),
        (Callers, "Key", &["mem.Memory.Find", "store.Item.Label"]),
        (Callers, "Memory.Find", &["mem.Use"]),
        (Callers, "Dotted", &["dot.TestDotted", "mem.Memory.Find"]),
        (Callers, "generic", &["dot.Dotted"]),
        (Callers, "pair", &[]),
    ]);
}

#[test]
fn imports_lead_to_directories() {
    let f = Fixture::new(TREE);
    f.check(&[
        (
            Imports,
            "mem/mem.go",
            &[
                "mem/mem.go: fmt",
                "mem/mem.go: example.com/shop/dot",
                "mem/mem.go: example.com/shop/store",
            ],
        ),
        (Imports, "store/types.go", &[]),
        (Importers, "store/types.go", &["mem/mem.go: example.com/shop/store"]),
        (Importers, "store/methods.go", &["mem/mem.go: example.com/shop/store"]),
        (Importers, "dot/dot.go", &["mem/mem.go: example.com/shop/dot"]),
        (Importers, "testing", &["dot/dot_test.go: testing"]),
    ]);
    let test = &f.ask(Callers, "Dotted").items[0];
    assert!(test.test, "a test is marked as one");
}
