//! Converts text cells to canonical values as JSON, in the spellings that nearly all cells have.
//!
//! Each kind accepts a subset of its Python converter's spellings and writes the same result. Everything else goes to
//! that converter. `tests/translator/native/test_cells.py` compares the two.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::reason::{Read, Reason};
use crate::scan::{are_digits, Token};
use crate::times::{is_clock, is_date, is_local};

/// How to read the texts of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Unchanged.
    Text,
    /// Texts of unknown type: unchanged, as are booleans.
    Unknown,
    /// Unchanged, and only texts.
    Verbatim,
    /// Unchanged documents, whose bytes are UTF-8.
    Json,
    /// As bytes.
    Bytes,
    /// As true or false.
    Boolean,
    /// As an integer within bounds.
    Integer { low: i64, high: i64 },
    /// As an unsigned 64-bit integer, which remains text.
    Uint64,
    /// As a decimal with these numbers of digits before and after the point; trailing zeros can be missing.
    Decimal { whole: usize, scale: usize },
    /// As a decimal with any number of digits.
    Number,
    /// As a local time; `digits` is the precision of a fraction that is sent as a number.
    Timestamp { digits: u32 },
    /// As a point in time; `digits` as above.
    Instant { digits: u32 },
    /// As a date.
    Date,
    /// As a time of day, or a duration of up to `hours` hours; `digits` as above.
    Time { hours: u32, digits: u32 },
    /// As a double-precision number.
    Float64,
    /// As a single-precision number.
    Float32,
    /// Always by the Python converter.
    Python,
}

impl Kind {
    /// Returns the kind that `translator/values/native_kinds.py` describes by its name and two numbers.
    pub fn named(name: &str, first: i64, second: i64) -> Option<Self> {
        let count = |number| u32::try_from(number).ok();
        Some(match name {
            "text" => Self::Text,
            "unknown" => Self::Unknown,
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

/// Reads the texts of a column.
pub struct Reader {
    /// The kind for all common spellings.
    pub kind: Kind,
    /// The plain path's converter, or None if texts remain unchanged.
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

    /// Appends the canonical value of a cell, as computed by Python from the sent text.
    pub fn convert(&self, py: Python<'_>, out: &mut Vec<u8>, sent: &[u8], convert: &Py<PyAny>) -> Read<()> {
        let made = convert.bind(py).call1((PyBytes::new(py, sent), self.convert.bind(py)));
        let made = made.map_err(|_| Reason::Cell)?;
        out.extend_from_slice(made.cast::<PyBytes>().map_err(|_| Reason::Cell)?.as_bytes());
        Ok(())
    }
}

/// Appends the canonical value of a scalar as sent. Returns false and writes nothing if its spelling is not common.
pub fn write(out: &mut Vec<u8>, sent: &[u8], kind: Kind) -> bool {
    match sent[0] {
        b'"' => write_text(out, &sent[1..sent.len() - 1], kind),
        b't' | b'f' if kind == Kind::Unknown => {
            out.extend_from_slice(sent);
            true
        }
        b't' | b'f' => kind == Kind::Boolean && write_text(out, sent, kind),
        _ => write_number(out, sent, kind),
    }
}

/// Appends the canonical value of a number spelled without an exponent. Returns false and writes nothing if it must be
/// converted.
fn write_number(out: &mut Vec<u8>, number: &[u8], kind: Kind) -> bool {
    match kind {
        Kind::Text | Kind::Unknown => when(true, out, number),
        Kind::Uint64 => when(is_count(number), out, number),
        Kind::Integer { .. } | Kind::Float64 | Kind::Float32 | Kind::Boolean | Kind::Decimal { .. } | Kind::Number => {
            write_text(out, number, kind)
        }
        _ => false,
    }
}

/// Appends a number in quotes with `scale` digits after the point, given the digits it has.
#[inline]
fn padded(out: &mut Vec<u8>, number: &[u8], digits: usize, scale: usize) {
    out.push(b'"');
    out.extend_from_slice(number);
    if digits == 0 && scale > 0 {
        out.push(b'.');
    }
    out.resize(out.len() + scale - digits, b'0');
    out.push(b'"');
}

/// Appends the canonical value of a text, given the JSON between its quotes. Returns false and writes nothing if the
/// spelling is not common.
pub fn write_text(out: &mut Vec<u8>, text: &[u8], kind: Kind) -> bool {
    match kind {
        Kind::Text | Kind::Unknown | Kind::Verbatim | Kind::Json => when(true, out, text),
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
        Kind::Decimal { whole, scale } => digits_behind(text, whole).is_some_and(|digits| {
            let fits = digits <= scale;
            if fits {
                padded(out, text, digits, scale);
            }
            fits
        }),
        Kind::Number => {
            let digits = digits_behind(text, LONG_NUMBER);
            when(digits.is_some_and(|digits| digits < LONG_NUMBER), out, text)
        }
        Kind::Timestamp { .. } => {
            let at = out.len() + 1 + 10;
            let fits = is_local(text);
            if when(fits, out, text) {
                out[at] = b'T';
            }
            fits
        }
        Kind::Date => when(is_date(text), out, text),
        Kind::Time { hours, .. } => when(is_clock(text, hours), out, text),
        Kind::Float64 | Kind::Float32 => common_float(text).is_some_and(|number| write_float(out, number, kind)),
        Kind::Bytes | Kind::Instant { .. } | Kind::Python => false,
    }
}

/// Appends a double-precision number that Python and Rust write in the same way: without an exponent. Returns false and
/// writes nothing for any other number.
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

/// Returns the number with at most six digits that has the same value in single precision.
fn short_single(number: f64) -> Option<f64> {
    let short: f64 = format!("{number:.5e}").parse().ok()?;
    (short as f32 == number as f32).then_some(short)
}

/// Appends a text as a string if it fits.
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

/// Returns whether a text consists of digits without leading zeros.
#[inline]
fn is_count(text: &[u8]) -> bool {
    are_digits(text) && (text.len() == 1 || text[0] != b'0')
}

/// Returns the number that these digits represent. They must not begin with unnecessary zeros, and zero must not have a
/// sign.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    if !is_count(digits) || digits.len() > 19 || (negative && digits == b"0") {
        return None;
    }
    // -2^63 is the only number whose digits alone do not fit. It is left to the converter.
    let number =
        digits.iter().try_fold(0i64, |number, digit| number.checked_mul(10)?.checked_add(i64::from(digit - b'0')))?;
    Some(if negative { -number } else { number })
}

/// As in `values/fast_converters.py`: a number is unusual if it has more than this many digits before the point, or at
/// least this many after the point.
const LONG_NUMBER: usize = 100;

/// Returns the number of digits after the point, for a number with at most this many digits before the point and no
/// unnecessary leading zero. Zero has no sign.
fn digits_behind(text: &[u8], whole_digits: usize) -> Option<usize> {
    let (negative, number) = match text.split_first() {
        Some((b'-', number)) => (true, number),
        _ => (false, text),
    };
    let (whole, digits) = match memchr::memchr(b'.', number) {
        Some(point) if are_digits(&number[point + 1..]) => (&number[..point], number.len() - point - 1),
        Some(_) => return None,
        None => (number, 0),
    };
    let is_spelled = is_count(whole)
        && (whole == b"0" || whole.len() <= whole_digits)
        && (!negative || number.iter().any(|digit| (b'1'..=b'9').contains(digit)));
    is_spelled.then_some(digits)
}

/// Returns the number that these digits represent, with or without a point.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(sent: &str, kind: Kind) -> Option<String> {
        let mut out = Vec::new();
        let done = write(&mut out, sent.as_bytes(), kind);
        assert!(done || out.is_empty(), "{sent}: a refused cell leaves bytes behind");
        done.then(|| String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn integers_keep_to_their_bounds() {
        let kind = Kind::Integer { low: -128, high: 127 };
        for text in ["0", "7", "-128", "127"] {
            assert_eq!(written(&format!("\"{text}\""), kind).as_deref(), Some(text));
        }
        for text in ["128", "-129", "007", "-0", "+1", "1.0", "1e2", "", " 1", "9223372036854775808"] {
            assert_eq!(written(&format!("\"{text}\""), kind), None, "{text}");
        }
    }

    #[test]
    fn decimals_have_the_scale_of_their_column() {
        let kind = Kind::Decimal { whole: 3, scale: 2 };
        for (text, wanted) in [("12.50", "\"12.50\""), ("0.00", "\"0.00\""), ("-999.99", "\"-999.99\"")] {
            assert_eq!(written(&format!("\"{text}\""), kind).as_deref(), Some(wanted));
        }
        for text in ["1000.00", "1.234", ".5", "1.", "1e1", "NaN", "", "00.50"] {
            assert_eq!(written(&format!("\"{text}\""), kind), None, "{text}");
        }
    }

    #[test]
    fn texts_are_unchanged() {
        for text in ["\"\"", "\"a\"", "\"é\""] {
            assert_eq!(written(text, Kind::Text).as_deref(), Some(text));
        }
    }

    #[test]
    fn dates_and_times_that_do_not_exist_are_refused() {
        assert_eq!(written("\"2024-02-29\"", Kind::Date).as_deref(), Some("\"2024-02-29\""));
        for text in ["0000-00-00", "2023-02-29", "0999-01-01", "2024-2-9"] {
            assert_eq!(written(&format!("\"{text}\""), Kind::Date), None, "{text}");
        }
        let time = Kind::Time { hours: 838, digits: 6 };
        assert_eq!(written("\"24:00:60\"", time), None);
    }

    #[test]
    fn integer_is_the_shortest_spelling() {
        for (text, number) in [("0", Some(0)), ("-1", Some(-1)), ("9223372036854775807", Some(i64::MAX))] {
            assert_eq!(integer(text.as_bytes()), number);
        }
        for text in ["", "-", "-0", "01", "1_0", "9223372036854775808", "-9223372036854775808", "1.0"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
