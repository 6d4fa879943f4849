//! A run of messages of one partition, and the result of each.

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::output::Taken;
use crate::reason::{Read, Reason};
use crate::scan::without_blanks;

/// The maximum number of milliseconds that fit into 64 bits as microseconds.
pub const MAX_MS: i64 = i64::MAX / 1000;

/// A message as stored in its partition.
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    /// Its offset.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Any bytes. Empty if the message has no value.
    pub key: &'a [u8],
    /// Empty if the message has no key.
    pub value: &'a [u8],
}

/// Returns for each message `Taken`, or the reason why it was not translated.
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
        // State that a panic left incomplete is overwritten for the next message.
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

/// The messages of one operation in a run.
struct Total {
    operation: Py<PyAny>,
    messages: usize,
    rows: usize,
    /// The commit time of the last message that has one, and the place of that message in the run.
    committed: Option<(usize, i64)>,
}

/// `OperationTotal`: a `TableOperation`, its number of messages and rows, and their last commit time.
type OperationTotal = (Py<PyAny>, usize, usize, Option<i64>);

/// Returns the totals of each operation, in the order of the messages with the last commit times. Messages that were not
/// translated do not count.
#[pyfunction]
pub fn totals(py: Python<'_>, run: &Bound<'_, PyList>) -> PyResult<Vec<OperationTotal>> {
    let mut totals: Vec<Total> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    for (number, taken) in run.iter().enumerate() {
        let Ok(taken) = taken.downcast::<Taken>() else { continue };
        let taken = taken.try_borrow()?;
        let place = *places.entry(taken.operation.as_ptr() as usize).or_insert_with(|| {
            totals.push(Total { operation: taken.operation.clone_ref(py), messages: 0, rows: 0, committed: None });
            totals.len() - 1
        });
        let total = &mut totals[place];
        total.messages += 1;
        total.rows += taken.rows;
        total.committed = taken.ts_commit_us.map(|time| (number, time)).or(total.committed);
    }
    totals.sort_by_key(|total| total.committed.map(|(number, _)| number));
    let fields = |total: Total| (total.operation, total.messages, total.rows, total.committed.map(|(_, time)| time));
    Ok(totals.into_iter().map(fields).collect())
}

/// Returns the records for an output from messages that were all translated, in order.
#[pyfunction]
pub fn records<'py>(py: Python<'py>, run: &Bound<'py, PyList>, output: usize) -> PyResult<Bound<'py, PyList>> {
    let records = PyList::empty(py);
    for taken in run {
        taken.downcast::<Taken>()?.try_borrow()?.outputs[output].append_to(&records)?;
    }
    Ok(records)
}

/// Translates a JSON message whose reader supports no white space. A message with white space is shortened first.
pub fn translate_json(raw: &Raw<'_>, mut translate: impl FnMut(&Raw<'_>) -> Read<Taken>) -> Read<Taken> {
    match translate(raw) {
        // A reader that expects another token may have met white space.
        Err(reason @ (Reason::Spelling | Reason::Shape)) => {
            let value = without_blanks(raw.value).ok_or(reason)?;
            translate(&Raw { value: &value, ..*raw })
        }
        translated => translated,
    }
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
