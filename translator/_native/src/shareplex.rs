//! SharePlex JSON: one row per message, with the columns that changed and the key of the row before.
//!
//! The rules are those of `translator/dialects/shareplex`.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::avro;
use crate::event::{
    key_of, Head, Image, Place, Row, Transaction, KIND_NONE, KIND_UNIQUE, STATE_FULL, STATE_KEY, STATE_MERGED,
    STATE_NONE, STATE_PARTIAL,
};
use crate::notes::{Kept, Notes};
use crate::objects::{are_key, differs, distinct, holds, position, text, unquoted, value_of, CellWriter};
use crate::output::{Form, Taken};
use crate::reason::{Read, Reason};
use crate::run::{self, Raw};
use crate::scan::{count, Cell, Scanner, Token};
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

/// The members of `meta`. Texts include their quotes.
#[derive(Default)]
struct Meta<'a> {
    op: &'a [u8],
    table: &'a [u8],
    time: Option<&'a [u8]>,
    posttime: Option<&'a [u8]>,
    scn: Option<&'a [u8]>,
    host: &'a [u8],
    trans: Option<&'a [u8]>,
    seq: Option<i64>,
    size: Option<i64>,
    idx: Option<&'a [u8]>,
    userid: Option<&'a [u8]>,
    rowid: Option<&'a [u8]>,
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
        let taken = run::take(py, messages, value_bytes, |raw| self.translated(py, &place, raw, &mut scratch));
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
        let row_key;
        match kind {
            INSERT => {
                writer.complete(data, data_image, &mut notes);
                row_key = key_of(&table.key_names, |at| value_of(&table.key_names[at], data, data_image, value))?;
                row.after = Some(&data_image.json);
                row.after_state = if table.is_declared { STATE_FULL } else { state(table, data, value) };
            }
            DELETE => {
                row_key = key_of(&table.key_names, |at| value_of(&table.key_names[at], data, data_image, value))?;
                row.before = Some(&data_image.json);
                row.before_state = state(table, data, value);
            }
            _ => {
                writer.image(key, key_image)?;
                let count = writer.changed(data, data_image, key, key_image, changed)?;
                let own: Vec<Vec<u8>>;
                let names = if table.key_names.is_empty() {
                    // The columns of `key` must be the key if none of them changed and none is null.
                    let mut is_key = self.options.key_is_key;
                    for (at, cell) in key.iter().enumerate() {
                        let old = key_image.value(at);
                        let new = value_of(cell.name.of(value), data, data_image, value);
                        is_key = is_key && old != b"null" && !differs(new.unwrap_or(old), old)?;
                    }
                    own = if is_key { key.iter().map(|cell| cell.name.of(value).to_vec()).collect() } else { vec![] };
                    if is_key {
                        notes.add(b"KEY_FROM_MESSAGE");
                        row.key_kind = KIND_UNIQUE;
                    }
                    &own
                } else {
                    if table.key_names.iter().any(|wanted| position(wanted, key, value).is_none()) {
                        return Err(Reason::Key);
                    }
                    &table.key_names
                };
                for wanted in names {
                    // A key that changes leaves a previous key.
                    if let (Some(new), Some(old)) = (position(wanted, data, value), position(wanted, key, value)) {
                        if data_image.value(new) != key_image.value(old) {
                            return Err(Reason::Key);
                        }
                    }
                }
                row_key = key_of(names, |at| value_of(&names[at], key, key_image, value))?;
                let columns = writer.merge(data, data_image, key, key_image, merged);
                row.before = Some(&key_image.json);
                row.before_state = state_of(table, names, key, value);
                row.after = Some(&*merged);
                row.after_state =
                    if table.is_declared && columns == table.columns.len() { STATE_FULL } else { STATE_MERGED };
                row.changed = Some((count, &*changed));
            }
        }
        if row_key.is_none() {
            notes.add(b"KEY_UNDECLARED");
            row.key_kind = KIND_NONE;
        }
        let notes = notes.written();
        row.key = row_key.as_deref();
        row.notes = &notes;
        let records = self.form.records(py, place, &head, operation);
        records.add(&row)?;
        records.taken(PyList::empty(py))
    }

    /// Returns the times of a message in microseconds, the note about their zone, and the texts to keep, in Avro.
    #[allow(clippy::type_complexity)] // told apart by the one caller
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

/// Reads all members of a message. No member may be repeated or unknown. Returns whether there is a `key`.
fn members<'a>(value: &'a [u8], data: &mut Vec<Cell>, key: &mut Vec<Cell>) -> Read<(Meta<'a>, bool)> {
    let mut scanner = Scanner::new(value)?;
    let mut found = None;
    let mut seen = 0u8;
    let mut has_key = false;
    data.clear();
    key.clear();
    scanner.expect(b'{')?;
    loop {
        let member = match scanner.string()?.of(value) {
            b"\"meta\"" => {
                scanner.expect(b':')?;
                found = Some(read_meta(&mut scanner, value)?);
                1
            }
            b"\"data\"" => {
                scanner.expect(b':')?;
                scanner.object(data)?;
                2
            }
            b"\"key\"" => {
                scanner.expect(b':')?;
                if !scanner.take(b"null") {
                    scanner.object(key)?;
                    has_key = !key.is_empty();
                }
                4
            }
            _ => return Err(Reason::Shape),
        };
        if seen & member != 0 {
            return Err(Reason::Shape);
        }
        seen |= member;
        scanner.blanks();
        if !scanner.more(b'}')? {
            break;
        }
    }
    // `key` belongs to updates. An empty one in other operations is rare.
    if !scanner.at_end() || seen & 3 != 3 || (seen & 4 != 0 && !has_key) {
        return Err(Reason::Shape);
    }
    distinct(data, value)?;
    distinct(key, value)?;
    Ok((found.ok_or(Reason::Shape)?, has_key))
}

fn read_meta<'a>(scanner: &mut Scanner<'a>, value: &'a [u8]) -> Read<Meta<'a>> {
    let mut meta = Meta { host: b"", ..Meta::default() };
    let mut seen = 0u16;
    scanner.expect(b'{').map_err(|_| Reason::Shape)?;
    loop {
        let name = scanner.string()?;
        scanner.expect(b':')?;
        let token = scanner.any_scalar()?;
        let sent = token.of(value);
        let member = match name.of(value) {
            b"\"op\"" => {
                meta.op = text(token, value)?;
                0
            }
            b"\"table\"" => {
                meta.table = text(token, value)?;
                1
            }
            b"\"time\"" => {
                meta.time = Some(text(token, value)?);
                2
            }
            b"\"posttime\"" => {
                meta.posttime = Some(text(token, value)?);
                3
            }
            b"\"scn\"" => {
                meta.scn = Some(word(token, value)?);
                4
            }
            b"\"host\"" => {
                meta.host = text(token, value)?;
                5
            }
            b"\"trans\"" => {
                meta.trans = Some(word(token, value)?);
                6
            }
            b"\"seq\"" => {
                meta.seq = Some(count(sent)?);
                7
            }
            b"\"size\"" => {
                meta.size = Some(count(sent)?);
                8
            }
            b"\"idx\"" => {
                meta.idx = Some(text(token, value)?);
                9
            }
            b"\"userid\"" => {
                meta.userid = Some(word(token, value)?);
                10
            }
            b"\"rowid\"" => {
                meta.rowid = Some(text(token, value)?);
                11
            }
            _ => return Err(Reason::Shape),
        };
        if seen & (1 << member) != 0 {
            return Err(Reason::Shape);
        }
        seen |= 1 << member;
        if !scanner.more(b'}')? {
            break;
        }
    }
    if meta.op.is_empty() || meta.table.len() <= 2 || meta.host == b"\"\"" {
        return Err(Reason::Shape);
    }
    Ok(meta)
}

/// A non-empty string, or a whole number.
fn word(token: Token, value: &[u8]) -> Read<&[u8]> {
    let sent = token.of(value);
    if sent[0] == b'"' {
        return if sent.len() > 2 { text(token, value) } else { Err(Reason::Shape) };
    }
    let digits = sent.strip_prefix(b"-").unwrap_or(sent);
    if token.odd || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Reason::Shape);
    }
    Ok(sent)
}

/// Returns the transaction. Contradictory sizes are left to the plain path.
fn transaction<'a>(meta: &Meta<'a>) -> Read<Option<Transaction<'a>>> {
    let Some(trans) = meta.trans else {
        let counts = meta.seq.is_some() || meta.size.is_some() || meta.idx.is_some();
        return if counts { Err(Reason::Shape) } else { Ok(None) };
    };
    let whole = match (meta.seq, meta.size) {
        (Some(seq), Some(size)) => Some((seq, size)),
        _ => None,
    };
    if let Some(idx) = meta.idx {
        let (seq, size) = whole.ok_or(Reason::Shape)?;
        if unquoted(idx) != format!("{seq}/{size}").as_bytes() {
            return Err(Reason::Shape);
        }
    }
    if whole.is_some_and(|(seq, size)| seq > size) {
        return Err(Reason::Shape);
    }
    let last = whole.map(|(seq, size)| seq == size);
    Ok(Some(Transaction { id: unquoted(trans), seq: meta.seq, size: meta.size, last }))
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

impl CellWriter<'_> {
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

    /// Writes the row after: the key overlaid with the changes, then the other changes. Returns its number of columns.
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
