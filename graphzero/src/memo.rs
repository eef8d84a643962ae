//! What a resolver has found out already, shared by the threads of a query.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

const SHARDS: usize = 16;

/// A memo split by key, so that threads seldom wait for one another.
pub struct Memo<K, V>([Mutex<HashMap<K, V>>; SHARDS]);

impl<K: Hash + Eq, V: Clone> Memo<K, V> {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    fn shard(&self, key: &K) -> &Mutex<HashMap<K, V>> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        &self.0[hasher.finish() as usize % SHARDS]
    }

    /// Returns what is known under a key.
    pub fn get(&self, key: &K) -> Option<V> {
        self.shard(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .cloned()
    }

    /// Notes what is known under a key.
    pub fn set(&self, key: K, value: V) {
        self.shard(&key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, value);
    }
}
