//! The `ChangeEvent` of a row, for the outputs that Python encodes.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::IntoPyObjectExt;

use crate::avro_read::DatumReader;
use crate::event::ENVELOPE_VERSION;
use crate::reason::{Read, Reason};
use crate::row::{Head, Place, Row, ARRIVAL};
use crate::table::Operation;

/// The classes of an event and of two of its fields. They are called with all fields in order.
#[derive(FromPyObject)]
pub struct Classes {
    event: Py<PyAny>,
    origin: Py<PyAny>,
    transaction: Py<PyAny>,
}

impl Classes {
    /// Creates the event for a row.
    pub fn event<'py>(
        &self,
        py: Python<'py>,
        place: &Place,
        head: &Head<'_>,
        operation: &Operation,
        row: &Row<'_>,
        id: &[u8],
    ) -> Read<Bound<'py, PyAny>> {
        let text = |text: &[u8]| text_of(py, text);
        let maybe = |text: Option<&[u8]>| text.map_or_else(|| Ok(none(py)), |text| text_of(py, text));
        let names =
            |names: Option<(i64, &[u8])>| names.map_or_else(|| Ok(none(py)), |(count, names)| listed(py, count, names));
        let number = |number: Option<i64>| object(py, number);
        let origin = (&place.topic, place.partition, head.offset, row.index, head.rows);
        let mut fields = Vec::with_capacity(36);
        fields.extend([object(py, ENVELOPE_VERSION)?, text(id)?]);
        fields.extend(operation.event_names.iter().map(|name| name.bind(py).clone()));
        fields.extend([
            object(py, position(head, row))?,
            first_text(py, &place.pos_scope)?,
            maybe(head.native)?,
            number(head.commit_us)?,
            number(head.capture_us)?,
            object(py, head.timestamp_ms * 1000)?,
            maybe(row.key)?,
            maybe(row.key_old)?,
            first_text(py, row.key_kind)?,
            maybe(row.before)?,
            maybe(row.after)?,
            first_text(py, row.before_state)?,
            first_text(py, row.after_state)?,
            names(row.changed)?,
            names(row.unavailable)?,
            none(py), // issues
            operation.event_schema_id.bind(py).clone(),
            self.transaction(py, head)?,
            none(py), // ddl
            self.origin.bind(py).call1(origin).map_err(|_| Reason::Panic)?,
            notes(py, row.notes)?,
            kept(py, row.ext)?,
        ]);
        let fields = PyTuple::new(py, fields).map_err(|_| Reason::Panic)?;
        self.event.bind(py).call1(fields).map_err(|_| Reason::Panic)
    }

    fn transaction<'py>(&self, py: Python<'py>, head: &Head<'_>) -> Read<Bound<'py, PyAny>> {
        let Some(tx) = &head.tx else { return Ok(none(py)) };
        let fields = (text_of(py, tx.id)?, tx.seq, tx.size, tx.last);
        self.transaction.bind(py).call1(fields).map_err(|_| Reason::Panic)
    }
}

/// The `pos` of an event.
fn position(head: &Head<'_>, row: &Row<'_>) -> String {
    String::from_utf8_lossy(ARRIVAL).into_owned() + &row.place_in(head)
}

fn none(py: Python<'_>) -> Bound<'_, PyAny> {
    py.None().into_bound(py)
}

fn object<'py>(py: Python<'py>, value: impl IntoPyObject<'py>) -> Read<Bound<'py, PyAny>> {
    value.into_bound_py_any(py).map_err(|_| Reason::Panic)
}

fn text_of<'py>(py: Python<'py>, text: &[u8]) -> Read<Bound<'py, PyAny>> {
    let text = std::str::from_utf8(text).map_err(|_| Reason::Spelling)?;
    Ok(PyString::new(py, text).into_any())
}

/// A text in Avro.
fn first_text<'py>(py: Python<'py>, avro: &[u8]) -> Read<Bound<'py, PyAny>> {
    text_of(py, DatumReader::new(avro).bytes()?)
}

/// A list of texts, given their number and the texts in Avro.
fn listed<'py>(py: Python<'py>, count: i64, avro: &[u8]) -> Read<Bound<'py, PyAny>> {
    let mut reader = DatumReader::new(avro);
    let texts = (0..count).map(|_| text_of(py, reader.bytes()?)).collect::<Read<Vec<_>>>()?;
    Ok(PyList::new(py, texts).map_err(|_| Reason::Panic)?.into_any())
}

/// A list of texts, given as an Avro array in a union with null.
fn notes<'py>(py: Python<'py>, avro: &[u8]) -> Read<Bound<'py, PyAny>> {
    let mut reader = DatumReader::new(avro);
    if reader.index(2)? == 0 {
        return Ok(none(py));
    }
    let list = PyList::empty(py);
    reader.items(usize::MAX, |item| list.append(text_of(py, item.bytes()?)?).map_err(|_| Reason::Panic))?;
    Ok(list.into_any())
}

/// Texts by name, given as an Avro map in a union with null.
fn kept<'py>(py: Python<'py>, avro: &[u8]) -> Read<Bound<'py, PyAny>> {
    let mut reader = DatumReader::new(avro);
    if reader.index(2)? == 0 {
        return Ok(none(py));
    }
    let texts = PyDict::new(py);
    reader.items(usize::MAX, |entry| {
        let (name, text) = (text_of(py, entry.bytes()?)?, text_of(py, entry.bytes()?)?);
        texts.set_item(name, text).map_err(|_| Reason::Panic)
    })?;
    Ok(texts.into_any())
}
