//! The continuity check of messages that were translated here, by the rule in `translator/dialects/canal/continuity.py`.
//!
//! That class checks all other messages of the partition, with the same state.

use std::collections::HashSet;

use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyList};

use crate::event::sorted_json;
use crate::known_rows::{
    digest, pair_of, table_key, Listed, Memory, Pair, Pairs, Reading, State, DATA_AFTER, DATA_BEFORE,
};
use crate::output::Taken;
use crate::row::{Before, Images};
use crate::row_key::Key;
use crate::table::{Operation, Table};

/// The note on an update whose `data` was read as the before image.
const SWAPPED: &str = "SWAP_OLD_DATA";
/// The format of DTS instances from before March 2022.
const LEGACY: &str = "dts_legacy";

/// The properties of an operation that the check needs.
pub struct Checked {
    /// Identifies the table.
    table: Vec<u8>,
    traits: Traits,
}

#[derive(Clone, Copy)]
struct Traits {
    is_update: bool,
    /// How an update with two images was read.
    reading: Reading,
    /// A DELETE that identifies its writer's format: whether the format is the legacy one.
    is_legacy_delete: Option<bool>,
}

impl Checked {
    /// Reads them from a `TableOperation`.
    pub fn of(operation: &Bound<'_, PyAny>) -> PyResult<Self> {
        let layout = operation.getattr("layout")?;
        let op: String = layout.getattr("op")?.extract()?;
        let notes: Vec<String> = layout.getattr("notes")?.extract()?;
        let writer = layout.getattr("writer")?;
        let variant: Option<String> = writer.getattr("variant")?.extract()?;
        let basis: Option<String> = writer.getattr("variant_basis")?.extract()?;
        let is_certain = basis.as_deref() == Some("certain");
        Ok(Self {
            table: table_key(&operation.getattr("table")?)?,
            traits: Traits {
                is_update: op == "u",
                reading: if notes.iter().any(|note| note == SWAPPED) { DATA_BEFORE } else { DATA_AFTER },
                is_legacy_delete: (op == "d" && is_certain).then(|| variant.as_deref() == Some(LEGACY)),
            },
        })
    }
}

/// The evidence in a message: `RowEvidence` in `translator/dialects/canal/evidence.py` for each row.
pub struct Evidence {
    offset: i64,
    traits: Traits,
    rows: Vec<RowEvidence>,
}

struct RowEvidence {
    /// None if the table has no key.
    key: Option<Vec<u8>>,
    /// None if the key did not change.
    key_old: Option<Vec<u8>>,
    before: Option<u64>,
    after: Option<u64>,
    /// Both images were sent completely.
    is_whole: bool,
}

impl RowEvidence {
    fn key_before(&self) -> Option<&[u8]> {
        self.key_old.as_deref().or(self.key.as_deref())
    }
}

impl Evidence {
    /// Creates the evidence of a message without rows.
    pub fn new(operation: &Operation, offset: i64) -> Self {
        Self { offset, traits: operation.checked.traits, rows: vec![] }
    }

    /// Adds the next row.
    pub fn add(&mut self, table: &Table, operation: &Operation, images: &Images, key: &Key, is_delete: bool) {
        let row = digest(&sorted_json(table, |index| images.value(index)));
        let has_before = images.has_before != Before::Absent;
        let before = has_before.then(|| digest(&sorted_json(table, |index| images.old_value(index))));
        let full = |key: &Option<Vec<u8>>| key.as_ref().map(|key| [&operation.checked.table[..], key].concat());
        self.rows.push(RowEvidence {
            key: full(&key.now),
            key_old: full(&key.old),
            before: if is_delete { Some(row) } else { before },
            after: (!is_delete).then_some(row),
            is_whole: images.has_before == Before::Whole,
        });
    }
}

/// A contradiction: the other change's offset, whether the other change was misread, how the misread one was read, and
/// the unconfirmed updates that were read in the same way.
type Contradiction = (i64, bool, Reading, Listed);

/// A row for which Python reports a contradiction or, if it has none, inspects the format of a DELETE.
type Found = (usize, Option<Contradiction>);

/// The state of a partition's check.
#[pyclass(module = "translator._native.rows")]
pub struct KnownRows {
    memory: Memory,
    is_fatal: bool,
    /// The class `KeyState`.
    state: Py<PyAny>,
}

#[derive(FromPyObject)]
struct PythonState {
    row: Option<u64>,
    offset: i64,
    commit: Option<i64>,
    if_wrong: Option<u64>,
    reading: Reading,
    snapshot: bool,
    pairs: HashSet<Pair>,
}

#[pymethods]
impl KnownRows {
    #[new]
    fn new(keys: usize, fatal: bool, state: Py<PyAny>) -> Self {
        Self { memory: Memory::new(keys), is_fatal: fatal, state }
    }

    /// The last second whose changes are not all stored.
    #[getter]
    fn horizon(&self) -> i64 {
        self.memory.horizon
    }

    /// Returns the hash of an image.
    #[staticmethod]
    fn digest(image: &[u8]) -> u64 {
        digest(image)
    }

    /// Returns a key's state as a `KeyState`.
    fn get<'py>(&self, py: Python<'py>, table: &Bound<'py, PyAny>, key: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = self.memory.get(&[&table_key(table)?[..], key].concat());
        state.map(|state| self.python_state(py, state)).transpose()
    }

    /// Sets a key's state.
    fn keep(&mut self, table: &Bound<'_, PyAny>, key: &[u8], state: PythonState) -> PyResult<()> {
        let mut pairs = Pairs::default();
        state.pairs.into_iter().for_each(|pair| pairs.add(pair));
        let PythonState { row, offset, commit, if_wrong, reading, snapshot: is_snapshot, .. } = state;
        let state = State { row, offset, commit, if_wrong, reading, is_snapshot, pairs };
        self.memory.keep(&[&table_key(table)?[..], key].concat(), state);
        Ok(())
    }

    /// Forgets the rows of a table, or all rows.
    fn forget(&mut self, table: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let table = table.map(table_key).transpose()?;
        self.memory.forget(table.as_deref());
        Ok(())
    }

    /// Notes that no earlier message in the partition was missed.
    fn complete(&mut self) {
        self.memory.is_new = false;
    }

    /// Records the time of the first change since the state was reset.
    fn begin(&mut self, commit: Option<i64>) {
        self.memory.begin(commit);
    }

    /// Adds an update that can be read in two ways.
    fn add_unconfirmed(&mut self, reading: Reading, offset: i64) {
        self.memory.unconfirmed(reading).add(offset);
    }

    /// Confirms how an update was read.
    fn confirm(&mut self, reading: Reading, offset: i64) {
        self.memory.confirm(reading, offset);
    }

    /// Lists the unconfirmed updates that were read in this way.
    fn unconfirmed(&self, reading: Reading) -> Listed {
        self.memory.listed(reading)
    }

    /// Counts a contradiction, and returns whether to report it.
    fn contradicted(&mut self) -> bool {
        self.memory.contradictions += 1;
        self.is_fatal || self.memory.contradictions.is_power_of_two()
    }

    /// Inspects messages up to and including the first one with a finding. Returns their number and the last one's
    /// findings.
    ///
    /// The flags tell whether a DELETE in the current or in the legacy format needs Python's attention.
    fn inspect(
        &mut self,
        taken: &Bound<'_, PyList>,
        current_matters: bool,
        legacy_matters: bool,
    ) -> PyResult<(usize, Vec<Found>)> {
        for (number, taken) in taken.iter().enumerate() {
            let taken = taken.downcast::<Taken>()?.try_borrow()?;
            let Some(evidence) = &taken.evidence else { continue };
            let matters = match evidence.traits.is_legacy_delete {
                None => false,
                Some(true) => legacy_matters,
                Some(false) => current_matters,
            };
            let found = self.message(evidence, taken.ts_commit_us, matters);
            if !found.is_empty() {
                return Ok((number + 1, found));
            }
        }
        Ok((taken.len(), vec![]))
    }
}

impl KnownRows {
    fn python_state<'py>(&self, py: Python<'py>, state: &State) -> PyResult<Bound<'py, PyAny>> {
        let pairs = PyFrozenSet::new(py, state.pairs.iter())?;
        let State { row, offset, commit, if_wrong, reading, is_snapshot, .. } = state;
        self.state.bind(py).call1((row, offset, commit, if_wrong, reading, is_snapshot, pairs))
    }

    fn message(&mut self, evidence: &Evidence, commit: Option<i64>, delete_matters: bool) -> Vec<Found> {
        if evidence.offset == 0 {
            self.memory.is_new = false;
        }
        let mut found = vec![];
        // A message's shape applies to all its rows. After the first row, `old` can list unchanged columns.
        let is_undecided = evidence.traits.is_update && evidence.rows.iter().all(|row| row.is_whole);
        for (number, row) in evidence.rows.iter().enumerate() {
            self.memory.begin(commit);
            if delete_matters {
                found.push((number, None));
            }
            let mut check = Check { memory: &mut self.memory, offset: evidence.offset, commit };
            let contrary = match (row.before, row.after) {
                (Some(x), Some(y)) if is_undecided && x != y => check.undecided(evidence.traits.reading, row, x, y),
                _ => check.decided(row),
            };
            if let Some((other, is_earlier, reading)) = contrary.filter(|_| self.contradicted()) {
                found.push((number, Some((other, is_earlier, reading, self.memory.listed(reading)))));
            }
        }
        found
    }
}

/// A change that contradicts another: the other's offset, whether the other was misread, and how the misread one was
/// read.
type Contrary = (i64, bool, Reading);

/// The check of one message's rows.
struct Check<'a> {
    memory: &'a mut Memory,
    offset: i64,
    commit: Option<i64>,
}

impl Check<'_> {
    /// Checks an update that can be read in two ways.
    fn undecided(&mut self, reading: Reading, row: &RowEvidence, x: u64, y: u64) -> Option<Contrary> {
        self.memory.unconfirmed(reading).add(self.offset);
        let key = row.key.as_deref()?;
        if let Some(key_old) = row.key_old.as_deref() {
            return self.key_changed(reading, (key_old, x), (key, y));
        }
        let (pair, known) = (pair_of(x, y), self.memory.get(key));
        let pairs = State::pairs_with(known, self.commit, Some(pair));
        let mut now = State { reading, if_wrong: Some(x), ..self.state(Some(y), pairs) };
        let mut found = None;
        if let Some(known) = known.filter(|known| !self.may_postdate(known, Some(pair))) {
            let (known_row, known_if_wrong) = (known.row, known.if_wrong);
            let (known_reading, known_offset) = (known.reading, known.offset);
            let follows = Some(x) == known_row;
            if follows && Some(y) != known_if_wrong {
                self.memory.confirm(known_reading, known_offset);
                self.memory.confirm(reading, self.offset);
                now.if_wrong = None;
            } else if !follows && [known_row, known_if_wrong].contains(&Some(y)) {
                (now.row, now.if_wrong) = (Some(x), None);
                found = Some((known_offset, false, reading));
            } else if !follows && Some(x) == known_if_wrong {
                now.if_wrong = None;
                found = Some((known_offset, true, known_reading));
            }
        }
        self.memory.keep(key, now);
        found
    }

    /// Checks the rows of both keys: the old key must have had the row before, and the new key no row at all.
    fn key_changed(&mut self, reading: Reading, from: (&[u8], u64), to: (&[u8], u64)) -> Option<Contrary> {
        let ((key_old, x), (key, y)) = (from, to);
        let pair = pair_of(x, y);
        let (old, new) = (self.memory.get(key_old), self.memory.get(key));
        let follows = old.is_some_and(|old| Some(x) == old.row && !self.may_postdate(old, Some(pair)));
        let is_reversed =
            new.is_some_and(|new| [new.row, new.if_wrong].contains(&Some(y)) && !self.may_postdate(new, Some(pair)));
        let mut pairs = State::pairs_with(old, self.commit, Some(pair));
        State::pairs_with(new, self.commit, Some(pair)).iter().for_each(|pair| pairs.add(pair));
        let (last, other) = (old.map(|old| (old.reading, old.offset)), new.map(|new| new.offset));
        let (mut row_old, mut row, mut found) = (None, None, None);
        match (last, other) {
            (Some((last_reading, last_offset)), _) if follows && !is_reversed => {
                self.memory.confirm(last_reading, last_offset);
                self.memory.confirm(reading, self.offset);
                row = Some(y);
            }
            (_, Some(other)) if is_reversed && !follows => {
                row_old = Some(x);
                found = Some((other, false, reading));
            }
            _ => (),
        }
        self.memory.keep(key_old, self.state(row_old, pairs.clone()));
        self.memory.keep(key, self.state(row, pairs));
        found
    }

    /// Uses an image whose meaning is certain.
    fn decided(&mut self, row: &RowEvidence) -> Option<Contrary> {
        let mut found = None;
        if row.before.is_some() {
            found = row.key_before().and_then(|key| self.checked(key, row.before));
            if let Some(key_old) = &row.key_old {
                self.leave(key_old, None);
            }
        }
        if let Some(key) = &row.key {
            self.leave(key, row.after);
        }
        found
    }

    /// Decides how a key's last update must be read, based on the row that must have resulted from it.
    fn checked(&mut self, key: &[u8], row: Option<u64>) -> Option<Contrary> {
        let known = self.memory.get(key)?;
        if known.if_wrong.is_none() || self.may_postdate(known, None) {
            return None;
        }
        let (reading, offset) = (known.reading, known.offset);
        if row == known.row {
            self.memory.confirm(reading, offset);
            return None;
        }
        (row == known.if_wrong).then_some((offset, true, reading))
    }

    /// Sets the current row of a key.
    fn leave(&mut self, key: &[u8], row: Option<u64>) {
        let pairs = State::pairs_with(self.memory.get(key), self.commit, None);
        self.memory.keep(key, self.state(row, pairs));
    }

    fn state(&self, row: Option<u64>, pairs: Pairs) -> State {
        let (offset, commit) = (self.offset, self.commit);
        State { row, offset, commit, if_wrong: None, reading: 0, is_snapshot: false, pairs }
    }

    fn may_postdate(&self, known: &State, pair: Option<Pair>) -> bool {
        known.may_postdate(self.commit, pair, self.memory.horizon)
    }
}
