//! The tables of a Qlik source by their descriptions, cached as long as the metadata they were compiled from is
//! current.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::generations::Generations;
use crate::reason::{Read, Reason};
use crate::table::{compiled, Table};

/// Everything that determines a table: the variant of the message, the id of its metadata or schema, the topic, the
/// Kafka key, schema and table in its headers, the key columns in the Kafka key as JSON, and the schema id in the Kafka
/// key. Parts that do not matter are empty.
pub type Described<'a> = [&'a [u8]; 8];
pub const VARIANT: usize = 0;
const SCHEMA_ID: usize = 1;
pub const KEY_COLUMNS: usize = 6;
pub const KEY_SCHEMA_ID: usize = 7;

/// The indexes of the ids among them.
const LEARNED: [usize; 2] = [SCHEMA_ID, KEY_SCHEMA_ID];

/// The tables that were requested.
pub struct Tables {
    /// Creates a `NativeTable` from its description; None leaves its rows to the plain path.
    compile: Py<PyAny>,
    /// Returns what was learned under an id, or None.
    lookup: Py<PyAny>,
    kept: Generations<Known>,
    run: u64,
}

/// A table, and the learned metadata from which it was compiled. New metadata can replace it under the same ids.
struct Known {
    learned: [Option<Py<PyAny>>; LEARNED.len()],
    /// The run in which the metadata was last checked.
    run: u64,
    table: Option<Table>,
}

impl Tables {
    /// None yet.
    pub fn new(compile: Py<PyAny>, lookup: Py<PyAny>) -> Self {
        Self { compile, lookup, kept: Generations::new(), run: 0 }
    }

    /// Begins a run of messages, in which learned metadata may have changed.
    pub fn begin_run(&mut self) {
        self.run += 1;
    }

    /// Makes sure that a table is known with current metadata. `name` becomes its cache key.
    pub fn find(&mut self, py: Python<'_>, described: &Described<'_>, name: &mut Vec<u8>) -> Read<()> {
        name.clear();
        for part in described {
            name.extend_from_slice(&part.len().to_le_bytes());
            name.extend_from_slice(part);
        }
        if self.kept.get(name).is_some_and(|known| known.run == self.run) {
            return Ok(());
        }
        let mut learned = [None, None];
        for (part, found) in LEARNED.into_iter().zip(&mut learned) {
            *found = self.learned(py, described[part])?;
        }
        if let Some(known) = self.kept.get(name) {
            if are_same(&known.learned, &learned) {
                known.run = self.run;
                return Ok(());
            }
        }
        let table = compiled(py, &self.compile, name.len(), described)?;
        self.kept.add(name.clone(), Known { learned, run: self.run, table }, name.len());
        Ok(())
    }

    /// Returns what was learned under an id, or nothing if the id is empty. The plain path waits for missing metadata.
    fn learned(&self, py: Python<'_>, schema_id: &[u8]) -> Read<Option<Py<PyAny>>> {
        if schema_id.is_empty() {
            return Ok(None);
        }
        let id = std::str::from_utf8(schema_id).map_err(|_| Reason::Spelling)?;
        let found = self.lookup.bind(py).call1((PyString::new(py, id),)).map_err(|_| Reason::Layout)?;
        if found.is_none() {
            return Err(Reason::Layout);
        }
        Ok(Some(found.unbind()))
    }

    /// Returns the table under a cache key, or nothing if it is left to the plain path.
    pub fn known(&self, name: &[u8]) -> Read<&Table> {
        self.kept.peek(name).and_then(|known| known.table.as_ref()).ok_or(Reason::Layout)
    }
}

/// Returns whether these are the same objects.
fn are_same(learned: &[Option<Py<PyAny>>], others: &[Option<Py<PyAny>>]) -> bool {
    let mut pairs = learned.iter().zip(others);
    pairs.all(|(one, other)| one.as_ref().map(Py::as_ptr) == other.as_ref().map(Py::as_ptr))
}
