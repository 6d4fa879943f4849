//! A run of messages of one partition, and what became of each.

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::output::Taken;
use crate::reason::{Read, Reason};

/// Milliseconds of which the microseconds fit 64 bits.
pub const MAX_MS: i64 = i64::MAX / 1000;

/// A message as it lay in its partition.
pub struct Raw<'a> {
    /// Its place.
    pub offset: i64,
    /// Since 1970.
    pub timestamp_ms: i64,
    /// Any bytes; empty where there is none.
    pub key: &'a [u8],
    /// Empty where there is none.
    pub value: &'a [u8],
}

/// For each message `Taken`, or the reason why it is not.
pub fn take<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyList>,
    value_bytes: usize,
    mut translate: impl FnMut(&Raw<'_>) -> Read<Taken>,
) -> PyResult<Bound<'py, PyList>> {
    let results = PyList::empty(py);
    for message in messages {
        let value: Option<Bound<'py, PyBytes>> = message.getattr(intern!(py, "value"))?.extract()?;
        let key: Option<Bound<'py, PyBytes>> = message.getattr(intern!(py, "key"))?.extract()?;
        let raw = Raw {
            offset: message.getattr(intern!(py, "offset"))?.extract()?,
            timestamp_ms: message.getattr(intern!(py, "timestamp_ms"))?.extract()?,
            key: key.as_ref().map(|key| key.as_bytes()).unwrap_or_default(),
            value: value.as_ref().map(|value| value.as_bytes()).unwrap_or_default(),
        };
        // What a panic leaves half done is written anew for the next message.
        let taken = catch_unwind(AssertUnwindSafe(|| {
            check(&raw, value_bytes)?;
            translate(&raw)
        }));
        match taken.unwrap_or(Err(Reason::Panic)) {
            Ok(taken) => results.append(Bound::new(py, taken)?)?,
            Err(reason) => results.append(PyString::intern(py, reason.label()))?,
        }
    }
    Ok(results)
}

fn check(raw: &Raw<'_>, value_bytes: usize) -> Read<()> {
    if raw.value.len() > value_bytes {
        return Err(Reason::Size);
    }
    if raw.timestamp_ms.unsigned_abs() > MAX_MS.unsigned_abs() || raw.offset < 0 {
        return Err(Reason::Shape);
    }
    Ok(())
}
