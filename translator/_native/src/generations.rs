//! A cache that forgets what was not used for a long time.

use std::collections::HashMap;

/// Maximum number of entries in a generation.
const ENTRIES: usize = 8192;
/// Maximum bytes in a generation, as counted by those who add entries.
const BYTES: usize = 8 * 1024 * 1024;

/// Entries in two generations. If the younger generation is full, it becomes the older one, and the previous older one
/// is dropped. An entry of the older generation becomes younger when it is used, so a cache with more entries than it
/// can keep still has those that are used often. Clearing a full cache would lose them as well.
pub struct Generations<V> {
    younger: Generation<V>,
    older: HashMap<Vec<u8>, (V, usize)>,
}

struct Generation<V> {
    entries: HashMap<Vec<u8>, (V, usize)>,
    bytes: usize,
}

impl<V> Generations<V> {
    /// An empty cache.
    pub fn new() -> Self {
        Self { younger: Generation { entries: HashMap::new(), bytes: 0 }, older: HashMap::new() }
    }

    /// Returns an entry without using it.
    pub fn peek(&self, key: &[u8]) -> Option<&V> {
        self.younger.entries.get(key).or_else(|| self.older.get(key)).map(|(value, _)| value)
    }

    /// Returns an entry, which becomes younger.
    pub fn get(&mut self, key: &[u8]) -> Option<&mut V> {
        if !self.older.is_empty() && !self.younger.entries.contains_key(key) {
            let (key, (value, bytes)) = self.older.remove_entry(key)?;
            self.add(key, value, bytes);
        }
        self.younger.entries.get_mut(key).map(|(value, _)| value)
    }

    /// Removes and returns an entry.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        if let Some((value, bytes)) = self.younger.entries.remove(key) {
            self.younger.bytes -= bytes;
            return Some(value);
        }
        self.older.remove(key).map(|(value, _)| value)
    }

    /// Adds an entry with this many bytes, or replaces it.
    pub fn add(&mut self, key: Vec<u8>, value: V, bytes: usize) {
        self.remove(&key);
        let Generation { entries, bytes: held } = &mut self.younger;
        if entries.len() >= ENTRIES || *held + bytes > BYTES {
            self.older = std::mem::take(entries);
            *held = 0;
        }
        *held += bytes;
        entries.insert(key, (value, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Vec<u8> {
        number.to_le_bytes().to_vec()
    }

    #[test]
    fn entries_in_use_stay() {
        let mut kept = Generations::new();
        for number in 0..4 * ENTRIES {
            kept.add(key(number), number, 1);
            assert_eq!(kept.get(&key(0)).copied(), Some(0));
            assert!(kept.younger.entries.len() <= ENTRIES && kept.older.len() <= ENTRIES);
        }
        assert_eq!(kept.peek(&key(1)), None);
        assert_eq!(kept.peek(&key(4 * ENTRIES - 1)), Some(&(4 * ENTRIES - 1)));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut kept = Generations::new();
        for number in 0..8 {
            kept.add(key(number), number, BYTES / 2);
        }
        assert_eq!((kept.younger.entries.len(), kept.older.len()), (2, 2));
        assert_eq!(kept.peek(&key(3)), None);
        assert_eq!(kept.get(&key(4)).copied(), Some(4));
        assert_eq!((kept.younger.entries.len(), kept.older.len()), (1, 2));
    }

    #[test]
    fn a_replaced_entry_counts_once() {
        let mut kept = Generations::new();
        for _ in 0..8 {
            kept.add(key(0), 0, BYTES / 2);
        }
        assert_eq!((kept.younger.entries.len(), kept.older.len(), kept.younger.bytes), (1, 0, BYTES / 2));
    }
}
