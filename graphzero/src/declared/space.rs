//! The tree of qualified places over all files of a program.
//!
//! A place is a package, a namespace, a type, or a name in one of them. Definitions of the same place share it, whatever
//! their files. The tree is built once and then only read.

use std::collections::HashMap;

use super::code::DeclaredCode;
use super::resolver::Gid;
use crate::code::Code;
use crate::facts::{DefId, FileFacts, Kind, NONE};
use crate::program::{FileId, ProgramFile};

/// Index of a place.
pub type PlaceId = u32;

/// The outermost place.
pub const ROOT: PlaceId = 0;

/// Name of the place of a type's constructors.
pub const CONSTRUCTOR: &str = "(constructor)";

#[derive(Default)]
struct Place {
    parent: PlaceId,
    children: HashMap<Box<str>, PlaceId>,
    defs: Vec<Gid>,
}

/// The tree.
pub struct Space {
    places: Vec<Place>,
    /// Place of each definition of each file.
    of_defs: Vec<Vec<PlaceId>>,
    /// Place of each file's package.
    packages: Vec<PlaceId>,
}

/// Returns the code of a file of this family.
pub fn code(facts: &FileFacts) -> Option<&DeclaredCode> {
    match &facts.code {
        Code::Declared(code) => Some(code),
        _ => None,
    }
}

impl Space {
    /// Builds the tree; `package` tells the place of each file's package, part by part.
    pub fn new(files: &[ProgramFile], package: impl Fn(FileId) -> Vec<String>) -> Self {
        let mut space = Self {
            places: vec![Place::default()],
            of_defs: files.iter().map(|file| vec![NONE; file.facts.defs.len()]).collect(),
            packages: Vec::with_capacity(files.len()),
        };
        for file in 0..files.len() as FileId {
            let mut at = ROOT;
            for part in package(file) {
                at = space.child_or_new(at, &part);
            }
            space.packages.push(at);
        }
        // Types and namespaces first: what is written outside its type finds it then, whatever the order of files.
        for outside in [false, true] {
            for (file, program) in files.iter().enumerate() {
                for def in 0..program.facts.defs.len() as DefId {
                    space.add(file as FileId, def, &program.facts, outside);
                }
            }
        }
        space
    }

    fn add(&mut self, file: FileId, def: DefId, facts: &FileFacts, outside: bool) {
        if self.of_defs[file as usize][def as usize] != NONE {
            return;
        }
        let entry = &facts.defs[def as usize];
        let above = match entry.container {
            NONE => self.packages[file as usize],
            container => self.of_defs[file as usize][container as usize],
        };
        if above == NONE || (entry.kind == Kind::Impl && !outside) {
            return;
        }
        let name = facts.name(entry.name);
        let place = if entry.kind == Kind::Impl {
            self.holder(above, name, file, facts)
                .unwrap_or_else(|| self.child_or_new(above, name))
        } else {
            // A constructor is no member of its class under the class's own name.
            let name = if entry.kind == Kind::Constructor {
                CONSTRUCTOR
            } else {
                name
            };
            let place = self.child_or_new(above, name);
            self.places[place as usize].defs.push((file, def));
            if code(facts).is_some_and(|code| code.items.get(def as usize).is_some_and(|item| item.outer)) {
                let around = self.places[above as usize].parent;
                let outer = self.child_or_new(around, name);
                self.places[outer as usize].defs.push((file, def));
            }
            place
        };
        self.of_defs[file as usize][def as usize] = place;
    }

    /// Finds the type or namespace that something outside it names: around the place it stands at, or in what its file opens.
    fn holder(&self, above: PlaceId, name: &str, file: FileId, facts: &FileFacts) -> Option<PlaceId> {
        let around = self.up(above).find_map(|at| self.child(at, name));
        around.or_else(|| {
            let code = code(facts)?;
            let opened = code.scopes.first()?.opened.iter();
            opened
                .filter_map(|&expr| self.written(code, expr, facts, self.packages[file as usize]))
                .find_map(|at| self.child(at, name))
        })
    }

    /// Follows names and members that are written out in full.
    fn written(&self, code: &DeclaredCode, expr: u32, facts: &FileFacts, from: PlaceId) -> Option<PlaceId> {
        use super::code::Expr;
        match code.exprs.get(expr as usize)? {
            Expr::Name { name, .. } => {
                let name = facts.name(*name);
                self.child(from, name).or_else(|| self.child(ROOT, name))
            }
            Expr::Member { of, name } => self.child(self.written(code, *of, facts, from)?, facts.name(*name)),
            Expr::Root => Some(ROOT),
            _ => None,
        }
    }

    fn child_or_new(&mut self, at: PlaceId, name: &str) -> PlaceId {
        if let Some(known) = self.child(at, name) {
            return known;
        }
        let id = self.places.len() as PlaceId;
        self.places.push(Place {
            parent: at,
            ..Place::default()
        });
        self.places[at as usize].children.insert(name.into(), id);
        id
    }

    /// Returns the place of a name in another.
    pub fn child(&self, at: PlaceId, name: &str) -> Option<PlaceId> {
        self.places.get(at as usize)?.children.get(name).copied()
    }

    /// Returns the place of a path from the root.
    pub fn path(&self, parts: &[String]) -> Option<PlaceId> {
        parts.iter().try_fold(ROOT, |at, part| self.child(at, part))
    }

    /// Returns the definitions of a place.
    pub fn defs(&self, place: PlaceId) -> &[Gid] {
        self.places.get(place as usize).map_or(&[], |place| &place.defs)
    }

    /// Returns the place of a definition.
    pub fn of(&self, gid: Gid) -> Option<PlaceId> {
        let place = *self.of_defs.get(gid.0 as usize)?.get(gid.1 as usize)?;
        (place != NONE).then_some(place)
    }

    /// Returns the place of a file's package.
    pub fn package(&self, file: FileId) -> PlaceId {
        self.packages.get(file as usize).copied().unwrap_or(ROOT)
    }

    /// Returns a place and those around it, innermost first.
    pub fn up(&self, place: PlaceId) -> impl Iterator<Item = PlaceId> + '_ {
        std::iter::successors(Some(place), |&at| {
            (at != ROOT).then(|| self.places.get(at as usize).map_or(ROOT, |place| place.parent))
        })
    }

    /// Tells whether anything lies in a place.
    pub fn has_children(&self, place: PlaceId) -> bool {
        self.places
            .get(place as usize)
            .is_some_and(|place| !place.children.is_empty())
    }
}
