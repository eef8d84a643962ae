//! The tree in memory: what each operation does, in as few words as can be, and what it refuses.

use zero_contracts::WorkspacePath;

use crate::support::*;

#[derive(Clone, Debug)]
pub struct Model(pub Image);

pub type Key = Vec<u8>;

pub fn raw(path: &str) -> Key {
    path.parse::<WorkspacePath>().unwrap().as_bytes().to_vec()
}

pub fn parent(key: &[u8]) -> Key {
    key.iter()
        .rposition(|&b| b == b'/')
        .map_or(Vec::new(), |at| key[..at].to_vec())
}

pub fn join(dir: &[u8], name: &[u8]) -> Key {
    if dir.is_empty() {
        name.to_vec()
    } else {
        [dir, b"/", name].concat()
    }
}

/// Nothing more than that the engine must refuse, too.
pub struct Refused;

impl Model {
    pub fn get(&self, key: &[u8]) -> Option<Held> {
        if key.is_empty() {
            Some(Held::Directory(0o755))
        } else {
            self.0.get(key).cloned()
        }
    }

    pub fn canonical(&self, key: &[u8], follow: bool) -> Result<Key, Refused> {
        let mut todo: Vec<Key> = key.split(|&b| b == b'/').rev().map(<[u8]>::to_vec).collect();
        let mut at = Key::new();
        let mut hops = 0;
        while let Some(name) = todo.pop() {
            if name == b".." {
                if at.is_empty() {
                    return Err(Refused);
                }
                at = parent(&at);
                continue;
            }
            let next = join(&at, &name);
            match self.get(&next) {
                Some(Held::Symlink(target)) if follow || !todo.is_empty() => {
                    hops += 1;
                    if hops > 40 {
                        return Err(Refused);
                    }
                    todo.extend(target.split(|&b| b == b'/').rev().map(<[u8]>::to_vec));
                }
                _ => at = next,
            }
        }
        Ok(at)
    }

    pub fn parents(&mut self, key: &[u8]) -> Result<(), Refused> {
        let above = parent(key);
        match self.get(&above) {
            Some(Held::Directory(_)) => Ok(()),
            Some(_) => Err(Refused),
            None => {
                self.parents(&above)?;
                self.0.insert(above, Held::Directory(0o777 & !umask()));
                Ok(())
            }
        }
    }

    pub fn absent(&self, key: &[u8]) -> Result<(), Refused> {
        if self.get(key).is_none() { Ok(()) } else { Err(Refused) }
    }

    pub fn create(&mut self, path: &str, held: impl FnOnce() -> Held) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), false)?;
        self.absent(&at)?;
        self.parents(&at)?;
        self.0.insert(at, held());
        Ok(())
    }

    pub fn edit(&mut self, path: &str, change: impl FnOnce(&[u8]) -> Result<Vec<u8>, Refused>) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), true)?;
        match self.get(&at) {
            Some(Held::File(bytes, mode)) => {
                let new = change(&bytes)?;
                self.0.insert(at, Held::File(new, mode));
                Ok(())
            }
            _ => Err(Refused),
        }
    }

    pub fn remove(&mut self, path: &str) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), false)?;
        match self.get(&at) {
            Some(Held::Directory(_)) if self.below(&at).next().is_some() => Err(Refused),
            Some(_) => {
                self.0.remove(&at);
                Ok(())
            }
            None => Err(Refused),
        }
    }

    pub fn below<'a>(&'a self, key: &[u8]) -> impl Iterator<Item = &'a Key> {
        let prefix = [key, b"/"].concat();
        self.0.keys().filter(move |k| k.starts_with(&prefix))
    }

    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), Refused> {
        let source = self.canonical(&raw(from), false)?;
        let target = self.canonical(&raw(to), false)?;
        let held = self.get(&source).ok_or(Refused)?;
        if target == source || target.starts_with(&[&source[..], b"/"].concat()) {
            return Err(Refused);
        }
        self.absent(&target)?;
        self.parents(&target)?;
        let below: Vec<Key> = self.below(&source).cloned().collect();
        for key in below {
            let held = self.0.remove(&key).unwrap();
            self.0.insert([&target[..], &key[source.len()..]].concat(), held);
        }
        self.0.remove(&source);
        self.0.insert(target, held);
        Ok(())
    }

    pub fn copy(&mut self, from: &str, to: &str) -> Result<(), Refused> {
        let source = self.canonical(&raw(from), false)?;
        match self.get(&source) {
            Some(held @ (Held::File(..) | Held::Symlink(_))) => self.create(to, || held),
            _ => Err(Refused),
        }
    }

    pub fn mkdir(&mut self, path: &str) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), true)?;
        match self.get(&at) {
            Some(Held::Directory(_)) => Ok(()),
            Some(_) => Err(Refused),
            None => {
                self.parents(&at)?;
                self.0.insert(at, Held::Directory(0o777 & !umask()));
                Ok(())
            }
        }
    }

    pub fn chmod(&mut self, path: &str, mode: u32) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), true)?;
        match self.0.get_mut(&at) {
            Some(Held::File(_, m) | Held::Directory(m)) => {
                *m = mode;
                Ok(())
            }
            _ => Err(Refused),
        }
    }
}

pub fn umask() -> u32 {
    static MASK: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *MASK.get_or_init(|| {
        use std::os::unix::fs::PermissionsExt;
        let dir = scratch();
        let probe = dir.path().join("probe");
        std::fs::create_dir(&probe).unwrap();
        0o777 & !std::fs::metadata(probe).unwrap().permissions().mode()
    })
}
