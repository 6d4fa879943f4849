//! The bytes before an Avro datum, which identify its schema.

use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::reason::{Read, Reason};

/// A header that Python finds when it is first needed.
pub struct Header {
    find: Py<PyAny>,
    found: OnceLock<Vec<u8>>,
}

impl<'py> FromPyObject<'py> for Header {
    fn extract_bound(python: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self { find: python.clone().unbind(), found: OnceLock::new() })
    }
}

impl Header {
    /// Returns the header. A schema that the registry does not know yet has none.
    pub fn bytes(&self, py: Python<'_>) -> Read<&[u8]> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let found = self.find.bind(py).call0().and_then(|found| found.extract()).map_err(|_| Reason::Projection)?;
        Ok(self.found.get_or_init(|| found))
    }
}
