//! Qlik Replicate: one row per message, with masks that show which of its columns were captured and which changed.
//!
//! The rules are those of `translator/dialects/qlik`.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::avro_read::DatumReader;
use crate::notes::Kept;
use crate::objects::{names, CellWriter};
use crate::output::{Form, Taken};
use crate::qlik_frames::{self as frames, Framed};
use crate::qlik_message::{self as message, Headers, Operation, QlikMessage, Sections};
use crate::qlik_rows::{RowReader, Rows};
use crate::qlik_tables::{Described, Tables, KEY_COLUMNS, KEY_SCHEMA_ID, VARIANT};
use crate::reason::{Read, Reason};
use crate::row::{Head, Place};
use crate::run::{self, Raw};
use crate::scan::{Cell, Scanner};

/// The headers that `ext` can contain, by name.
const CARRIED: [(&str, usize); 2] =
    [("streamPosition", message::STREAM_POSITION), ("externalSchemaId", message::EXTERNAL_SCHEMA_ID)];

/// The options of a source that matter here.
#[derive(FromPyObject)]
struct Options {
    /// The operations by their words, as JSON.
    words: HashMap<Vec<u8>, usize>,
    /// The metadata that a message refers to determines how it is read.
    waits: bool,
    /// The Kafka key identifies the table if no declaration does.
    key_is_table: bool,
    /// The headers to include in `ext`, in order.
    carried: Vec<String>,
    value_bytes: usize,
    columns: usize,
}

/// The message variant in which the Kafka key can also be in Confluent's frame.
const REGISTERED: &[u8] = b"confluent_avro";

/// Translates the common row messages of one source.
#[pyclass(module = "translator._native.rows")]
pub struct QlikRows {
    options: Options,
    form: Form,
    tables: Tables,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    sections: Sections,
    rows: Rows,
    name: Vec<u8>,
    key: Vec<Cell>,
    /// Used for a message in Avro.
    json: Vec<u8>,
}

/// The origin of messages.
struct Origin<'a> {
    topic: &'a [u8],
    place: &'a Place,
}

#[pymethods]
impl QlikRows {
    #[new]
    fn new(options: Options, form: &Bound<'_, PyAny>, compile: Py<PyAny>, lookup: Py<PyAny>) -> PyResult<Self> {
        Ok(Self { options, form: Form::of(form)?, tables: Tables::new(compile, lookup), scratch: Scratch::default() })
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
        self.tables.begin_run();
        let origin = Origin { topic: topic.as_bytes(), place: &place };
        let taken = run::take(py, messages, value_bytes, |raw| self.translated(py, &origin, raw, &mut scratch));
        self.scratch = scratch;
        taken
    }
}

impl QlikRows {
    fn translated(&mut self, py: Python<'_>, origin: &Origin<'_>, raw: &Raw<'_>, scratch: &mut Scratch) -> Read<Taken> {
        let Some(framed) = frames::open(raw.value)? else {
            return self.translated_json(py, origin, raw, raw.value, None, scratch);
        };
        let described = self.described_frame(&framed, origin.topic, raw.key);
        self.tables.find(py, &described, &mut scratch.name)?;
        let record = self.tables.known(&scratch.name)?.record.as_ref().ok_or(Reason::Layout)?;
        let (mut bytes, mut json) = (DatumReader::new(framed.message), std::mem::take(&mut scratch.json));
        json.clear();
        record.write(&mut bytes, &mut json)?;
        if !bytes.at_end() {
            return Err(Reason::Spelling);
        }
        let taken = self.translated_json(py, origin, raw, &json, Some(described), scratch);
        scratch.json = json;
        taken
    }

    /// Translates a message from its text. For a message in Avro, the frame was already described.
    fn translated_json(
        &mut self,
        py: Python<'_>,
        origin: &Origin<'_>,
        raw: &Raw<'_>,
        value: &[u8],
        described: Option<Described<'_>>,
        scratch: &mut Scratch,
    ) -> Read<Taken> {
        let sent = message::read(value, &mut scratch.sections)?;
        let number = *self.options.words.get(sent.headers.operation()).ok_or(Reason::Shape)?;
        let operation = *Operation::ALL.get(number).ok_or(Reason::Layout)?;
        let ext = self.carried(&sent.headers)?;
        let head = Head {
            offset: raw.offset,
            timestamp_ms: raw.timestamp_ms,
            native: sent.headers.change_sequence()?,
            commit_us: sent.headers.commit_us()?,
            capture_us: None,
            tx: sent.headers.transaction()?,
            rows: 1,
        };
        if scratch.sections.data.len().max(scratch.sections.before.len()) > self.options.columns {
            return Err(Reason::Size);
        }
        let described = match described {
            Some(described) => described,
            None => self.described(&sent, origin.topic, raw.key)?,
        };
        self.find_keyed(py, described, raw.key, scratch)?;
        let Scratch { sections, rows, name, .. } = scratch;
        let (row, before) = sections.rows(operation, value)?;
        let table = self.tables.known(name)?;
        let writer = CellWriter { py, value, table, convert_cell: &self.form.convert_cell };
        RowReader::new(writer, &sent.headers, operation)?.read(row, before, rows)?;
        let shared = &table.operations[usize::from(!rows.with_schema)][number];
        let shared = shared.as_ref().ok_or(Reason::Layout)?;
        let notes = rows.notes.written();
        let (mut row, mut all_notes) = (rows.told(table, operation, &notes, &ext), vec![]);
        rows.key.describe(&mut row, &mut all_notes);
        let mut records = self.form.records(py, origin.place, &head, shared);
        records.add(&row)?;
        Ok(records.taken(None))
    }

    /// Makes sure that the table of a message is known. If the table has no key, the Kafka key supplies one.
    fn find_keyed(&mut self, py: Python<'_>, described: Described<'_>, key: &[u8], scratch: &mut Scratch) -> Read<()> {
        self.tables.find(py, &described, &mut scratch.name)?;
        if !self.tables.known(&scratch.name)?.key_names.is_empty() {
            return Ok(());
        }
        let registered = frames::registry_id(key).filter(|_| described[VARIANT] == REGISTERED);
        let (part, content) = match registered {
            Some(schema_id) => (KEY_SCHEMA_ID, schema_id),
            None if key.starts_with(b"{") => (KEY_COLUMNS, names_of(key, &mut scratch.key)?),
            None => return Ok(()),
        };
        let mut keyed = described;
        keyed[part] = &content;
        self.tables.find(py, &keyed, &mut scratch.name)
    }

    /// Returns the headers for `ext`, in Avro.
    fn carried(&self, headers: &Headers<'_>) -> Read<Vec<u8>> {
        let mut kept = Kept::default();
        for name in &self.options.carried {
            let (_, header) = CARRIED.iter().find(|(known, _)| known == name).ok_or(Reason::Layout)?;
            let text = headers.text(*header)?;
            if !text.is_empty() {
                kept.add(name.as_bytes(), text);
            }
        }
        Ok(kept.written())
    }

    fn described<'a>(&self, sent: &QlikMessage<'a>, topic: &'a [u8], key: &'a [u8]) -> Read<Described<'a>> {
        let variant = if sent.is_enveloped { &b"enveloped_json"[..] } else { b"bare_json" };
        if self.options.waits && !sent.schema_id.is_empty() {
            return Ok([variant, sent.schema_id, b"", b"", b"", b"", b"", b""]);
        }
        let key = self.naming(key);
        let (schema, table) = (sent.headers.text(message::SCHEMA)?, sent.headers.text(message::TABLE)?);
        Ok([variant, b"", topic, key, schema, table, b"", b""])
    }

    /// Describes the frame of a record. Its headers, which can identify the table, are not read yet.
    fn described_frame<'a>(&self, framed: &'a Framed<'_>, topic: &'a [u8], key: &'a [u8]) -> Described<'a> {
        if framed.is_registered {
            return [REGISTERED, &framed.schema_id, topic, self.naming(key), b"", b"", b"", b""];
        }
        [b"enveloped_avro", &framed.schema_id, b"", b"", b"", b"", b"", b""]
    }

    /// Returns the Kafka key if it identifies the table.
    fn naming<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        if self.options.key_is_table {
            key
        } else {
            b""
        }
    }
}

/// Returns the columns in a JSON Kafka key, as a JSON array.
fn names_of(key: &[u8], cells: &mut Vec<Cell>) -> Read<Vec<u8>> {
    let mut scanner = Scanner::new(key).map_err(|_| Reason::Key)?;
    scanner.object(cells).map_err(|_| Reason::Key)?;
    if cells.is_empty() || !scanner.at_end() || cells.iter().any(|cell| cell.value.odd) {
        return Err(Reason::Key);
    }
    names(cells, key).map_err(|_| Reason::Key)
}
