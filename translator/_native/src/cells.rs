//! Cells of text to canonical values as JSON, in the spellings that nearly all cells have.
//!
//! Each kind accepts a subset of what its Python converter accepts, and writes the same; what it does not accept goes
//! to that converter. `tests/translator/native/test_cells.py` holds the two to each other.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::calendar::days_in;
use crate::reason::{Read, Reason};
use crate::scan::Token;

/// How the texts of a column are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// As they are.
    Text,
    /// As they are, and only texts.
    Verbatim,
    /// The same of documents, of which bytes are UTF-8.
    Json,
    /// As bytes.
    Bytes,
    /// As true or false.
    Boolean,
    /// As an integer within bounds.
    Integer { low: i64, high: i64 },
    /// As an integer of 64 bits without a sign, which stays text.
    Uint64,
    /// As a decimal of so many digits before the point, and after it.
    Decimal { whole: usize, scale: usize },
    /// As a decimal of any digits.
    Number,
    /// As a local time; `digits` are those of a fraction that is sent as a number.
    Timestamp { digits: u32 },
    /// As a moment; `digits` as above.
    Instant { digits: u32 },
    /// As a day.
    Date,
    /// As a time of day, or a span of up to `hours` hours; `digits` as above.
    Time { hours: u32, digits: u32 },
    /// As a number in double precision.
    Float64,
    /// As a number in single precision.
    Float32,
    /// By the Python converter, always.
    Python,
}

impl Kind {
    /// The kind that `translator/values/native_kinds.py` gave by its name and two numbers.
    pub fn named(name: &str, first: i64, second: i64) -> Option<Self> {
        let count = |number| u32::try_from(number).ok();
        Some(match name {
            "text" => Self::Text,
            "verbatim" => Self::Verbatim,
            "json" => Self::Json,
            "bytes" => Self::Bytes,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer { low: first, high: second },
            "uint64" => Self::Uint64,
            "decimal" => Self::Decimal { whole: usize::try_from(first).ok()?, scale: usize::try_from(second).ok()? },
            "number" => Self::Number,
            "timestamp" => Self::Timestamp { digits: count(first)? },
            "timestamptz" => Self::Instant { digits: count(first)? },
            "date" => Self::Date,
            "time" => Self::Time { hours: count(first)?, digits: count(second)? },
            "float64" => Self::Float64,
            "float32" => Self::Float32,
            "python" => Self::Python,
            _ => return None,
        })
    }
}

/// The reader of a column's texts.
pub struct Reader {
    /// The kind of all common spellings.
    pub kind: Kind,
    /// The converter of the plain way; None where a text stays as it is.
    pub convert: Py<PyAny>,
}

impl Reader {
    /// Appends the canonical value of a cell.
    #[inline]
    pub fn write(
        &self,
        py: Python<'_>,
        out: &mut Vec<u8>,
        token: Token,
        bytes: &[u8],
        convert_cell: &Py<PyAny>,
    ) -> Read<()> {
        let sent = token.of(bytes);
        if sent == b"null" {
            out.extend_from_slice(sent);
            return Ok(());
        }
        if !token.odd && write(out, sent, self.kind) {
            return Ok(());
        }
        self.convert(py, out, sent, convert_cell)
    }

    /// Appends the canonical value of a cell as Python makes it of what was sent.
    pub fn convert(&self, py: Python<'_>, out: &mut Vec<u8>, sent: &[u8], convert: &Py<PyAny>) -> Read<()> {
        let made = convert.bind(py).call1((PyBytes::new(py, sent), self.convert.bind(py)));
        let made = made.map_err(|_| Reason::Cell)?;
        out.extend_from_slice(made.cast::<PyBytes>().map_err(|_| Reason::Cell)?.as_bytes());
        Ok(())
    }
}

/// Appends the canonical value of a number, spelled without an exponent; false, with nothing written, when it has to be
/// converted.
fn write_number(out: &mut Vec<u8>, number: &[u8], kind: Kind) -> bool {
    let stays_text = match kind {
        Kind::Text => true,
        Kind::Uint64 => is_count(number),
        Kind::Decimal { whole, scale } => is_decimal(number, whole, scale),
        Kind::Number => is_number(number),
        _ => false,
    };
    when(stays_text, out, number)
        || (matches!(kind, Kind::Integer { .. } | Kind::Float64 | Kind::Float32) && write_text(out, number, kind))
}

/// Appends the canonical value of a scalar as it was sent; false, with nothing written, when its spelling is not common.
pub fn write(out: &mut Vec<u8>, sent: &[u8], kind: Kind) -> bool {
    if sent[0] == b'"' {
        write_text(out, &sent[1..sent.len() - 1], kind)
    } else {
        write_number(out, sent, kind)
    }
}

/// Appends the canonical value of a text as JSON has it between its quotes; false, with nothing written, as above.
pub fn write_text(out: &mut Vec<u8>, text: &[u8], kind: Kind) -> bool {
    match kind {
        Kind::Text | Kind::Verbatim | Kind::Json => when(true, out, text),
        Kind::Boolean => boolean(text).is_some_and(|word| {
            out.extend_from_slice(word);
            true
        }),
        Kind::Integer { low, high } => integer(text).is_some_and(|number| {
            let fits = low <= number && number <= high;
            if fits {
                out.extend_from_slice(text);
            }
            fits
        }),
        Kind::Uint64 => when(text.len() <= 19 && is_count(text), out, text),
        Kind::Decimal { whole, scale } => when(is_decimal(text, whole, scale), out, text),
        Kind::Number => when(is_number(text), out, text),
        Kind::Timestamp { .. } => {
            let at = out.len() + 1 + 10;
            let is_local = text.len() >= 19
                && is_date(&text[..10])
                && matches!(text[10], b' ' | b'T')
                && is_clock(&text[11..], 23);
            if when(is_local, out, text) {
                out[at] = b'T';
            }
            is_local
        }
        Kind::Date => when(is_date(text), out, text),
        Kind::Time { hours, .. } => when(is_clock(text, hours), out, text),
        Kind::Float64 | Kind::Float32 => common_float(text).is_some_and(|number| write_float(out, number, kind)),
        Kind::Bytes | Kind::Instant { .. } | Kind::Python => false,
    }
}

/// Appends the canonical value of a number in double precision that Python and Rust write alike: without an exponent;
/// false, with nothing written, of any other.
pub fn write_float(out: &mut Vec<u8>, number: f64, kind: Kind) -> bool {
    let shown = match kind {
        Kind::Float64 => Some(number),
        Kind::Float32 => short_single(number),
        _ => None,
    };
    let is_common = |number: &f64| number.to_bits() == 0 || (1e-3..=1e15).contains(&number.abs());
    shown.filter(is_common).is_some_and(|number| {
        out.extend_from_slice(ryu::Buffer::new().format_finite(number).as_bytes());
        true
    })
}

/// The number of at most six digits that is the same in single precision.
fn short_single(number: f64) -> Option<f64> {
    let short: f64 = format!("{number:.5e}").parse().ok()?;
    (short as f32 == number as f32).then_some(short)
}

/// Appends a text as a string where it fits.
#[inline]
fn when(fits: bool, out: &mut Vec<u8>, text: &[u8]) -> bool {
    if fits {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    }
    fits
}

fn boolean(text: &[u8]) -> Option<&'static [u8]> {
    match text {
        b"1" | b"t" | b"true" => Some(b"true"),
        b"0" | b"f" | b"false" => Some(b"false"),
        _ => None,
    }
}

#[inline]
fn are_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Digits without a zero before others.
#[inline]
fn is_count(text: &[u8]) -> bool {
    are_digits(text) && (text.len() == 1 || text[0] != b'0')
}

/// The number of digits that begin with none that says nothing; zero has no sign.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    if !is_count(digits) || digits.len() > 19 || (negative && digits == b"0") {
        return None;
    }
    // Of -2^63 the digits alone do not fit: one number for the converter.
    let number =
        digits.iter().try_fold(0i64, |number, digit| number.checked_mul(10)?.checked_add(i64::from(digit - b'0')))?;
    Some(if negative { -number } else { number })
}

/// The digits before the point and behind it of a number without needless zeros before others; zero has no sign.
fn parts(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (negative, number) = match text.split_first() {
        Some((b'-', number)) => (true, number),
        _ => (false, text),
    };
    let (whole, fraction) = match memchr::memchr(b'.', number) {
        Some(point) => (&number[..point], Some(&number[point + 1..])),
        None => (number, None),
    };
    let is_spelled = is_count(whole)
        && fraction.map_or(true, are_digits)
        && (!negative || number.iter().any(|digit| (b'1'..=b'9').contains(digit)));
    is_spelled.then_some((whole, fraction))
}

fn is_decimal(text: &[u8], whole_digits: usize, scale: usize) -> bool {
    parts(text).is_some_and(|(whole, fraction)| {
        fraction.map_or(0, <[u8]>::len) == scale && (whole == b"0" || whole.len() <= whole_digits)
    })
}

fn is_number(text: &[u8]) -> bool {
    parts(text).is_some_and(|(whole, fraction)| whole.len() <= 100 && fraction.map_or(0, <[u8]>::len) <= 99)
}

#[inline]
fn two(digits: &[u8]) -> u32 {
    u32::from(digits[0] - b'0') * 10 + u32::from(digits[1] - b'0')
}

/// A day from the year 1000 on.
fn is_date(text: &[u8]) -> bool {
    let spelled = text.len() == 10
        && text[4] == b'-'
        && text[7] == b'-'
        && are_digits(&text[..4])
        && are_digits(&text[5..7])
        && are_digits(&text[8..])
        && text[0] != b'0';
    if !spelled {
        return false;
    }
    let (year, month, day) = (two(text) * 100 + two(&text[2..]), two(&text[5..]), two(&text[8..]));
    (1..=days_in(i64::from(year), i64::from(month))).contains(&i64::from(day))
}

/// `hh:mm:ss`, with a fraction of up to nine digits.
fn is_clock(text: &[u8], hours: u32) -> bool {
    let spelled = text.len() >= 8
        && text[2] == b':'
        && text[5] == b':'
        && are_digits(&text[..2])
        && are_digits(&text[3..5])
        && are_digits(&text[6..8]);
    spelled
        && two(text) <= hours
        && two(&text[3..]) < 60
        && two(&text[6..]) < 60
        && (text.len() == 8 || (text[8] == b'.' && text.len() <= 18 && are_digits(&text[9..])))
}

/// The number of digits with a point among them, or without.
fn common_float(text: &[u8]) -> Option<f64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let spelled = digits.len() <= 30
        && digits.first()?.is_ascii_digit()
        && digits.last()?.is_ascii_digit()
        && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !spelled {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}
