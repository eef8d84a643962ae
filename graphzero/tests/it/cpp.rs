//! C++: namespaces, classes, methods outside their class, templates, overloads, smart pointers.

use zero_contracts::find::Confidence;
use zero_contracts::find::FindMode::{Callers, Definitions, Importers, Imports, References};

use crate::fixtures::Fixture;

const TREE: &str = r#"//- inc/shop/item.hpp
#pragma once
#include <memory>
#include <vector>
#include "base.h"

namespace shop {
namespace detail { int /*hidden*/secret(int n); }

/// One thing.
class /*Item*/Item : public /*b1*/Base {
 public:
  explicit /*ctor_decl*/Item(int n);
  virtual ~Item() = default;
  int /*label_decl*/label(const Item& other) const;
  static Item /*make_decl*/make();
  void /*over1*/over(int a) { /*f1*/field_ = a; }
  void /*over2*/over(int a, int b) { /*o1*/over(a); }
  Item* /*up*/up() { return this; }
  std::shared_ptr<Item> /*shared*/shared();
  enum class /*Mode*/Mode { /*Fast*/Fast, /*Slow*/Slow };
  using /*Ptr*/Ptr = std::shared_ptr<Item>;
  bool operator==(const Item& o) const { return /*f0*/field_ == o./*f2*/field_; }
 private:
  int /*field*/field_ = 0;
  std::vector<Item> /*items*/items_;
  struct /*Inner*/Inner { int /*depth*/depth; };
};

template <typename T>
T /*largest*/largest(const std::vector<T>& all) { return all[0]; }

inline int /*free1*/free_fn(int n) { return detail::/*s1*/secret(n); }
}  // namespace shop
//- inc/shop/base.h
#pragma once
namespace shop {
class /*Base*/Base {
 public:
  virtual int /*id*/id() const { return 1; }
  virtual void /*hook*/hook() = 0;
};
}
//- src/item.cpp
#include "shop/item.hpp"

namespace {
int /*local*/local_only() { return 1; }
}

namespace shop {
/*q1*/Item::/*ctor*/Item(int n) : /*f3*/field_(n) {}
int Item::/*label*/label(const Item& other) const {
  return other./*f4*/field_ + /*id1*/id() + /*lo1*/local_only() + this->/*f5*/field_;
}
Item Item::/*make*/make() { return Item(1); }
namespace detail {
int /*secret*/secret(int n) { return n; }
}
}

std::shared_ptr<shop::Item> shop::Item::/*shared_def*/shared() { return nullptr; }
//- src/main.cc
#include <shop/item.hpp>
using namespace shop;
using Mode = shop::Item::Mode;
namespace det = shop::detail;

struct /*Holder*/Holder {
  Item::Ptr /*ptr*/ptr;
  std::unique_ptr<Item> /*owned*/owned;
};

int /*main*/main() {
  Item one(1);
  auto* two = new /*n1*/Item(2);
  two->/*l1*/label(one);
  one./*up1*/up()->/*l2*/label(one);
  auto three = /*m0*/Item::/*m1*/make();
  three./*l3*/label(one);
  Holder holder;
  holder.ptr->/*l4*/label(one);
  holder.owned->/*l5*/label(one);
  std::vector<Item> all;
  for (auto& each : all) each./*l6*/label(one);
  all[0]./*l7*/label(one);
  auto call = [&](const Item& i) { return i./*l8*/label(one); };
  static_cast<Item*>(nullptr)->/*l9*/label(one);
  one./*id2*/id();
  det::/*s2*/secret(3);
  ::shop::/*fr1*/free_fn(4);
  /*fr2*/free_fn(5);
  Mode mode = Item::Mode::/*fast1*/Fast;
  largest<int>({1});
  int label = 1;
  return label;
}
TEST(ItemTest, Labels) { /*fr3*/free_fn(6); }
"#;

#[test]
fn definitions_have_kind_and_holder() {
    Fixture::new(TREE).check(&[
        (
            Definitions,
            "Item",
            &[
                "Item class shop::Item",
                "ctor_decl constructor shop::Item::Item",
                "ctor constructor shop::Item::Item",
            ],
        ),
        (Definitions, "Base", &["Base class shop::Base"]),
        (
            Definitions,
            "label",
            &["label_decl method shop::Item::label", "label method shop::Item::label"],
        ),
        (
            Definitions,
            "make",
            &[
                "make_decl static_method shop::Item::make",
                "make method shop::Item::make",
            ],
        ),
        (
            Definitions,
            "shop::Item::shared",
            &[
                "shared method shop::Item::shared",
                "shared_def method shop::Item::shared",
            ],
        ),
        (
            Definitions,
            "over",
            &["over1 method shop::Item::over", "over2 method shop::Item::over"],
        ),
        (Definitions, "Item::Mode", &["Mode enum shop::Item::Mode"]),
        (Definitions, "Slow", &["Slow enum_member shop::Item::Mode::Slow"]),
        (Definitions, "Ptr", &["Ptr type_alias shop::Item::Ptr"]),
        (Definitions, "field_", &["field field shop::Item::field_"]),
        (Definitions, "Inner", &["Inner struct shop::Item::Inner"]),
        (Definitions, "largest", &["largest function shop::largest"]),
        (
            Definitions,
            "secret",
            &[
                "hidden function shop::detail::secret",
                "secret function shop::detail::secret",
            ],
        ),
        (Definitions, "local_only", &["local function local_only"]),
        (Definitions, "Holder", &["Holder struct Holder"]),
    ]);
}

#[test]
fn references_follow_types_and_namespaces() {
    let f = Fixture::new(TREE);
    f.check(&[
        (
            References,
            "label",
            &[
                "l1 > label",
                "l2 > label",
                "l3 > label",
                "l4 > label",
                "l5 > label",
                "l6 > label",
                "l7 > label",
                "l8 > label",
                "l9 > label",
            ],
        ),
        (
            References,
            "field_",
            &[
                "f1 > field",
                "f0 > field",
                "f2 > field",
                "f3 > field",
                "f4 > field",
                "f5 > field",
            ],
        ),
        (References, "id", &["id1 > id", "id2 > id"]),
        (References, "up", &["up1 > up"]),
        (References, "make", &["m1 > make"]),
        (References, "Fast", &["fast1 > Fast"]),
        (References, "secret", &["s1 > secret", "s2 > secret"]),
        (References, "Base", &["b1 > Base"]),
        (References, "free_fn", &["fr1 > free1", "fr2 > free1", "fr3 > free1"]),
        (References, "local_only", &["lo1 > local"]),
    ]);
    let site = &f.ask(References, "over").items[0];
    assert_eq!(
        site.confidence,
        Some(Confidence::Exact),
        "the number of arguments tells overloads apart"
    );
    assert_eq!(f.references("over"), ["o1 > over1"]);
    assert!(
        f.references("Item").contains(&"n1 > ctor".to_owned()),
        "{:?}",
        f.references("Item")
    );
}

#[test]
fn callers_are_qualified() {
    let f = Fixture::new(TREE);
    f.check(&[
        (Callers, "local_only", &["shop::Item::label"]),
        (Callers, "free_fn", &["main", "main", "Labels"]),
        (Callers, "secret", &["shop::free_fn", "main"]),
        (Callers, "make", &["main"]),
        (Callers, "largest", &["main"]),
        (Callers, "over", &["shop::Item::over"]),
        (Callers, "id", &["shop::Item::label", "main"]),
        (Callers, "hook", &[]),
    ]);
    assert!(f.ask(Callers, "free_fn").items[2].test);
}

#[test]
fn includes_lead_to_files() {
    Fixture::new(TREE).check(&[
        (Imports, "src/item.cpp", &["src/item.cpp: \"shop/item.hpp\""]),
        (
            Imports,
            "inc/shop/item.hpp",
            &[
                "inc/shop/item.hpp: <memory>",
                "inc/shop/item.hpp: <vector>",
                "inc/shop/item.hpp: \"base.h\"",
            ],
        ),
        (
            Importers,
            "inc/shop/item.hpp",
            &["src/item.cpp: \"shop/item.hpp\"", "src/main.cc: <shop/item.hpp>"],
        ),
        (Importers, "base.h", &["inc/shop/item.hpp: \"base.h\""]),
        (Importers, "memory", &["inc/shop/item.hpp: <memory>"]),
    ]);
}
