//! Java: packages, inheritance, overloads, nested and nameless classes, records, enums, lambdas.

use zero_contracts::find::Confidence;
use zero_contracts::find::FindMode::{Callers, Definitions, Importers, Imports, References};

use crate::fixtures::Fixture;

const TREE: &str = r#"//- src/shop/model/Item.java
package shop.model;

public class /*Item*/Item extends /*b1*/Base implements /*n1*/Named {
    private final String /*name*/name;
    public static final int /*MAX*/MAX = 3;
    private Item /*parent*/parent;

    public /*ctor1*/Item(String name) { super(); this./*nm1*/name = name; }
    public /*ctor2*/Item(String name, int n) { this(name); }
    @Override public String /*label*/label() { return /*nm2*/name + /*id1*/id(); }
    public Item /*up*/up() { return parent; }
    static Item /*make*/make() { return new /*c1*/Item("x"); }
    void /*over1*/over(int a) {}
    void /*over2*/over(int a, int b) { /*o1*/over(a); }

    public enum /*Kind*/Kind { /*RED*/RED, /*GREEN*/GREEN; boolean /*hot*/hot() { return this == /*r1*/RED; } }
    static class /*Nested*/Nested { int /*depth*/depth; }
}
//- src/shop/model/Base.java
package shop.model;

public abstract class /*Base*/Base {
    protected int /*id*/id() { return 1; }
}
//- src/shop/model/Named.java
package shop.model;

public interface /*Named*/Named { String /*nlabel*/label(); default String /*loud*/loud() { return /*nl1*/label(); } }
//- src/shop/app/Main.java
package shop.app;

import java.util.List;
import java.util.Map;
import shop.model.*;
import shop.model.Item.Kind;
import static shop.app.Tools./*im*/help;

public class /*Main*/Main {
    private Map<String, Item> /*items*/items;
    record /*Point*/Point(int /*x*/x, Item /*what*/what) {}

    void /*run*/run(List<Item> all, Named named) {
        for (Item each : all) { each./*l1*/label(); }
        for (var each : all) { each./*l2*/label(); }
        items.get("a")./*l3*/label();
        named./*nl2*/label();
        var made = new /*c2*/Item("q", 2);
        made./*up1*/up()./*up2*/up()./*l4*/label();
        made./*id2*/id();
        if (named instanceof Item it) { it./*l5*/label(); }
        ((Item) named)./*l6*/label();
        all.forEach(one -> /*h1*/help(1));
        Runnable r = this::/*go1*/go;
        Kind k = Kind./*g1*/GREEN;
        k./*hot1*/hot();
        new Point(1, made)./*w1*/what()./*l7*/label();
        Named other = new Named() { public String label() { return /*h2*/help(2); } };
        shop.model.Item./*m1*/make();
        int Item = 1;
        System.out.println(Item);
        Item[] array = { made };
        array[0]./*l8*/label();
    }
    private void /*go*/go() { String label = ""; label.length(); }
}
//- src/shop/app/Tools.java
package shop.app;

import org.junit.jupiter.api.Test;

class /*Tools*/Tools {
    static String /*help*/help(int n) { return ""; }
    @Test void checks() { /*h3*/help(3); new Main()./*run1*/run(null, null); }
}
"#;

#[test]
fn definitions_have_kind_and_holder() {
    Fixture::new(TREE).check(&[
        (Definitions, "Base", &["Base class shop.model.Base"]),
        (Definitions, "Named", &["Named interface shop.model.Named"]),
        (
            Definitions,
            "Item",
            &[
                "Item class shop.model.Item",
                "ctor1 constructor shop.model.Item.Item",
                "ctor2 constructor shop.model.Item.Item",
            ],
        ),
        (Definitions, "MAX", &["MAX constant shop.model.Item.MAX"]),
        (Definitions, "parent", &["parent field shop.model.Item.parent"]),
        (Definitions, "make", &["make static_method shop.model.Item.make"]),
        (Definitions, "Kind", &["Kind enum shop.model.Item.Kind"]),
        (Definitions, "RED", &["RED enum_member shop.model.Item.Kind.RED"]),
        (Definitions, "hot", &["hot method shop.model.Item.Kind.hot"]),
        (Definitions, "Nested", &["Nested class shop.model.Item.Nested"]),
        (
            Definitions,
            "Named.label",
            &["nlabel trait_method shop.model.Named.label"],
        ),
        (Definitions, "Point", &["Point class shop.app.Main.Point"]),
        (Definitions, "what", &["what field shop.app.Main.Point.what"]),
        (
            Definitions,
            "over",
            &["over1 method shop.model.Item.over", "over2 method shop.model.Item.over"],
        ),
    ]);
}

#[test]
fn references_follow_types() {
    Fixture::new(TREE).check(&[
        (
            References,
            "Item.label",
            &[
                "l1 > label",
                "l2 > label",
                "l3 > label",
                "l4 > label",
                "l5 > label",
                "l6 > label",
                "l7 > label",
                "l8 > label",
            ],
        ),
        (References, "Named.label", &["nl2 > nlabel", "nl1 > nlabel"]),
        (References, "name", &["nm1 > name", "nm2 > name"]),
        (References, "id", &["id2 > id", "id1 > id"]),
        (References, "up", &["up1 > up", "up2 > up"]),
        (References, "RED", &["r1 > RED"]),
        (References, "GREEN", &["g1 > GREEN"]),
        (References, "hot", &["hot1 > hot"]),
        (References, "what", &["w1 > what"]),
        (References, "go", &["go1 > go"]),
        (References, "make", &["m1 > make"]),
        (References, "Base", &["b1 > Base"]),
        (
            References,
            "help",
            &["im > help", "h1 > help", "h2 > help", "h3 > help"],
        ),
    ]);
}

#[test]
fn callers_choose_overloads_and_constructors() {
    let f = Fixture::new(TREE);
    f.check(&[
        (
            Callers,
            "help",
            &["shop.app.Main.run", "shop.app.Main.run.label", "shop.app.Tools.checks"],
        ),
        (Callers, "Main.run", &["shop.app.Tools.checks"]),
        (Callers, "over", &["shop.model.Item.over"]),
        (Callers, "make", &["shop.app.Main.run"]),
        (Callers, "go", &["shop.app.Main.run"]),
        (Callers, "loud", &[]),
    ]);
    let over = &f.ask(References, "over").items[0];
    assert_eq!(
        over.confidence,
        Some(Confidence::Exact),
        "the number of arguments tells overloads apart"
    );
    assert_eq!(f.references("over"), ["o1 > over1"]);
    let items = f.references("Item");
    for made in ["c1 > ctor1", "c2 > ctor2"] {
        assert!(items.contains(&made.to_owned()), "{made} in {items:?}");
    }
    assert!(f.ask(Callers, "help").items[2].test);
}

#[test]
fn imports_lead_to_types_packages_and_members() {
    Fixture::new(TREE).check(&[
        (
            Imports,
            "src/shop/app/Main.java",
            &[
                "src/shop/app/Main.java: java.util.List",
                "src/shop/app/Main.java: java.util.Map",
                "src/shop/app/Main.java: shop.model.*",
                "src/shop/app/Main.java: shop.model.Item.Kind",
                "src/shop/app/Main.java: shop.app.Tools.help",
            ],
        ),
        (
            Importers,
            "src/shop/model/Base.java",
            &["src/shop/app/Main.java: shop.model.*"],
        ),
        (Importers, "Kind", &["src/shop/app/Main.java: shop.model.Item.Kind"]),
        (Importers, "help", &["src/shop/app/Main.java: shop.app.Tools.help"]),
        (Importers, "java.util.Map", &["src/shop/app/Main.java: java.util.Map"]),
    ]);
}
