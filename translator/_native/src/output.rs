//! The Kafka records of a message for every output of its source: keys and headers as in `translator/codecs/record.py`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::continuity::Evidence;
use crate::debezium::{DebeziumOperation, Event};
use crate::event::datum;
use crate::header::Header;
use crate::json_output::JsonOperation;
use crate::python_event::Classes;
use crate::reason::{Read, Reason};
use crate::record::NativeRecord;
use crate::row::{Head, Place, Row};
use crate::table::Operation;
use crate::upsert::UpsertOperation;

/// The size of a header, as computed by `record_size`.
const HEADER_OVERHEAD: usize = 10;
const UNAVAILABLE_HEADER: &str = "cdc-unavailable";

/// A translated message.
#[pyclass(module = "translator._native.rows")]
pub struct Taken {
    /// The `TableOperation` of its rows.
    #[pyo3(get)]
    pub operation: Py<PyAny>,
    /// The number of its rows.
    #[pyo3(get)]
    pub rows: usize,
    /// The records for each output.
    pub outputs: Vec<OutputRecords>,
    /// A `ChangeEvent` for each row, if Python encodes an output.
    events: Vec<Py<PyAny>>,
    /// Microseconds since 1970, if known.
    #[pyo3(get)]
    pub ts_commit_us: Option<i64>,
    /// The evidence for the continuity check, if it is on.
    pub evidence: Option<Evidence>,
}

/// A message's records for one output.
pub enum OutputRecords {
    Native(Vec<Py<NativeRecord>>),
    /// A list of `Record` from a codec in Python.
    Python(Py<PyList>),
}

impl OutputRecords {
    /// Appends the records to a list.
    pub fn append_to(&self, list: &Bound<'_, PyList>) -> PyResult<()> {
        let py = list.py();
        match self {
            Self::Native(records) => records.iter().try_for_each(|record| list.append(record)),
            Self::Python(records) => records.bind(py).iter().try_for_each(|record| list.append(record)),
        }
    }
}

#[pymethods]
impl Taken {
    /// A list of records for each output.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let outputs = PyList::empty(py);
        for records in &self.outputs {
            let list = PyList::empty(py);
            records.append_to(&list)?;
            outputs.append(list)?;
        }
        Ok(outputs)
    }

    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.events.iter().map(|event| event.bind(py)))
    }

    /// Inserts the records for an output that Python encodes.
    fn insert(&mut self, output: usize, records: Py<PyList>) {
        self.outputs.insert(output, OutputRecords::Python(records));
    }
}

/// The parts that all records of a source share.
pub struct Form {
    /// Creates events, if Python encodes an output.
    events: Option<Classes>,
    /// The name of the source.
    source: String,
    /// Maximum size of a record, as computed by `record_size`, for each output that is written here.
    max_records: Vec<usize>,
    /// Converts a cell, given its text and its converter.
    pub convert_cell: Py<PyAny>,
    /// Converts a cell in bytes with another encoding, given its bytes and its converter.
    pub convert_bytes: Py<PyAny>,
}

impl Form {
    /// Reads a `RecordForm`.
    pub fn of(form: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            events: form.getattr("events")?.extract()?,
            source: form.getattr("source")?.extract()?,
            max_records: form.getattr("max_records")?.extract()?,
            convert_cell: form.getattr("convert_cell")?.unbind(),
            convert_bytes: form.getattr("convert_bytes")?.unbind(),
        })
    }

    /// The parts that all events of a raw partition share.
    pub fn place(&self, topic: &str, partition: i64, topic_id: &str) -> Place {
        Place::of(&self.source, topic, partition, topic_id)
    }

    /// The records of a message. Its rows are added in order.
    pub fn records<'a>(
        &'a self,
        py: Python<'a>,
        place: &'a Place,
        head: &'a Head<'a>,
        operation: &'a Operation,
    ) -> Records<'a> {
        let outputs = self.max_records.iter().map(|_| Vec::with_capacity(1)).collect();
        Records { py, form: self, place, head, operation, rows: 0, outputs, events: Vec::new() }
    }
}

/// The parts that the records of one operation share, in one output.
pub enum OutputOperation {
    Avro(AvroOperation),
    Json(JsonOperation),
    Debezium(DebeziumOperation),
    Upsert(UpsertOperation),
}

/// The parts that the datums of one operation share.
#[derive(FromPyObject)]
pub struct AvroOperation {
    header: Header,
    /// Key changes become two events, which is not supported.
    splits_key_changes: bool,
}

impl OutputOperation {
    fn splits_key_changes(&self) -> bool {
        match self {
            Self::Avro(avro) => avro.splits_key_changes,
            Self::Json(json) => json.splits_key_changes,
            Self::Debezium(_) | Self::Upsert(_) => false,
        }
    }
}

impl<'py> FromPyObject<'py> for OutputOperation {
    fn extract_bound(python: &Bound<'py, PyAny>) -> PyResult<Self> {
        match python.get_type().name()?.to_str()? {
            "AvroOperation" => python.extract().map(Self::Avro),
            "JsonOperation" => python.extract().map(Self::Json),
            "UpsertOperation" => python.extract().map(Self::Upsert),
            _ => python.extract().map(Self::Debezium),
        }
    }
}

/// The records of one message.
pub struct Records<'a> {
    py: Python<'a>,
    form: &'a Form,
    place: &'a Place,
    head: &'a Head<'a>,
    operation: &'a Operation,
    rows: usize,
    outputs: Vec<Vec<Py<NativeRecord>>>,
    events: Vec<Py<PyAny>>,
}

impl Records<'_> {
    /// Adds the records of a row for every output.
    pub fn add(&mut self, row: &Row<'_>) -> Read<()> {
        self.rows += 1;
        let id = self.place.id(self.head, row);
        if let Some(classes) = &self.form.events {
            let event = classes.event(self.py, self.place, self.head, self.operation, row, &id)?;
            self.events.push(event.unbind());
        }
        for (number, operation) in self.operation.outputs.iter().enumerate() {
            match operation {
                None => {}
                Some(operation) if row.key_old.is_some() && operation.splits_key_changes() => {
                    return Err(Reason::Projection);
                }
                Some(OutputOperation::Avro(avro)) => {
                    let value = datum(avro.header.bytes(self.py)?, self.place, self.head, self.operation, row, &id);
                    self.append(number, Some(row.whole_key()), Some(value), &id, Vec::new())?;
                }
                Some(OutputOperation::Json(json)) => {
                    let value = json.value(self.place, self.head, row, &id)?;
                    self.append(number, Some(row.whole_key()), Some(value), &id, Vec::new())?;
                }
                Some(OutputOperation::Debezium(debezium)) => {
                    self.add_events(number, debezium.events(self.py, self.place, self.head, row)?, &id)?;
                }
                Some(OutputOperation::Upsert(upsert)) => {
                    self.add_events(number, upsert.events(self.py, row)?, &id)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the events of a row to a projection.
    fn add_events(&mut self, output: usize, events: Vec<Event>, id: &[u8]) -> Read<()> {
        for event in events {
            let unavailable = event.unavailable.map(|names| (UNAVAILABLE_HEADER, names));
            let more: Vec<_> = unavailable.into_iter().chain(event.other_key).collect();
            if event.has_tombstone {
                self.append(output, event.key.clone(), event.value, id, more.clone())?;
                self.append(output, event.key, None, id, more)?;
            } else {
                self.append(output, event.key, event.value, id, more)?;
            }
        }
        Ok(())
    }

    /// Returns the result for the message, with the evidence for the continuity check.
    pub fn taken(self, evidence: Option<Evidence>) -> Taken {
        Taken {
            operation: self.operation.python.clone_ref(self.py),
            rows: self.rows,
            outputs: self.outputs.into_iter().map(OutputRecords::Native).collect(),
            events: self.events,
            ts_commit_us: self.head.commit_us,
            evidence,
        }
    }

    fn append(
        &mut self,
        output: usize,
        key: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
        id: &[u8],
        more: Vec<(&'static str, Vec<u8>)>,
    ) -> Read<()> {
        let size = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len);
        let headers: usize = more.iter().map(|(name, value)| name.len() + value.len() + HEADER_OVERHEAD).sum();
        let size = size(&key) + size(&value) + self.operation.fixed_size + id.len() + headers;
        if size > self.form.max_records[output] {
            return Err(Reason::Size);
        }
        let shared = Arc::clone(&self.operation.headers);
        let record = NativeRecord { key, value, shared, id: id.to_vec(), more };
        self.outputs[output].push(Py::new(self.py, record).map_err(|_| Reason::Panic)?);
        Ok(())
    }
}
