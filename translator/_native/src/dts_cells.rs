//! Cells of Alibaba's DTS, by the branch of the union that each is sent in, to canonical values as JSON.
//!
//! What is common is what `translator/dialects/dts_avro/fast_path.py` reads without a second look.

use pyo3::prelude::*;

use crate::avro_read::DatumReader;
use crate::calendar::{self, Clock, Day};
use crate::cells::{self, Kind, Reader};
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

/// Digits of `Timestamp.millis`, which are micros whatever the source.
const MICROS: u32 = 6;
/// The first second of the year 10000.
const YEAR_10000: i64 = 253_402_300_800;

/// The components of a time, from year to fraction, as far as they are there.
type Components = [Option<i32>; 7];

/// A cell of an image.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    /// All bytes of it.
    pub sent: &'a [u8],
    /// The same was sent in the other image.
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
    /// The converter alone reads it.
    Geometry,
    Withheld,
}

impl<'a> Cell<'a> {
    /// Takes a cell.
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
            // A null that is noted.
            _ => return Err(Reason::Cell),
        };
        Ok(Self { sent: datum.since(start), is_repeated: false, value })
    }

    /// The same cell in the other image.
    pub fn repeated(self) -> Self {
        Self { is_repeated: true, ..self }
    }

    /// Whether the source did not send the value.
    #[inline]
    pub fn is_withheld(&self) -> bool {
        matches!(self.value, Value::Withheld)
    }

    /// The kind of a column that holds this cell, where nothing but its cells tells text and bytes apart (`kinds.py`).
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
    pub py: Python<'a>,
    /// The names of UTF-8.
    pub utf8_charsets: &'a [Vec<u8>],
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

fn components(datum: &mut DatumReader<'_>) -> Read<Components> {
    let mut parts = [None; 7];
    for part in &mut parts {
        if datum.index(2)? == 1 {
            *part = Some(datum.int()?);
        }
    }
    Ok(parts)
}

// Each of the following appends the canonical value of a branch in a column of a kind; false, with nothing written, where
// that has to be converted.

fn integer(out: &mut Vec<u8>, digits: &[u8], kind: Kind) -> bool {
    let is_number =
        matches!(kind, Kind::Integer { .. } | Kind::Uint64 | Kind::Decimal { .. } | Kind::Number | Kind::Text);
    is_number && cells::integer(digits).is_some() && cells::write_text(out, digits, kind)
}

fn text(out: &mut Vec<u8>, sent: &[u8], kind: Kind) -> bool {
    if matches!(kind, Kind::Text | Kind::Verbatim | Kind::Json) {
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

fn moment(out: &mut Vec<u8>, seconds: i64, micros: i32, kind: Kind) -> bool {
    // MySQL's zero date is the second 0.
    let is_common = matches!(kind, Kind::Instant { .. }) && (1..YEAR_10000).contains(&seconds) && fits(micros, MICROS);
    if is_common {
        write_moment(out, seconds, micros, MICROS);
    }
    is_common
}

fn local(out: &mut Vec<u8>, parts: Components, kind: Kind) -> bool {
    let date = day(&parts);
    let time = clock(&parts);
    let fraction = parts[6].unwrap_or(0);
    let has_no_date = parts[..3] == [None; 3];
    let has_no_time = parts[3..] == [None; 4];
    match (kind, date, time) {
        (Kind::Date, Some(date), None) if has_no_time => {
            quoted(out, |out| date.write(out));
        }
        (Kind::Timestamp { digits }, Some(date), Some(time)) if fits(fraction, digits) => {
            quoted(out, |out| write_local(out, date, time, fraction, digits));
        }
        (Kind::Time { digits, .. }, None, Some(time)) if has_no_date && fits(fraction, digits) => {
            quoted(out, |out| {
                time.write(out);
                calendar::fraction(out, fraction, digits);
            });
        }
        _ => return false,
    }
    true
}

fn zoned(out: &mut Vec<u8>, parts: Components, zone: &[u8], kind: Kind) -> bool {
    let fraction = parts[6].unwrap_or(0);
    let (Kind::Instant { digits }, Some(date), Some(time), Some(ahead)) =
        (kind, day(&parts), clock(&parts), ahead(zone))
    else {
        return false;
    };
    let seconds = calendar::seconds_of(date, time) - ahead;
    let is_common = fits(fraction, digits) && calendar::local_of(seconds).0.is_valid();
    if is_common {
        write_moment(out, seconds, fraction, digits);
    }
    is_common
}

fn day(parts: &Components) -> Option<Day> {
    let day = Day { year: parts[0]?.into(), month: parts[1]?.into(), day: parts[2]?.into() };
    day.is_valid().then_some(day)
}

fn clock(parts: &Components) -> Option<Clock> {
    let clock = Clock { hour: parts[3]?.into(), minute: parts[4]?.into(), second: parts[5]?.into() };
    clock.is_valid().then_some(clock)
}

/// Whether a fraction has so many digits at the most.
fn fits(fraction: i32, digits: u32) -> bool {
    (0..10_i64.pow(digits)).contains(&fraction.into())
}

/// Seconds of a zone before UTC that tells them itself: `UTC`, `GMT`, and `+hh:mm` with such a name before it or without.
fn ahead(zone: &[u8]) -> Option<i64> {
    let offset = zone.strip_prefix(b"GMT").or(zone.strip_prefix(b"UTC")).unwrap_or(zone);
    let (sign, text) = match offset.split_first() {
        None => return (!zone.is_empty()).then_some(0),
        Some((b'+', text)) => (1, text),
        Some((b'-', text)) => (-1, text),
        Some(_) => return None,
    };
    let &[h1, h2, b':', m1, m2] = text else { return None };
    if ![h1, h2, m1, m2].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let two = |high: u8, low: u8| i64::from(high - b'0') * 10 + i64::from(low - b'0');
    let (hours, minutes) = (two(h1, h2), two(m1, m2));
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn write_local(out: &mut Vec<u8>, day: Day, clock: Clock, fraction: i32, digits: u32) {
    day.write(out);
    out.push(b'T');
    clock.write(out);
    calendar::fraction(out, fraction, digits);
}

fn write_moment(out: &mut Vec<u8>, seconds: i64, fraction: i32, digits: u32) {
    let (day, clock) = calendar::local_of(seconds);
    quoted(out, |out| {
        write_local(out, day, clock, fraction, digits);
        out.push(b'Z');
    });
}

fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}
