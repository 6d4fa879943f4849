//! The tables of a Qlik source, by what describes them, for as long as what they were compiled of is the same.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::reason::{Read, Reason};
use crate::table::{compiled, Table, KEPT};

/// All that decides about a table: the variant of the message, the id of its metadata or its schema, the topic, the
/// Kafka key, schema and table in its headers, the key columns that the Kafka key names, as JSON, and the id of the schema
/// that it names. What does not decide is empty.
pub type Described<'a> = [&'a [u8]; 8];
pub const VARIANT: usize = 0;
const SCHEMA_ID: usize = 1;
pub const KEY_COLUMNS: usize = 6;
pub const KEY_SCHEMA_ID: usize = 7;

/// The ids among them.
const LEARNED: [usize; 2] = [SCHEMA_ID, KEY_SCHEMA_ID];

/// The tables that were asked for.
pub struct Tables {
    /// Makes a `NativeTable` of what describes it; None where the plain way must read its rows.
    compile: Py<PyAny>,
    /// Gives what was learned under an id; None where nothing was.
    lookup: Py<PyAny>,
    kept: HashMap<Vec<u8>, Known>,
    run: u64,
}

/// A table, and what was learned that it was compiled of: that under the same ids may be another by now.
struct Known {
    learned: [Option<Py<PyAny>>; LEARNED.len()],
    /// The run in which that was last the same.
    run: u64,
    table: Option<Table>,
}

impl Tables {
    /// None yet.
    pub fn new(compile: Py<PyAny>, lookup: Py<PyAny>) -> Self {
        Self { compile, lookup, kept: HashMap::new(), run: 0 }
    }

    /// Begins a run of messages: what was learned may be another by now.
    pub fn begin_run(&mut self) {
        self.run += 1;
    }

    /// Makes sure that a table is known, by what is learned now; `name` becomes what it is kept under.
    pub fn find(&mut self, py: Python<'_>, described: &Described<'_>, name: &mut Vec<u8>) -> Read<()> {
        name.clear();
        for part in described {
            name.extend_from_slice(&part.len().to_le_bytes());
            name.extend_from_slice(part);
        }
        if self.kept.get(&name[..]).is_some_and(|known| known.run == self.run) {
            return Ok(());
        }
        let mut learned = [None, None];
        for (part, found) in LEARNED.into_iter().zip(&mut learned) {
            *found = self.learned(py, described[part])?;
        }
        if let Some(known) = self.kept.get_mut(&name[..]) {
            if are_same(&known.learned, &learned) {
                known.run = self.run;
                return Ok(());
            }
        }
        let table = compiled(py, &self.compile, name.len(), described)?;
        if self.kept.len() >= KEPT {
            self.kept.clear();
        }
        self.kept.insert(name.clone(), Known { learned, run: self.run, table });
        Ok(())
    }

    /// What was learned under an id; none where no id was sent. What has not come yet, the plain way waits for.
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

    /// The table that was found under a name; not there where it is left to the plain way.
    pub fn known(&self, name: &[u8]) -> Read<&Table> {
        self.kept.get(name).and_then(|known| known.table.as_ref()).ok_or(Reason::Layout)
    }
}

/// Whether these are the same objects.
fn are_same(learned: &[Option<Py<PyAny>>], others: &[Option<Py<PyAny>>]) -> bool {
    let mut pairs = learned.iter().zip(others);
    pairs.all(|(one, other)| one.as_ref().map(Py::as_ptr) == other.as_ref().map(Py::as_ptr))
}
