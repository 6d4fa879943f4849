//! Converts DTS cells, by the union branch of each, to canonical values as JSON.
//!
//! The common cells are the ones that `translator/dialects/dts_avro/fast_path.py` reads.

use pyo3::prelude::*;

use crate::avro_read::DatumReader;
use crate::cells::{self, Kind, Reader};
use crate::dts_times::{components, local, moment, zoned, Components};
use crate::json;
use crate::reason::{Read, Reason};

// The branches of a cell, in the order of the schema.
const NULL: usize = 0;
const INTEGER: usize = 1;
const CHARACTER: usize = 2;
const DECIMAL: usize = 3;
const FLOAT: usize = 4;
const TIMESTAMP: usize = 5;
const DATE_TIME: usize = 6;
const TIMESTAMP_WITH_TIME_ZONE: usize = 7;
const BINARY_GEOMETRY: usize = 8;
const TEXT_GEOMETRY: usize = 9;
const BINARY_OBJECT: usize = 10;
const TEXT_OBJECT: usize = 11;
const EMPTY_OBJECT: usize = 12;
const BRANCHES: usize = 13;

// The symbols of EmptyObject.
const WITHHELD: usize = 1;
const EMPTY_OBJECTS: usize = 2;

/// A cell of an image.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    /// All of its bytes.
    pub sent: &'a [u8],
    /// The other image contains the same cell.
    pub is_repeated: bool,
    value: Value<'a>,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Null,
    Integer(&'a [u8]),
    Character {
        charset: &'a [u8],
        text: &'a [u8],
    },
    Decimal(&'a [u8]),
    Float(f64),
    Timestamp {
        seconds: i64,
        micros: i32,
    },
    DateTime(Components),
    Zoned {
        parts: Components,
        zone: &'a [u8],
    },
    Bytes(&'a [u8]),
    Text(&'a [u8]),
    /// Only the converter can read the cell.
    Geometry,
    /// The source did not send the value.
    Withheld,
}

impl<'a> Cell<'a> {
    /// Reads a cell.
    #[inline]
    pub fn read(datum: &mut DatumReader<'a>) -> Read<Self> {
        let start = datum.at();
        let value = match datum.index(BRANCHES)? {
            NULL => Value::Null,
            INTEGER => {
                datum.int()?; // precision
                Value::Integer(datum.text()?)
            }
            CHARACTER => Value::Character { charset: datum.text()?, text: datum.bytes()? },
            DECIMAL => {
                let number = datum.text()?;
                skip_precision_and_scale(datum)?;
                Value::Decimal(number)
            }
            FLOAT => {
                let number = datum.double()?;
                skip_precision_and_scale(datum)?;
                Value::Float(number)
            }
            TIMESTAMP => Value::Timestamp { seconds: datum.long()?, micros: datum.int()? },
            DATE_TIME => Value::DateTime(components(datum)?),
            TIMESTAMP_WITH_TIME_ZONE => Value::Zoned { parts: components(datum)?, zone: datum.text()? },
            BINARY_GEOMETRY => {
                datum.text()?; // type
                datum.bytes()?;
                Value::Geometry
            }
            TEXT_GEOMETRY => {
                datum.text()?; // type
                datum.text()?;
                Value::Geometry
            }
            BINARY_OBJECT => {
                datum.text()?; // type
                Value::Bytes(datum.bytes()?)
            }
            TEXT_OBJECT => {
                datum.text()?; // type
                Value::Text(datum.text()?)
            }
            EMPTY_OBJECT if datum.index(EMPTY_OBJECTS)? == WITHHELD => Value::Withheld,
            // A null that gets a note.
            _ => return Err(Reason::Cell),
        };
        Ok(Self { sent: datum.since(start), is_repeated: false, value })
    }

    /// Returns the same cell of the other image.
    pub fn repeated(self) -> Self {
        Self { is_repeated: true, ..self }
    }

    /// Returns whether the source did not send the value.
    #[inline]
    pub fn is_withheld(&self) -> bool {
        matches!(self.value, Value::Withheld)
    }

    /// Returns the kind of a column with this cell, if only the column's cells distinguish text from bytes
    /// (`kinds.py`).
    pub fn tells(&self) -> Option<Kind> {
        match self.value {
            Value::Character { charset, .. } if charset.eq_ignore_ascii_case(b"binary") => Some(Kind::Bytes),
            Value::Character { .. } | Value::Text(_) => Some(Kind::Text),
            Value::Bytes(_) => Some(Kind::Bytes),
            _ => None,
        }
    }
}

/// Writes the cells of one source.
pub struct CellWriter<'a> {
    /// The token for calling converters.
    pub py: Python<'a>,
    /// The accepted spellings of UTF-8.
    pub utf8_charsets: &'a [Vec<u8>],
    /// Creates a canonical value from a cell and its converter.
    pub convert_bytes: &'a Py<PyAny>,
}

impl CellWriter<'_> {
    /// Appends the canonical value of a cell.
    #[inline]
    pub fn write(&self, cell: &Cell<'_>, out: &mut Vec<u8>, column: &Reader) -> Read<()> {
        let kind = column.kind;
        let is_common = match cell.value {
            Value::Null => {
                out.extend_from_slice(b"null");
                true
            }
            Value::Integer(digits) => integer(out, digits, kind),
            Value::Character { charset, text: sent } => {
                self.is_utf8(charset) && std::str::from_utf8(sent).is_ok() && text(out, sent, kind)
            }
            Value::Decimal(sent) | Value::Text(sent) => text(out, sent, kind),
            Value::Float(number) => cells::write_float(out, number, kind),
            Value::Timestamp { seconds, micros } => moment(out, seconds, micros, kind),
            Value::DateTime(parts) => local(out, parts, kind),
            Value::Zoned { parts, zone } => zoned(out, parts, zone, kind),
            Value::Bytes(sent) => bytes(out, sent, kind),
            Value::Geometry | Value::Withheld => false,
        };
        if is_common {
            return Ok(());
        }
        column.convert(self.py, out, cell.sent, self.convert_bytes)
    }

    fn is_utf8(&self, charset: &[u8]) -> bool {
        self.utf8_charsets.iter().any(|name| name == charset)
    }
}

fn skip_precision_and_scale(datum: &mut DatumReader<'_>) -> Read<()> {
    datum.int()?;
    datum.int()?;
    Ok(())
}

// The following functions, like those of `dts_times`, append the canonical value of a branch in a column of a kind.
// They return false and write nothing if the value has to be converted.

fn integer(out: &mut Vec<u8>, digits: &[u8], kind: Kind) -> bool {
    let is_number = matches!(
        kind,
        Kind::Integer { .. } | Kind::Uint64 | Kind::Decimal { .. } | Kind::Number | Kind::Text | Kind::Unknown
    );
    is_number && cells::integer(digits).is_some() && cells::write_text(out, digits, kind)
}

fn text(out: &mut Vec<u8>, sent: &[u8], kind: Kind) -> bool {
    if matches!(kind, Kind::Text | Kind::Unknown | Kind::Verbatim | Kind::Json) {
        json::text(out, sent);
        return true;
    }
    cells::write_text(out, sent, kind)
}

fn bytes(out: &mut Vec<u8>, sent: &[u8], kind: Kind) -> bool {
    match kind {
        Kind::Bytes => json::base64(out, sent),
        Kind::Json if std::str::from_utf8(sent).is_ok() => json::text(out, sent),
        _ => return false,
    }
    true
}
