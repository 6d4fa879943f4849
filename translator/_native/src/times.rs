//! Dates, times of day and points in time, in the spellings that nearly all have.

use crate::calendar::{days_in, seconds_of, Clock, Day};
use crate::scan::are_digits;

/// Returns the number for two digits.
#[inline]
pub fn two(digits: &[u8]) -> u32 {
    u32::from(digits[0] - b'0') * 10 + u32::from(digits[1] - b'0')
}

/// A date from the year 1000 on.
pub fn is_date(text: &[u8]) -> bool {
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
    (1..=days_in(year.into(), month.into())).contains(&day.into())
}

/// `hh:mm:ss`, with a fraction of up to nine digits.
pub fn is_clock(text: &[u8], hours: u32) -> bool {
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

/// A date and a time of day.
pub fn is_local(text: &[u8]) -> bool {
    text.len() >= 19 && is_date(&text[..10]) && matches!(text[10], b' ' | b'T') && is_clock(&text[11..], 23)
}

/// Returns the microseconds since 1970 of a UTC time with or without a Z. Further digits are dropped.
pub fn utc_micros(text: &[u8]) -> Option<i64> {
    let local = text.strip_suffix(b"Z").unwrap_or(text);
    if !is_local(local) {
        return None;
    }
    let number = |at: usize| i64::from(two(&local[at..]));
    let day = Day { year: number(0) * 100 + number(2), month: number(5), day: number(8) };
    let seconds = seconds_of(day, Clock { hour: number(11), minute: number(14), second: number(17) });
    let fraction = local.get(20..).unwrap_or_default();
    let digits = (0..6).map(|place| fraction.get(place).map_or(0, |digit| i64::from(digit - b'0')));
    Some(digits.fold(seconds, |micros, digit| micros * 10 + digit))
}

/// Returns the date for this many days since 1970, in the years 1000 to 9999.
pub fn day_text(number: i64) -> Option<String> {
    let day = Day::of(number);
    (1000..=9999).contains(&day.year).then(|| format!("{:04}-{:02}-{:02}", day.year, day.month, day.day))
}

/// Returns the time of day for a number of units with this many fraction digits, without a fraction of zero.
pub fn clock_text(units: i64, digits: usize) -> Option<String> {
    let a_second = 10i64.pow(digits as u32);
    let (seconds, fraction) = (units.div_euclid(a_second), units.rem_euclid(a_second));
    if !(0..86_400).contains(&seconds) {
        return None;
    }
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(if fraction == 0 { clock } else { format!("{clock}.{fraction:0digits$}") })
}
