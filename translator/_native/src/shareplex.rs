//! SharePlex JSON: one row per message, with the columns that changed and the row's previous key.
//!
//! The rules are those of `translator/dialects/shareplex`.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::avro;
use crate::notes::{Kept, Notes};
use crate::objects::{are_key, holds, position, unquoted, value_of, CellWriter};
use crate::output::{Form, Taken};
use crate::reason::{Read, Reason};
use crate::row::{
    Head, Image, Place, Row, KIND_NONE, KIND_UNIQUE, STATE_FULL, STATE_KEY, STATE_MERGED, STATE_NONE, STATE_PARTIAL,
};
use crate::row_key::{differs, Key};
use crate::run::{self, Raw};
use crate::scan::Cell;
use crate::shareplex_message::{members, transaction, Meta};
use crate::table::{Table, Tables};

const INSERT: usize = 0;
const UPDATE: usize = 1;
const DELETE: usize = 2;

/// Maximum number of cached times. Beyond it, the cache is cleared.
const KEPT: usize = 4096;

/// The options of a source that matter here.
#[derive(FromPyObject)]
struct Options {
    /// The operations by their words, as JSON.
    words: HashMap<Vec<u8>, usize>,
    /// `scn` must be decimal digits.
    decimal_scn: bool,
    /// The `key` of an update contains only the key columns.
    key_is_key: bool,
    value_bytes: usize,
    columns: usize,
}

/// A time as read by Python.
#[derive(FromPyObject, Clone)]
struct Instant {
    micros: Option<i64>,
    exact: bool,
    zone_note: Option<String>,
    assumed: Option<String>,
}

/// Translates the common row messages of one source.
#[pyclass(module = "translator._native.rows")]
pub struct SharePlexRows {
    options: Options,
    form: Form,
    /// Described by a table name and a host, both as JSON.
    tables: Tables,
    /// Reads a time.
    instant: Py<PyAny>,
    instants: HashMap<Vec<u8>, Instant>,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    data: Vec<Cell>,
    key: Vec<Cell>,
    data_image: Image,
    key_image: Image,
    merged: Vec<u8>,
    changed: Vec<u8>,
    name: Vec<u8>,
}

#[pymethods]
impl SharePlexRows {
    #[new]
    fn new(options: Options, form: &Bound<'_, PyAny>, compile: Py<PyAny>, instant: Py<PyAny>) -> PyResult<Self> {
        Ok(Self {
            options,
            form: Form::of(form)?,
            tables: Tables::new(compile),
            instant,
            instants: HashMap::new(),
            scratch: Scratch::default(),
        })
    }

    /// Returns for each message of a partition either `Taken` or the reason why it was not translated.
    fn take<'py>(
        &mut self,
        py: Python<'py>,
        topic: &str,
        partition: i64,
        topic_id: &str,
        messages: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let place = self.form.place(topic, partition, topic_id);
        let (mut scratch, value_bytes) = (std::mem::take(&mut self.scratch), self.options.value_bytes);
        let taken = run::take(py, messages, value_bytes, |raw| {
            run::translate_json(raw, |raw| self.translated(py, &place, raw, &mut scratch))
        });
        self.scratch = scratch;
        taken
    }
}

impl SharePlexRows {
    fn translated(&mut self, py: Python<'_>, place: &Place, raw: &Raw<'_>, scratch: &mut Scratch) -> Read<Taken> {
        let value = raw.value;
        let Scratch { data, key, data_image, key_image, merged, changed, name } = scratch;
        let (meta, has_key) = members(value, data, key)?;
        let kind = *self.options.words.get(meta.op).ok_or(Reason::Shape)?;
        if data.is_empty() || (kind == UPDATE) != has_key {
            return Err(Reason::Shape);
        }
        if data.len().max(key.len()) > self.options.columns {
            return Err(Reason::Size);
        }
        let (commit_us, capture_us, zone_note, ext) = self.told(py, &meta)?;
        let scn = meta.scn.map(|scn| self.scn(scn)).transpose()?;
        let tx = transaction(&meta)?;
        name.clear();
        name.extend_from_slice(meta.table);
        name.push(0);
        name.extend_from_slice(meta.host);
        let table = self.tables.of(py, name, &[meta.table, meta.host])?;
        let operation = table.operations[0][kind].as_ref().ok_or(Reason::Layout)?;
        let writer = CellWriter { py, value, table, convert_cell: &self.form.convert_cell };
        writer.image(data, data_image)?;
        let mut notes = Notes::default();
        if let Some(note) = &zone_note {
            notes.add(note.as_bytes());
        }
        let head = Head {
            offset: raw.offset,
            timestamp_ms: raw.timestamp_ms,
            native: scn,
            commit_us,
            capture_us,
            tx,
            rows: 1,
        };
        let mut row = Row {
            index: 0,
            record_key: &table.record_key,
            key: None,
            key_old: None,
            key_kind: &table.key_kind,
            before: None,
            after: None,
            before_state: STATE_NONE,
            after_state: STATE_NONE,
            changed: None,
            unavailable: None,
            notes: &[],
            ext: &ext,
        };
        let row_key = match kind {
            INSERT => writer.inserted(data, data_image, &mut row, &mut notes)?,
            DELETE => writer.deleted(data, data_image, &mut row)?,
            _ => {
                writer.image(key, key_image)?;
                let images = Update { data, new: data_image, key, old: key_image };
                let own = writer.undeclared_key(&images, self.options.key_is_key)?;
                if own.is_some() {
                    notes.add(b"KEY_FROM_MESSAGE");
                    row.key_kind = KIND_UNIQUE;
                }
                writer.updated(&images, own.as_deref().unwrap_or(&table.key_names), merged, changed, &mut row)?
            }
        };
        if row_key.now.is_none() {
            notes.add(b"KEY_UNDECLARED");
            row.key_kind = KIND_NONE;
        }
        let (notes, mut all_notes) = (notes.written(), vec![]);
        row.notes = &notes;
        row_key.describe(&mut row, &mut all_notes);
        let mut records = self.form.records(py, place, &head, operation);
        records.add(&row)?;
        Ok(records.taken(None))
    }

    /// Returns the times of a message in microseconds, the note about their zone, and the texts to keep, in Avro.
    #[allow(clippy::type_complexity)] // the only caller distinguishes the parts
    fn told(&mut self, py: Python<'_>, meta: &Meta<'_>) -> Read<(Option<i64>, Option<i64>, Option<String>, Vec<u8>)> {
        let (mut kept, mut zone_note) = (Kept::default(), None);
        let mut micros = [None, None];
        for (index, (name, sent)) in [(&b"time"[..], meta.time), (b"posttime", meta.posttime)].into_iter().enumerate() {
            let Some(quoted) = sent else { continue };
            let instant = self.instant(py, quoted)?;
            zone_note = zone_note.or(instant.zone_note);
            if !instant.exact {
                kept.add(name, unquoted(quoted));
            }
            micros[index] = instant.micros;
        }
        for (name, sent) in [(&b"userid"[..], meta.userid), (b"rowid", meta.rowid)] {
            if let Some(sent) = sent {
                kept.add(name, unquoted(sent));
            }
        }
        Ok((micros[0], micros[1], zone_note, kept.written()))
    }

    /// Reads a time. An ambiguous or non-existent local time is left to the plain path. Invalid text can have any
    /// length and is not cached.
    fn instant(&mut self, py: Python<'_>, quoted: &[u8]) -> Read<Instant> {
        if !self.instants.contains_key(quoted) {
            let text = std::str::from_utf8(&quoted[1..quoted.len() - 1]).map_err(|_| Reason::Spelling)?;
            let made = self.instant.bind(py).call1((text,)).and_then(|made| made.extract::<Instant>());
            let made = made.ok().filter(|instant| instant.assumed.is_none()).ok_or(Reason::Cell)?;
            if self.instants.len() == KEPT {
                self.instants.clear();
            }
            self.instants.insert(quoted.to_vec(), made);
        }
        Ok(self.instants[quoted].clone())
    }

    fn scn<'a>(&self, sent: &'a [u8]) -> Read<&'a [u8]> {
        let text = unquoted(sent);
        let is_decimal = text.len() <= 20 && text.iter().all(u8::is_ascii_digit);
        if text.is_empty() || (self.options.decimal_scn && !is_decimal) {
            return Err(Reason::Shape);
        }
        Ok(text)
    }
}

/// Returns the state of an image with these key columns, in Avro.
fn state_of(table: &Table, key: &[Vec<u8>], cells: &[Cell], value: &[u8]) -> &'static [u8] {
    if table.is_declared && cells.len() == table.columns.len() {
        return STATE_FULL;
    }
    if are_key(key, cells, value) {
        STATE_KEY
    } else {
        STATE_PARTIAL
    }
}

fn state(table: &Table, cells: &[Cell], value: &[u8]) -> &'static [u8] {
    state_of(table, &table.key_names, cells, value)
}

/// Both images of an update: `data` has the new values, `key` the columns of the before image.
struct Update<'a> {
    data: &'a [Cell],
    new: &'a Image,
    key: &'a [Cell],
    old: &'a Image,
}

impl CellWriter<'_> {
    /// Fills in an INSERT. Returns the key of the row.
    fn inserted<'a>(&self, data: &[Cell], image: &'a mut Image, row: &mut Row<'a>, notes: &mut Notes) -> Read<Key> {
        self.complete(data, image, notes);
        let table = self.table;
        let key = self.key_in(&table.key_names, data, image)?;
        row.after = Some(&image.json);
        row.after_state = if table.is_declared { STATE_FULL } else { state(table, data, self.value) };
        Ok(key)
    }

    /// Fills in a DELETE. Returns the key of the row.
    fn deleted<'a>(&self, data: &[Cell], image: &'a Image, row: &mut Row<'a>) -> Read<Key> {
        let key = self.key_in(&self.table.key_names, data, image)?;
        row.before = Some(&image.json);
        row.before_state = state(self.table, data, self.value);
        Ok(key)
    }

    /// Fills in an UPDATE of a row with these key columns. Returns the key of the row.
    fn updated<'a>(
        &self,
        images: &Update<'a>,
        names: &[Vec<u8>],
        merged: &'a mut Vec<u8>,
        changed: &'a mut Vec<u8>,
        row: &mut Row<'a>,
    ) -> Read<Key> {
        let Update { data, new, key, old } = *images;
        let count = self.changed(data, new, key, old, changed)?;
        let old_at = |at: usize| value_of(&names[at], key, old, self.value);
        let row_key =
            Key::updated(names, |at| value_of(&names[at], data, new, self.value).or_else(|| old_at(at)), old_at)?;
        let columns = self.merge(data, new, key, old, merged);
        let is_full = self.table.is_declared && columns == self.table.columns.len();
        row.before = Some(&old.json);
        row.before_state = state_of(self.table, names, key, self.value);
        row.after = Some(&*merged);
        row.after_state = if is_full { STATE_FULL } else { STATE_MERGED };
        row.changed = Some((count, &*changed));
        Ok(row_key)
    }

    /// Returns the columns of `key` if the table declares no key and they must be the key: none changed, none is null.
    fn undeclared_key(&self, images: &Update<'_>, key_is_key: bool) -> Read<Option<Vec<Vec<u8>>>> {
        let Update { data, new, key, old } = *images;
        let declared = &self.table.key_names;
        if !declared.is_empty() {
            let is_sent = |wanted: &Vec<u8>| position(wanted, key, self.value).is_some();
            return if declared.iter().all(is_sent) { Ok(None) } else { Err(Reason::Key) };
        }
        let mut is_key = key_is_key;
        for (at, cell) in key.iter().enumerate() {
            let before = old.value(at);
            let after = value_of(cell.name.of(self.value), data, new, self.value);
            is_key = is_key && before != b"null" && !differs(after.unwrap_or(before), before)?;
        }
        Ok(is_key.then(|| key.iter().map(|cell| cell.name.of(self.value).to_vec()).collect()))
    }

    /// Returns the key of the row in the image of these cells.
    fn key_in(&self, names: &[Vec<u8>], cells: &[Cell], image: &Image) -> Read<Key> {
        Key::of(names, |at| value_of(&names[at], cells, image, self.value))
    }

    /// Adds the columns that a new row leaves out because they are NULL, which only a declaration reveals.
    fn complete(&self, cells: &[Cell], image: &mut Image, notes: &mut Notes) {
        if !self.table.is_declared || cells.len() == self.table.columns.len() {
            return;
        }
        let mut omitted = false;
        image.json.pop();
        let mut named = vec![false; self.table.columns.len()];
        for (expected, cell) in cells.iter().enumerate() {
            if let Ok(index) = self.table.column_of(cell, self.value, expected) {
                named[index] = true;
            }
        }
        for (column, is_named) in self.table.columns.iter().zip(named) {
            if !is_named && !self.table.key_names.contains(&column.quoted) {
                omitted = true;
                image.json.push(b',');
                image.json.extend_from_slice(&column.quoted);
                image.json.extend_from_slice(b":null");
            }
        }
        image.close();
        if omitted {
            notes.add(b"NULLS_OMITTED");
        }
    }

    /// Writes the names of the columns of `data` whose value in the key is different or missing. Returns their number.
    fn changed(&self, data: &[Cell], new: &Image, key: &[Cell], old: &Image, changed: &mut Vec<u8>) -> Read<i64> {
        changed.clear();
        let mut count = 0;
        for (index, cell) in data.iter().enumerate() {
            let name = cell.name.of(self.value);
            let is_new = match value_of(name, key, old, self.value) {
                None => true,
                Some(before) => differs(new.value(index), before)?,
            };
            if is_new {
                avro::text(changed, unquoted(name));
                count += 1;
            }
        }
        Ok(count)
    }

    /// Writes the after image: the key overlaid with the changes, then the other changes. Returns the number of columns
    /// in the image.
    fn merge(&self, data: &[Cell], new: &Image, key: &[Cell], old: &Image, merged: &mut Vec<u8>) -> usize {
        merged.clear();
        let mut columns = 0;
        let mut add = |name: &[u8], value: &[u8]| {
            merged.push(if columns == 0 { b'{' } else { b',' });
            merged.extend_from_slice(name);
            merged.push(b':');
            merged.extend_from_slice(value);
            columns += 1;
        };
        for (index, cell) in key.iter().enumerate() {
            let name = cell.name.of(self.value);
            add(name, position(name, data, self.value).map_or_else(|| old.value(index), |at| new.value(at)));
        }
        for (index, cell) in data.iter().enumerate() {
            if !holds(key, cell, self.value) {
                add(cell.name.of(self.value), new.value(index));
            }
        }
        merged.push(b'}');
        columns
    }
}
