//! Converts numeric DTS times to canonical text (`translator/dialects/dts_avro/fast_times.py`).

use crate::avro_read::DatumReader;
use crate::calendar::{self, Clock, Day};
use crate::cells::Kind;
use crate::reason::Read;

/// The number of digits in `Timestamp.millis`, which contains micros for every source.
const MICROS: u32 = 6;
/// The first second of the year 10000.
const YEAR_10000: i64 = 253_402_300_800;

/// The components of a time, from year to fraction, if present.
pub type Components = [Option<i32>; 7];

/// Reads components.
pub fn components(datum: &mut DatumReader<'_>) -> Read<Components> {
    let mut parts = [None; 7];
    for part in &mut parts {
        if datum.index(2)? == 1 {
            *part = Some(datum.int()?);
        }
    }
    Ok(parts)
}

/// Appends a `Timestamp`. Returns false and writes nothing if the value has to be converted.
pub fn moment(out: &mut Vec<u8>, seconds: i64, micros: i32, kind: Kind) -> bool {
    // Second 0 is MySQL's zero date.
    let is_common = matches!(kind, Kind::Instant { .. }) && (1..YEAR_10000).contains(&seconds) && fits(micros, MICROS);
    if is_common {
        write_moment(out, seconds, micros, MICROS);
    }
    is_common
}

/// Appends the date, the time or both from a `DateTime`. Returns false and writes nothing if the value has to be
/// converted.
pub fn local(out: &mut Vec<u8>, parts: Components, kind: Kind) -> bool {
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

/// Appends a `TimestampWithTimeZone`. Returns false and writes nothing if the value has to be converted.
pub fn zoned(out: &mut Vec<u8>, parts: Components, zone: &[u8], kind: Kind) -> bool {
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

/// Returns whether a fraction has at most this many digits.
fn fits(fraction: i32, digits: u32) -> bool {
    (0..10_i64.pow(digits)).contains(&fraction.into())
}

/// Returns the seconds by which a self-describing zone is ahead of UTC: `UTC`, `GMT`, or `+hh:mm`, which one of these
/// names can precede.
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
