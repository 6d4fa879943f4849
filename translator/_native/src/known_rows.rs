//! The state of a partition's continuity check: `PlainKnownRows` in `translator/dialects/canal/known_rows.py`.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::sync::Arc;

use pyo3::prelude::*;

/// Maximum number of updates to a key that are distinguished within one second at the source.
const SAME_SECOND: usize = 16;
/// Maximum number of unconfirmed offsets to store.
const LISTED: usize = 1000;
/// The end of the list of slots.
const END: usize = usize::MAX;

/// How an update with two images was read: 0 if it has only one meaning, or one of the constants below.
pub type Reading = u8;
/// `data` contains the row after the change.
pub const DATA_AFTER: Reading = 1;
/// `data` contains the row before the change.
pub const DATA_BEFORE: Reading = 2;

/// The hashes of an update's two images, the smaller one first.
pub type Pair = (u64, u64);

/// Returns the pair of these two images.
pub fn pair_of(one: u64, other: u64) -> Pair {
    (one.min(other), one.max(other))
}

/// Returns the hash of an image. It is part of the state, so both paths use it.
pub fn digest(image: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(image);
    hasher.finish()
}

/// Returns the bytes that identify a table, to which a row's key is appended. Each name is preceded by its length, so no
/// table's bytes begin with those of another.
pub fn table_key(table: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in ["db", "schema", "table"] {
        let name: Option<String> = table.getattr(part)?.extract()?;
        // No name has this length.
        bytes.extend_from_slice(&name.as_ref().map_or(u64::MAX, |name| name.len() as u64).to_le_bytes());
        bytes.extend_from_slice(name.unwrap_or_default().as_bytes());
    }
    Ok(bytes)
}

/// Distinct pairs. Most keys have at most one, which needs no memory of its own.
#[derive(Clone, Default)]
pub struct Pairs {
    first: Option<Pair>,
    others: Vec<Pair>,
}

impl Pairs {
    /// The pairs.
    pub fn iter(&self) -> impl Iterator<Item = Pair> + '_ {
        self.first.iter().chain(&self.others).copied()
    }

    /// Adds a pair.
    pub fn add(&mut self, pair: Pair) {
        if self.first.is_none() {
            self.first = Some(pair);
        } else if self.iter().all(|known| known != pair) {
            self.others.push(pair);
        }
    }

    fn are_full(&self) -> bool {
        self.iter().count() >= SAME_SECOND
    }
}

/// The state after a key's last change.
#[derive(Clone)]
pub struct State {
    /// None if no row exists or the row is unknown.
    pub row: Option<u64>,
    /// The offset of the change.
    pub offset: i64,
    /// Microseconds since 1970.
    pub commit: Option<i64>,
    /// The row that would result if the last update was read the wrong way round.
    pub if_wrong: Option<u64>,
    /// How the last update was read.
    pub reading: Reading,
    /// The row is part of a full load.
    pub is_snapshot: bool,
    /// The pairs of images in all updates to the key with this commit time.
    pub pairs: Pairs,
}

impl State {
    /// Returns whether a change may be older than this state. See `KeyState.may_postdate`.
    pub fn may_postdate(&self, commit: Option<i64>, pair: Option<Pair>, horizon: i64) -> bool {
        let (Some(known), Some(commit)) = (self.commit, commit) else { return true };
        if self.is_snapshot {
            return commit <= known;
        }
        if commit != known {
            return commit < known;
        }
        let Some(pair) = pair else { return true };
        commit <= horizon || self.pairs.are_full() || self.pairs.iter().any(|known| known == pair)
    }

    /// Returns the pairs of a key with this state, after one more change.
    pub fn pairs_with(known: Option<&Self>, commit: Option<i64>, pair: Option<Pair>) -> Pairs {
        let mut pairs = match known {
            Some(known) if known.commit == commit => known.pairs.clone(),
            _ => Pairs::default(),
        };
        if let Some(pair) = pair.filter(|_| !pairs.are_full()) {
            pairs.add(pair);
        }
        pairs
    }
}

/// A slot in the list of known rows.
struct Slot {
    key: Arc<[u8]>,
    state: State,
    older: usize,
    newer: usize,
}

/// The offsets of updates that were read in one of the two ways, without confirmation.
pub struct Unconfirmed {
    /// By offset: its position in the order of arrival, and its number of rows.
    rows: HashMap<i64, (u64, u32)>,
    order: BTreeMap<u64, i64>,
    arrivals: u64,
    dropped: u64,
    first: Option<i64>,
    last: i64,
}

/// The stored offsets in order of arrival, the number of older ones, and the first of those.
pub type Listed = (Vec<i64>, u64, Option<i64>);

impl Unconfirmed {
    fn new() -> Self {
        Self { rows: HashMap::new(), order: BTreeMap::new(), arrivals: 0, dropped: 0, first: None, last: -1 }
    }

    /// Adds a row of the message at this offset.
    pub fn add(&mut self, offset: i64) {
        if let Some((_, count)) = self.rows.get_mut(&offset) {
            *count += 1;
            return;
        }
        self.rows.insert(offset, (self.arrivals, 1));
        self.order.insert(self.arrivals, offset);
        self.arrivals += 1;
        if self.rows.len() > LISTED {
            let (_, oldest) = self.order.pop_first().expect("the list is not empty");
            self.rows.remove(&oldest);
            self.first = self.first.or(Some(oldest));
            self.last = oldest;
            self.dropped += 1;
        }
    }

    fn confirm(&mut self, offset: i64) {
        let Some((arrival, count)) = self.rows.get_mut(&offset) else { return };
        *count -= 1;
        if *count == 0 {
            self.order.remove(arrival);
            self.rows.remove(&offset);
        }
    }

    fn confirm_until(&mut self, offset: i64) {
        while let Some(oldest) = self.order.first_entry().filter(|oldest| *oldest.get() <= offset) {
            self.rows.remove(&oldest.remove());
        }
        if self.last <= offset {
            (self.dropped, self.first) = (0, None);
        }
    }

    fn listed(&self) -> Listed {
        (self.order.values().copied().collect(), self.dropped, self.first)
    }
}

/// The rows of the most recently changed keys, and the other parts of the state.
pub struct Memory {
    index: HashMap<Arc<[u8]>, usize>,
    slots: Vec<Slot>,
    oldest: usize,
    newest: usize,
    limit: usize,
    /// The last second whose changes are not all stored.
    pub horizon: i64,
    /// No change has been seen since the state was reset.
    pub is_new: bool,
    unconfirmed: [Unconfirmed; 2],
    /// The number of contradictions.
    pub contradictions: u64,
}

impl Memory {
    /// Creates an empty state for this number of keys.
    pub fn new(limit: usize) -> Self {
        Self {
            index: HashMap::new(),
            slots: Vec::new(),
            oldest: END,
            newest: END,
            limit,
            horizon: -1,
            is_new: true,
            unconfirmed: [Unconfirmed::new(), Unconfirmed::new()],
            contradictions: 0,
        }
    }

    /// Returns the state of a key.
    pub fn get(&self, key: &[u8]) -> Option<&State> {
        self.index.get(key).map(|slot| &self.slots[*slot].state)
    }

    /// Sets the state of a key, and forgets the key that was not changed for the longest time.
    pub fn keep(&mut self, key: &[u8], state: State) {
        if let Some(&slot) = self.index.get(key) {
            self.slots[slot].state = state;
            self.unlink(slot);
            self.link(slot);
            return;
        }
        let key: Arc<[u8]> = key.into();
        let slot = if self.index.len() < self.limit {
            self.slots.push(Slot { key: key.clone(), state, older: END, newer: END });
            self.slots.len() - 1
        } else {
            let slot = self.oldest;
            self.unlink(slot);
            let forgotten = &mut self.slots[slot];
            self.index.remove(&forgotten.key);
            // As in Python, where the time 0 is false.
            self.horizon = self.horizon.max(forgotten.state.commit.filter(|commit| *commit != 0).unwrap_or(-1));
            (forgotten.key, forgotten.state) = (key.clone(), state);
            slot
        };
        self.index.insert(key, slot);
        self.link(slot);
    }

    /// Forgets the rows of a table, or all rows.
    pub fn forget(&mut self, table: Option<&[u8]>) {
        self.is_new = true;
        let kept = self.in_order().filter(|slot| table.is_some_and(|table| !slot.key.starts_with(table)));
        let kept: Vec<_> = kept.map(|slot| (slot.key.clone(), slot.state.clone())).collect();
        self.index.clear();
        self.slots.clear();
        (self.oldest, self.newest) = (END, END);
        for (key, state) in kept {
            self.keep(&key, state);
        }
    }

    /// Records the time of the first change since the state was reset.
    pub fn begin(&mut self, commit: Option<i64>) {
        if let Some(commit) = commit.filter(|_| self.is_new) {
            (self.horizon, self.is_new) = (self.horizon.max(commit), false);
        }
    }

    /// The offsets of unconfirmed updates that were read in this way.
    pub fn unconfirmed(&mut self, reading: Reading) -> &mut Unconfirmed {
        &mut self.unconfirmed[usize::from(reading == DATA_BEFORE)]
    }

    /// Confirms how an update was read.
    pub fn confirm(&mut self, reading: Reading, offset: i64) {
        match reading {
            // An instance switches format only once, so everything earlier has the same format.
            DATA_BEFORE => self.unconfirmed(reading).confirm_until(offset),
            DATA_AFTER => self.unconfirmed(reading).confirm(offset),
            _ => (),
        }
    }

    /// Lists the unconfirmed updates that were read in this way.
    pub fn listed(&self, reading: Reading) -> Listed {
        self.unconfirmed[usize::from(reading == DATA_BEFORE)].listed()
    }

    fn in_order(&self) -> impl Iterator<Item = &Slot> {
        let at = |slot: usize| self.slots.get(slot);
        std::iter::successors(at(self.oldest), move |slot| at(slot.newer))
    }

    fn unlink(&mut self, slot: usize) {
        let (older, newer) = (self.slots[slot].older, self.slots[slot].newer);
        match self.slots.get_mut(older) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
    }

    fn link(&mut self, slot: usize) {
        let newest = std::mem::replace(&mut self.newest, slot);
        (self.slots[slot].older, self.slots[slot].newer) = (newest, END);
        match self.slots.get_mut(newest) {
            Some(before) => before.newer = slot,
            None => self.oldest = slot,
        }
    }
}
