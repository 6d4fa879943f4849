//! Converts an Avro record to equivalent JSON, so that the same code reads a dialect's messages in both encodings.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::avro_read::DatumReader;
use crate::json;
use crate::reason::{Read, Reason};
use crate::times;

/// How to read a value and write it as JSON.
pub enum Step {
    /// An object with these members, whose names are JSON.
    Record(Vec<(Vec<u8>, Step)>),
    /// A union of these steps.
    Union(Vec<Step>),
    Null,
    Boolean,
    Int,
    Long,
    Double,
    Text,
    /// An enum of these symbols, as JSON.
    Enum(Vec<Vec<u8>>),
    /// Bytes as hex digits, last byte first if `reversed`.
    Hex {
        reversed: bool,
    },
    /// The two's complement of a number's digits, with this many digits after the point.
    Decimal {
        scale: usize,
    },
    /// Days since 1970.
    Date,
    /// A time of day, in units of this many fraction digits of a second.
    Time {
        digits: usize,
    },
    /// A timestamp since 1970, in the same units.
    Timestamp {
        digits: usize,
    },
    /// Left to the plain path.
    Refused,
}

impl<'py> FromPyObject<'py> for Step {
    /// Reads a `NativeStep`: the kind, a number, and the parts with their names as JSON.
    fn extract_bound(python: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (kind, number, parts): (String, usize, Bound<'py, PyTuple>) = python.extract()?;
        let named = || parts.extract::<Vec<(Vec<u8>, Step)>>();
        Ok(match kind.as_str() {
            "record" => Self::Record(named()?),
            "union" => Self::Union(named()?.into_iter().map(|(_, step)| step).collect()),
            "enum" => Self::Enum(named()?.into_iter().map(|(symbol, _)| symbol).collect()),
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "int" => Self::Int,
            "long" => Self::Long,
            "double" => Self::Double,
            "text" => Self::Text,
            "hex" => Self::Hex { reversed: number == 1 },
            "decimal" => Self::Decimal { scale: number },
            "date" => Self::Date,
            "time" => Self::Time { digits: number },
            "timestamp" => Self::Timestamp { digits: number },
            "refused" => Self::Refused,
            _ => return Err(PyValueError::new_err(format!("unknown step {kind:?}"))),
        })
    }
}

impl Step {
    /// Appends a value as JSON.
    pub fn write(&self, datum: &mut DatumReader<'_>, out: &mut Vec<u8>) -> Read<()> {
        match self {
            Self::Record(members) => {
                out.push(b'{');
                for (at, (name, step)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(name);
                    out.push(b':');
                    step.write(datum, out)?;
                }
                out.push(b'}');
            }
            Self::Union(branches) => return branches[datum.index(branches.len())?].write(datum, out),
            Self::Enum(symbols) => out.extend_from_slice(&symbols[datum.index(symbols.len())?]),
            Self::Null => out.extend_from_slice(b"null"),
            Self::Boolean => out.extend_from_slice(if datum.boolean()? { b"true" } else { b"false" }),
            Self::Int => out.extend_from_slice(datum.int()?.to_string().as_bytes()),
            Self::Long => out.extend_from_slice(datum.long()?.to_string().as_bytes()),
            Self::Double => double(datum.double()?, out)?,
            Self::Text => json::text(out, datum.text()?),
            Self::Hex { reversed } => hex(datum.bytes()?, *reversed, out),
            Self::Decimal { scale } => decimal(datum.bytes()?, *scale, out)?,
            Self::Date => in_quotes(out, times::day_text(datum.int()?.into()).ok_or(Reason::Cell)?),
            Self::Time { digits } => in_quotes(out, times::clock_text(datum.long()?, *digits).ok_or(Reason::Cell)?),
            Self::Timestamp { digits } => {
                let units = datum.long()?;
                let a_day = 86_400 * 10i64.pow(*digits as u32);
                let day = times::day_text(units.div_euclid(a_day)).ok_or(Reason::Cell)?;
                let clock = times::clock_text(units.rem_euclid(a_day), *digits).ok_or(Reason::Cell)?;
                in_quotes(out, format!("{day}T{clock}"));
            }
            Self::Refused => return Err(Reason::Cell),
        }
        Ok(())
    }
}

fn in_quotes(out: &mut Vec<u8>, text: String) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

fn hex(bytes: &[u8], reversed: bool, out: &mut Vec<u8>) {
    out.push(b'"');
    for at in 0..bytes.len() {
        let byte = bytes[if reversed { bytes.len() - 1 - at } else { at }];
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    out.push(b'"');
}

/// Numbers of a common size, which are written in JSON without an exponent.
fn double(number: f64, out: &mut Vec<u8>) -> Read<()> {
    if !(1e-3..=1e15).contains(&number.abs()) {
        return Err(Reason::Cell);
    }
    out.extend_from_slice(ryu::Buffer::new().format_finite(number).as_bytes());
    Ok(())
}

fn decimal(bytes: &[u8], scale: usize, out: &mut Vec<u8>) -> Read<()> {
    if bytes.is_empty() || bytes.len() > 16 {
        return Err(Reason::Cell);
    }
    let filler = if bytes[0] & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [filler; 16];
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    let number = i128::from_be_bytes(wide);
    let digits = format!("{:0width$}", number.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if number < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    in_quotes(out, format!("{sign}{whole}{point}{fraction}"));
    Ok(())
}
