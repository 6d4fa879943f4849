//! Debezium's envelope as Avro with a schema registry, as in `translator/codecs/debezium_avro.py` and
//! `translator/codecs/debezium/avro_types.py`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::avro;
use crate::blocks::{shape_of_key, Column};
use crate::debezium::{names, ordinal, DebeziumOperation, Part};
use crate::header::Header;
use crate::json;
use crate::reason::{Read, Reason};
use crate::row::{Head, Place, Row, STATE_KEY, STATE_NONE};
use crate::scan::{Cell, Scanner};

/// Maximum number of cached tables per operation. Beyond it, the cache is cleared.
const KEPT: usize = 16;

/// The schemas of one table, by the types of its key.
pub struct AvroTables {
    /// Returns a `NativeAvroTable` for a key as JSON, or for no key.
    find: Py<PyAny>,
    /// Only the key of a row is written, because the types of its other columns are not known.
    key_only: bool,
    kept: Mutex<HashMap<Vec<u8>, Arc<AvroTable>>>,
}

/// A table with one schema and one set of key types.
#[derive(FromPyObject)]
pub struct AvroTable {
    key_header: Header,
    value_header: Header,
    key: Vec<AvroColumn>,
    /// The columns of a row, in the order of the schema.
    columns: Vec<AvroColumn>,
}

struct AvroColumn {
    /// As JSON.
    name: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Text,
    Bytes,
    Decimal { precision: u32, scale: u32 },
}

impl<'py> FromPyObject<'py> for AvroTables {
    fn extract_bound(python: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (find, key_only) = (python.getattr("find")?.unbind(), python.getattr("key_only")?.extract()?);
        Ok(Self { find, key_only, kept: Mutex::default() })
    }
}

impl<'py> FromPyObject<'py> for AvroColumn {
    fn extract_bound(python: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (name, kind, precision, scale): (Vec<u8>, String, u32, u32) = python.extract()?;
        let kind = match &kind[..] {
            "boolean" => Kind::Boolean,
            "int" => Kind::Int,
            "long" => Kind::Long,
            "float" => Kind::Float,
            "double" => Kind::Double,
            "string" => Kind::Text,
            "bytes" => Kind::Bytes,
            "decimal" => Kind::Decimal { precision, scale },
            _ => return Err(PyValueError::new_err(format!("unknown Avro type {kind:?}"))),
        };
        Ok(Self { name, kind })
    }
}

impl AvroTables {
    /// Returns the row as it is written.
    pub fn reduced<'a>(&self, row: &Row<'a>) -> Row<'a> {
        if !self.key_only {
            return *row;
        }
        let before_state = if row.key.is_some() { STATE_KEY } else { STATE_NONE };
        Row { before: row.key, before_state, ..*row }
    }

    /// Returns the table for the key of a row. A key change that also changes the types of the key is not supported.
    pub fn of(&self, py: Python<'_>, columns: &[Column], row: &Row<'_>) -> Read<Arc<AvroTable>> {
        let shape = row.key.map(|key| shape_of_key(columns, key)).transpose()?.unwrap_or_default();
        if let Some(old) = row.key_old {
            if shape_of_key(columns, old)? != shape {
                return Err(Reason::Projection);
            }
        }
        let mut kept = self.kept.lock().map_err(|_| Reason::Panic)?;
        if let Some(table) = kept.get(&shape) {
            return Ok(table.clone());
        }
        let key = row.key.map(|key| PyBytes::new(py, key));
        let found = self.find.bind(py).call1((key,)).and_then(|found| found.extract());
        let table: Arc<AvroTable> = Arc::new(found.map_err(|_| Reason::Projection)?);
        if kept.len() == KEPT {
            kept.clear();
        }
        kept.insert(shape, table.clone());
        Ok(table)
    }
}

impl AvroTable {
    /// Returns the record key for the key of a row.
    pub fn key(&self, py: Python<'_>, key: &[u8]) -> Read<Vec<u8>> {
        let mut out = self.key_header.bytes(py)?.to_vec();
        let cells = cells(key)?;
        for column in &self.key {
            let cell = cells.iter().find(|cell| cell.name.of(key) == column.name).ok_or(Reason::Projection)?;
            column.kind.write(&mut out, cell.value.of(key))?;
        }
        Ok(out)
    }

    /// Returns the record value for one event.
    pub fn value(
        &self,
        py: Python<'_>,
        operation: &DebeziumOperation,
        place: &Place,
        head: &Head<'_>,
        row: &Row<'_>,
        part: &Part<'_>,
    ) -> Read<Vec<u8>> {
        let images = part.before.map_or(0, <[u8]>::len) + part.after.map_or(0, <[u8]>::len);
        let mut out = Vec::with_capacity(images + 512);
        out.extend_from_slice(self.value_header.bytes(py)?);
        // Columns that are not in the schema are left out of the old image only.
        self.write_image(&mut out, part.before, true)?;
        self.write_image(&mut out, part.after, false)?;
        out.extend_from_slice(&operation.source);
        avro::text(&mut out, &place.sequence(head, row));
        avro::long(&mut out, ordinal(head, row, part));
        match head.commit_us {
            None => out.extend_from_slice(&[avro::NULL; 3]),
            Some(us) => {
                avro::maybe_long(&mut out, Some(us.div_euclid(1000)));
                avro::maybe_long(&mut out, Some(us));
                avro::maybe_long(&mut out, us.checked_mul(1000));
            }
        }
        out.extend_from_slice(&operation.origin);
        match &head.tx {
            None => out.push(avro::NULL),
            Some(tx) => {
                out.push(avro::SOME);
                avro::text(&mut out, tx.id);
                avro::maybe_long(&mut out, tx.seq);
            }
        }
        write_text(&mut out, part.op)?;
        let us = head.captured_us();
        avro::long(&mut out, us.div_euclid(1000));
        avro::long(&mut out, us);
        avro::maybe_long(&mut out, us.checked_mul(1000));
        match part.key {
            None => out.push(avro::NULL),
            Some(key) => {
                let (names, mut texts) = (names(key)?, Vec::new());
                names.iter().try_for_each(|name| write_text(&mut texts, name))?;
                out.push(avro::SOME);
                avro::block(&mut out, names.len() as i64, &texts);
            }
        }
        Ok(out)
    }

    fn write_image(&self, out: &mut Vec<u8>, image: Option<&[u8]>, has_strangers: bool) -> Read<()> {
        let Some(image) = image else {
            out.push(avro::NULL);
            return Ok(());
        };
        out.push(avro::SOME);
        let cells = cells(image)?;
        // The columns of an image are usually in the order of the schema.
        let (mut expected, mut written) = (0, 0);
        for column in &self.columns {
            let is_here = |index: &usize| cells[*index].name.of(image) == column.name;
            let Some(index) = (expected..cells.len()).chain(0..expected).find(is_here) else {
                out.push(avro::NULL);
                continue;
            };
            (expected, written) = (index + 1, written + 1);
            match cells[index].value.of(image) {
                b"null" => out.push(avro::NULL),
                value => {
                    out.push(avro::SOME);
                    column.kind.write(out, value)?;
                }
            }
        }
        if written < cells.len() && !has_strangers {
            return Err(Reason::Projection);
        }
        Ok(())
    }
}

fn cells(object: &[u8]) -> Read<Vec<Cell>> {
    let mut cells = Vec::with_capacity(16);
    Scanner::new(object)?.object(&mut cells).map_err(|_| Reason::Projection)?;
    Ok(cells)
}

impl Kind {
    /// Appends a JSON scalar. Values that the type cannot hold, and values in a rare form, are not supported.
    fn write(self, out: &mut Vec<u8>, value: &[u8]) -> Read<()> {
        match self {
            Self::Boolean => out.push(match value {
                b"true" => 1,
                b"false" => 0,
                _ => return Err(Reason::Projection),
            }),
            Self::Int => avro::long(out, i64::from(number::<i32>(value)?)),
            Self::Long => avro::long(out, number(value)?),
            Self::Float => {
                let float = number::<f64>(value)? as f32;
                if !float.is_finite() {
                    return Err(Reason::Projection);
                }
                out.extend_from_slice(&float.to_le_bytes());
            }
            Self::Double => out.extend_from_slice(&finite(value)?.to_le_bytes()),
            Self::Text if value[0] != b'"' => avro::text(out, value),
            Self::Text => write_text(out, value)?,
            Self::Bytes => {
                let bytes = json::from_base64(inside(value)?).ok_or(Reason::Projection)?;
                avro::text(out, &bytes);
            }
            Self::Decimal { precision, scale } => {
                let unscaled = unscaled(inside(value)?, scale).ok_or(Reason::Projection)?;
                if 10u128.checked_pow(precision).is_some_and(|limit| unscaled.unsigned_abs() >= limit) {
                    return Err(Reason::Projection);
                }
                let bits = 128 - (unscaled ^ (unscaled >> 127)).leading_zeros() as usize;
                avro::text(out, &unscaled.to_be_bytes()[15 - bits / 8..]);
            }
        }
        Ok(())
    }
}

/// Returns a number. Texts and numbers in another notation are not supported.
fn number<T: std::str::FromStr>(value: &[u8]) -> Read<T> {
    let is_number = matches!(value[0], b'-' | b'0'..=b'9');
    let text = std::str::from_utf8(value).ok().filter(|_| is_number);
    text.and_then(|text| text.parse().ok()).ok_or(Reason::Projection)
}

fn finite(value: &[u8]) -> Read<f64> {
    number(value).and_then(|float: f64| if float.is_finite() { Ok(float) } else { Err(Reason::Projection) })
}

/// Returns the content of a JSON text without escapes.
fn inside(value: &[u8]) -> Read<&[u8]> {
    let text = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    text.filter(|text| !text.contains(&b'\\')).ok_or(Reason::Projection)
}

/// Appends a JSON text as an Avro text.
fn write_text(out: &mut Vec<u8>, quoted: &[u8]) -> Read<()> {
    match inside(quoted) {
        Ok(text) => avro::text(out, text),
        Err(_) => avro::text(out, &json::unescaped(quoted).ok_or(Reason::Projection)?),
    }
    Ok(())
}

/// Returns a decimal number in units of its scale, if they are whole and have few digits.
fn unscaled(text: &[u8], scale: u32) -> Option<i128> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = point.map_or((digits, &b""[..]), |at| (&digits[..at], &digits[at + 1..]));
    if whole.is_empty() || (point.is_some() && fraction.is_empty()) {
        return None;
    }
    let mut number = 0i128;
    for byte in whole.iter().chain(fraction) {
        let digit = char::from(*byte).to_digit(10)?;
        number = number.checked_mul(10)?.checked_add(i128::from(digit))?;
    }
    let places = u32::try_from(fraction.len()).ok()?;
    let unit = 10i128.checked_pow(scale.abs_diff(places))?;
    let number = match places <= scale {
        true => number.checked_mul(unit)?,
        false if number % unit == 0 => number / unit,
        false => return None,
    };
    Some(if digits.len() < text.len() { -number } else { number })
}
