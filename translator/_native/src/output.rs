//! The Kafka records of a message for every output of its source: keys and headers as in `translator/codecs/record.py`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::continuity::Evidence;
use crate::debezium::{Projected, Projection};
use crate::event::datum;
use crate::python_event::Classes;
use crate::reason::{Read, Reason};
use crate::row::{Head, Place, Row};
use crate::table::Operation;

/// The size of a header, as computed by `record_size`.
const HEADER_OVERHEAD: usize = 10;
const ID_HEADER: &str = "cdc-id";
const UNAVAILABLE_HEADER: &str = "cdc-unavailable";

/// A translated message.
#[pyclass(frozen, module = "translator._native.rows")]
pub struct Taken {
    /// The `TableOperation` of its rows.
    #[pyo3(get)]
    operation: Py<PyAny>,
    /// A list of `Record` for each output that is written here.
    #[pyo3(get)]
    outputs: Py<PyList>,
    /// A `ChangeEvent` for each row, if Python encodes an output.
    #[pyo3(get)]
    events: Py<PyList>,
    /// Microseconds since 1970, if known.
    #[pyo3(get)]
    pub ts_commit_us: Option<i64>,
    /// The evidence for the continuity check, if it is on.
    pub evidence: Option<Evidence>,
}

/// The parts that all records of a source share.
pub struct Form {
    /// The header before the datum of the canonical topic. None if Python encodes that topic.
    header: Option<Vec<u8>>,
    /// Creates events, if Python encodes an output.
    events: Option<Classes>,
    /// The name of the source.
    source: String,
    /// Maximum size of a record, as computed by `record_size`.
    max_record: usize,
    /// The outputs other than the canonical topic.
    projections: Vec<Projection>,
    /// The class of a record, called with key, value and headers.
    record: Py<PyAny>,
    /// Converts a cell, given its text and its converter.
    pub convert_cell: Py<PyAny>,
    /// Converts a cell in bytes with another encoding, given its bytes and its converter.
    pub convert_bytes: Py<PyAny>,
    id_header: Py<PyString>,
}

impl Form {
    /// Reads a `RecordForm`.
    pub fn of(form: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            header: form.getattr("header")?.extract()?,
            events: form.getattr("events")?.extract()?,
            source: form.getattr("source")?.extract()?,
            max_record: form.getattr("max_record")?.extract()?,
            projections: form.getattr("projections")?.extract()?,
            record: form.getattr("record")?.unbind(),
            convert_cell: form.getattr("convert_cell")?.unbind(),
            convert_bytes: form.getattr("convert_bytes")?.unbind(),
            id_header: PyString::intern(form.py(), ID_HEADER).unbind(),
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
        let projected = self.projections.iter().map(|_| PyList::empty(py)).collect();
        Records {
            py,
            form: self,
            place,
            head,
            operation,
            canonical: PyList::empty(py),
            projected,
            events: PyList::empty(py),
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
    canonical: Bound<'a, PyList>,
    projected: Vec<Bound<'a, PyList>>,
    events: Bound<'a, PyList>,
}

/// The headers of a record, and its size without key and value.
struct Headers<'a> {
    list: Bound<'a, PyList>,
    size: usize,
}

impl<'a> Records<'a> {
    /// Adds the records of a row for every output.
    pub fn add(&self, row: &Row<'_>) -> Read<()> {
        let id = self.place.id(self.head, row);
        let headers = self.headers(&id)?;
        if let Some(header) = &self.form.header {
            let value = datum(header, self.place, self.head, self.operation, row, &id);
            let mut key = row.record_key.to_vec();
            if let Some(own) = row.key {
                key.push(b',');
                key.extend_from_slice(own);
            }
            key.push(b']');
            self.append(&self.canonical, Some(&key), Some(&value), &headers, self.form.max_record)?;
        }
        if let Some(classes) = &self.form.events {
            let event = classes.event(self.py, self.place, self.head, self.operation, row, &id)?;
            self.events.append(event).map_err(|_| Reason::Panic)?;
        }
        let projections = self.form.projections.iter().zip(&self.operation.projections);
        for ((projection, projected), records) in projections.zip(&self.projected) {
            self.project(projection, projected, row, &headers, records)?;
        }
        Ok(())
    }

    /// Adds the records of a row for a projection.
    fn project(
        &self,
        projection: &Projection,
        projected: &Projected,
        row: &Row<'_>,
        headers: &Headers<'a>,
        records: &Bound<'a, PyList>,
    ) -> Read<()> {
        for event in projection.events(self.py, self.place, self.head, projected, row)? {
            let unavailable = event.unavailable.as_ref().map(|names| (UNAVAILABLE_HEADER, &names[..]));
            let other_key = event.other_key.as_ref().map(|(name, key)| (*name, &key[..]));
            let more = [unavailable, other_key];
            let all =
                more.iter().any(Option::is_some).then(|| self.with(headers, more.into_iter().flatten())).transpose()?;
            let headers = all.as_ref().unwrap_or(headers);
            let key = event.key.as_deref();
            self.append(records, key, Some(&event.value), headers, projection.max_record)?;
            if event.has_tombstone {
                self.append(records, key, None, headers, projection.max_record)?;
            }
        }
        Ok(())
    }

    /// Returns the result for the message, with the evidence for the continuity check.
    pub fn taken(self, evidence: Option<Evidence>) -> Read<Taken> {
        let canonical = self.form.header.as_ref().map(|_| self.canonical);
        let outputs = PyList::new(self.py, canonical).map_err(|_| Reason::Panic)?;
        for records in self.projected {
            outputs.append(records).map_err(|_| Reason::Panic)?;
        }
        Ok(Taken {
            operation: self.operation.python.clone_ref(self.py),
            outputs: outputs.unbind(),
            events: self.events.unbind(),
            ts_commit_us: self.head.commit_us,
            evidence,
        })
    }

    fn append(
        &self,
        records: &Bound<'a, PyList>,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &Headers<'_>,
        max_record: usize,
    ) -> Read<()> {
        let size = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
        if size(key) + size(value) + headers.size > max_record {
            return Err(Reason::Size);
        }
        let bytes = |part: Option<&[u8]>| part.map(|part| PyBytes::new(self.py, part));
        let parts = (bytes(key), bytes(value), &headers.list);
        let record = self.form.record.bind(self.py).call1(parts).map_err(|_| Reason::Panic)?;
        records.append(record).map_err(|_| Reason::Panic)
    }

    /// Returns these headers and more.
    fn with<'b>(
        &self,
        headers: &Headers<'a>,
        more: impl Iterator<Item = (&'static str, &'b [u8])>,
    ) -> Read<Headers<'a>> {
        let list = PyList::new(self.py, headers.list.iter()).map_err(|_| Reason::Panic)?;
        let mut size = headers.size;
        for (name, value) in more {
            list.append((name, PyBytes::new(self.py, value))).map_err(|_| Reason::Panic)?;
            size += name.len() + value.len() + HEADER_OVERHEAD;
        }
        Ok(Headers { list, size })
    }

    /// Returns the headers of an event with this `id`.
    fn headers(&self, id: &[u8]) -> Read<Headers<'a>> {
        let py = self.py;
        let own = (self.form.id_header.bind(py), PyBytes::new(py, id));
        let own = own.into_pyobject(py).map_err(|_| Reason::Panic)?.into_any();
        let shared = |headers: &'a [Py<PyAny>]| headers.iter().map(move |header| header.bind(py).clone());
        let all = shared(&self.operation.first_headers).chain([own]).chain(shared(&self.operation.last_headers));
        let list = all.collect::<Vec<_>>();
        let list = PyList::new(py, list).map_err(|_| Reason::Panic)?;
        Ok(Headers { list, size: self.operation.fixed_size + id.len() })
    }
}
