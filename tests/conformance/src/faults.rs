//! Seeded defects: each makes a simple engine break one promise of its trait.

/// An enumeration of defects that knows them all.
macro_rules! faults {
    ($(#[$doc:meta])* pub enum $name:ident { $($fault:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each name says what is wrong")]
        pub enum $name { $($fault,)* }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$fault,)*];
        }
    };
}
pub(crate) use faults;

pub mod files;
pub mod objects;
pub mod source;
pub mod structure;
pub mod tokens;
