//! A Kafka record that the extension made: `Record` in `translator/codecs/record.py`.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// The name of the header that differs between the records of an operation.
pub const ID_HEADER: &str = "cdc-id";

/// A header's name and value.
pub type RecordHeader<'a> = (&'a str, Option<&'a [u8]>);

/// The headers that the records of an operation share.
#[derive(Default)]
pub struct SharedHeaders {
    /// Those before the id.
    first: Vec<(String, Option<Vec<u8>>)>,
    /// Those after the id.
    last: Vec<(String, Option<Vec<u8>>)>,
}

impl SharedHeaders {
    /// Reads the headers of a `TableOperation`.
    pub fn of(operation: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            first: operation.getattr("first_headers")?.extract()?,
            last: operation.getattr("last_headers")?.extract()?,
        })
    }
}

/// A record, with the attributes of `Record`.
///
/// Its bytes become Python objects only if Python asks for them. Usually, they go to librdkafka directly.
#[pyclass(frozen, module = "translator._native.rows")]
pub struct NativeRecord {
    /// None if the record has no key.
    pub key: Option<Vec<u8>>,
    /// None for a tombstone.
    pub value: Option<Vec<u8>>,
    /// The headers that differ only between operations.
    pub shared: Arc<SharedHeaders>,
    /// The value of the header `ID_HEADER`.
    pub id: Vec<u8>,
    /// The headers after all others.
    pub more: Vec<(&'static str, Vec<u8>)>,
}

impl NativeRecord {
    /// The headers, in order.
    pub fn all_headers(&self) -> impl Iterator<Item = RecordHeader<'_>> {
        fn parts((name, value): &(String, Option<Vec<u8>>)) -> RecordHeader<'_> {
            (name, value.as_deref())
        }
        let id = (ID_HEADER, Some(&self.id[..]));
        let more = self.more.iter().map(|(name, value)| (*name, Some(&value[..])));
        self.shared.first.iter().map(parts).chain([id]).chain(self.shared.last.iter().map(parts)).chain(more)
    }
}

#[pymethods]
impl NativeRecord {
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.key.as_ref().map(|key| PyBytes::new(py, key))
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.value.as_ref().map(|value| PyBytes::new(py, value))
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let headers = self.all_headers().map(|(name, value)| (name, value.map(|value| PyBytes::new(py, value))));
        PyList::new(py, headers.collect::<Vec<_>>())
    }

    /// A `Record` with the same parts is equal.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = other.py();
        Ok(self.key(py).into_pyobject(py)?.eq(other.getattr(intern!(py, "key"))?)?
            && self.value(py).into_pyobject(py)?.eq(other.getattr(intern!(py, "value"))?)?
            && self.headers(py)?.eq(other.getattr(intern!(py, "headers"))?)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let parts = (self.key(py), self.value(py), self.headers(py)?).into_pyobject(py)?;
        Ok(format!("NativeRecord{}", parts.repr()?))
    }
}
