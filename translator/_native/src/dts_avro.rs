//! Alibaba DTS in Avro: records of rows, and the meaning of their images.
//!
//! The rules are those of `translator/dialects/dts_avro`.

use memchr::memmem;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::avro;
use crate::dts_cells::{Cell, CellWriter};
use crate::dts_record::{Bounds, Record};
use crate::output::{Form, Taken};
use crate::reason::{Read, Reason};
use crate::row::{Head, Image, Place, Row, STATE_KEY, STATE_NONE, STATE_PARTIAL};
use crate::row_key::Key;
use crate::run::{self, Raw};
use crate::table::{Operation, Table, Tables};

// The row operations, by their position in the options.
const UPDATE: usize = 1;
const DELETE: usize = 2;

/// The options of a source that matter here.
#[derive(FromPyObject)]
struct Options {
    /// The ordinals of the row operations.
    operations: Vec<usize>,
    /// The number of operations.
    all_operations: usize,
    /// The number of source types.
    source_types: usize,
    /// The ordinals of sources with a binlog.
    binlog_sources: Vec<usize>,
    /// The accepted spellings of UTF-8.
    utf8_charsets: Vec<Vec<u8>>,
    /// The tags that identify the table instead of the record.
    name_tags: Vec<Vec<u8>>,
    /// Keep the values that fit no field of an event.
    extras: bool,
    value_bytes: usize,
    columns: usize,
}

/// Translates the common row messages of one source.
#[pyclass(module = "translator._native.rows")]
pub struct DtsAvroRows {
    options: Options,
    form: Form,
    /// Tables compiled from a whole message, cached by the columns alone.
    tables: Tables,
    /// Tables compiled from a whole message, cached by the columns and by the list of columns that their cells
    /// contradict.
    contrary_tables: Tables,
    scratch: Scratch,
}

/// Memory that is reused for each message.
#[derive(Default)]
struct Scratch {
    description: Vec<u8>,
    contrary: Vec<u8>,
    withheld: Vec<u8>,
    before: Image,
    after: Image,
}

#[pymethods]
impl DtsAvroRows {
    #[new]
    fn new(
        options: Options,
        form: &Bound<'_, PyAny>,
        compile: Py<PyAny>,
        compile_contrary: Py<PyAny>,
    ) -> PyResult<Self> {
        Ok(Self {
            options,
            form: Form::of(form)?,
            tables: Tables::new(compile),
            contrary_tables: Tables::new(compile_contrary),
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

impl DtsAvroRows {
    fn translated(&mut self, py: Python<'_>, place: &Place, raw: &Raw<'_>, scratch: &mut Scratch) -> Read<Taken> {
        let options = &self.options;
        let record = Record::read(raw.value, &options.bounds())?;
        let kind = options.operations.iter().position(|ordinal| *ordinal == record.operation).ok_or(Reason::Shape)?;
        let has_before = kind == UPDATE || kind == DELETE;
        if record.before.is_some() != has_before || record.after.is_none() != (kind == DELETE) {
            return Err(Reason::Shape);
        }
        let Scratch { description, contrary, withheld, before, after } = scratch;
        options.describe(&record, description);
        let mut table = self.tables.of(py, description, &[raw.value])?;
        find_contrary(table, &record, contrary)?;
        if !contrary.is_empty() {
            description.append(contrary);
            table = self.contrary_tables.of(py, description, &[raw.value])?;
        }
        let operation = table.operations[usize::from(record.born.is_some())][kind].as_ref().ok_or(Reason::Layout)?;
        let cells = CellWriter { py, utf8_charsets: &options.utf8_charsets, convert_bytes: &self.form.convert_bytes };
        write(record.before.as_deref(), table, &cells, before, None)?;
        write(record.after.as_deref(), table, &cells, after, Some(before))?;
        let old = if has_before { &*before } else { &*after };
        let (sent, new) = if kind == DELETE { (&record.before, &*before) } else { (&record.after, &*after) };
        let key = key(table, old, new)?;
        let ext = options.ext(&record);
        let unavailable = find_withheld(table, sent.as_deref().unwrap_or_default(), withheld);
        let mut row = Row {
            index: 0,
            record_key: &table.record_key,
            key: None,
            key_old: None,
            key_kind: &table.key_kind,
            before: record.before.is_some().then_some(&before.json),
            after: record.after.is_some().then_some(&after.json),
            before_state: state(table, operation, record.before.as_deref()),
            after_state: state(table, operation, record.after.as_deref()),
            changed: None,
            unavailable: (unavailable > 0).then_some((unavailable, withheld)),
            notes: &operation.notes,
            ext: &ext,
        };
        let mut notes = vec![];
        key.describe(&mut row, &mut notes);
        let head = head(&record, raw);
        let mut records = self.form.records(py, place, &head, operation);
        records.add(&row)?;
        Ok(records.taken(None))
    }
}

impl Options {
    fn bounds(&self) -> Bounds {
        Bounds { source_types: self.source_types, operations: self.all_operations, columns: self.columns }
    }

    /// Writes everything that determines how to read a record's rows, and who wrote the record.
    fn describe(&self, record: &Record<'_>, description: &mut Vec<u8>) {
        description.clear();
        avro::long(description, record.source_type as i64);
        // Positions with `<->` come from a reader of physical logs, which writes different fractions.
        description.push(u8::from(memmem::find(record.position, b"<->").is_some()));
        avro::text(description, record.object_name);
        for name in [&b"pk_uk_info"[..], b"server_id"] {
            avro::maybe_text(description, record.tag(name));
        }
        for name in &self.name_tags {
            avro::maybe_text(description, record.tag(name));
        }
        description.extend_from_slice(record.columns);
    }

    fn ext(&self, record: &Record<'_>) -> Vec<u8> {
        if self.extras {
            record.extras(self.binlog_sources.contains(&record.source_type))
        } else {
            vec![avro::NULL]
        }
    }
}

fn head<'a>(record: &Record<'a>, raw: &Raw<'_>) -> Head<'a> {
    Head {
        offset: raw.offset,
        timestamp_ms: raw.timestamp_ms,
        native: Some(record.position).filter(|position| !position.is_empty()),
        commit_us: record.commit_us(),
        capture_us: record.capture_us(),
        tx: record.transaction(),
        rows: 1,
    }
}

/// Writes the text or bytes columns whose cells differ in kind from the table.
fn find_contrary(table: &Table, record: &Record<'_>, contrary: &mut Vec<u8>) -> Read<()> {
    let images = [&record.before, &record.after];
    contrary.clear();
    for (index, column) in table.columns.iter().enumerate().filter(|(_, column)| column.is_open) {
        let mut told = images.into_iter().flatten().filter_map(|cells| cells[index].tells());
        let Some(kind) = told.next() else { continue };
        if told.any(|other| other != kind) {
            return Err(Reason::Cell);
        }
        if kind != column.reader.kind {
            avro::long(contrary, index as i64);
        }
    }
    Ok(())
}

/// Writes an image. A cell that was also sent in the other image is copied.
fn write(
    cells: Option<&[Cell<'_>]>,
    table: &Table,
    writer: &CellWriter<'_>,
    image: &mut Image,
    other: Option<&Image>,
) -> Read<()> {
    image.clear();
    let Some(cells) = cells else { return Ok(()) };
    for (index, (cell, column)) in cells.iter().zip(&table.columns).enumerate() {
        if cell.is_withheld() {
            image.leave_out();
            continue;
        }
        image.add(&column.quoted, |json| match other {
            Some(other) if cell.is_repeated => {
                json.extend_from_slice(other.value(index));
                Ok(())
            }
            _ => writer.write(cell, json, &column.reader),
        })?;
    }
    image.close();
    Ok(())
}

/// Writes the names of the columns that an image lacks as Avro texts, and returns how many there are.
fn find_withheld(table: &Table, cells: &[Cell<'_>], names: &mut Vec<u8>) -> i64 {
    names.clear();
    let mut count = 0;
    for (_, column) in cells.iter().zip(&table.columns).filter(|(cell, _)| cell.is_withheld()) {
        names.extend_from_slice(&column.avro_name);
        count += 1;
    }
    count
}

/// The state of an image, in Avro.
fn state<'a>(table: &Table, operation: &'a Operation, cells: Option<&[Cell<'_>]>) -> &'a [u8] {
    let Some(cells) = cells else { return STATE_NONE };
    let there = cells.iter().filter(|cell| !cell.is_withheld()).count();
    if there == cells.len() {
        return &operation.state;
    }
    let has_key = table.key.iter().all(|index| !cells[*index].is_withheld());
    if has_key && there == table.key.len() && there > 0 {
        STATE_KEY
    } else {
        STATE_PARTIAL
    }
}

/// Returns the key of a row. A withheld key column is left to the plain path.
fn key(table: &Table, before: &Image, row: &Image) -> Read<Key> {
    if table.key.iter().any(|index| before.value(*index).is_empty()) {
        return Err(Reason::Key);
    }
    let new_at = |at: usize| Some(row.value(table.key[at])).filter(|value| !value.is_empty());
    Key::updated(&table.key_names, new_at, |at| Some(before.value(table.key[at])))
}
