//! Dates, times of day and points in time, in the spellings that nearly all of them have.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_exist_in_the_calendar() {
        for text in [&b"1000-01-01"[..], b"2024-02-29", b"2000-02-29", b"9999-12-31"] {
            assert!(is_date(text), "{text:?}");
        }
        for text in [
            &b"0999-12-31"[..],
            b"0000-00-00",
            b"2023-02-29",
            b"1900-02-29",
            b"2024-04-31",
            b"2024-13-01",
            b"2024-00-10",
            b"2024-01-00",
            b"2024-1-01",
            b"24-01-01",
            b"2024/01/01",
            b"2024-01-01 ",
            b"",
        ] {
            assert!(!is_date(text), "{text:?}");
        }
    }

    #[test]
    fn clocks_have_up_to_nine_digits_of_a_fraction() {
        for text in [&b"00:00:00"[..], b"23:59:59", b"12:00:00.1", b"12:00:00.123456789"] {
            assert!(is_clock(text, 23), "{text:?}");
        }
        for text in [
            &b"24:00:00"[..],
            b"12:60:00",
            b"12:00:60",
            b"12:00:00.",
            b"12:00:00.1234567890",
            b"12:00",
            b"1:00:00",
            b"12:00:00,5",
            b"-1:00:00",
        ] {
            assert!(!is_clock(text, 23), "{text:?}");
        }
        assert!(is_clock(b"38:59:59", 38) && !is_clock(b"39:00:00", 38));
    }

    #[test]
    fn utc_times_are_microseconds_since_1970() {
        for (text, micros) in [
            (&b"1970-01-01 00:00:00"[..], 0),
            (b"1970-01-01T00:00:01Z", 1_000_000),
            (b"1969-12-31 23:59:59.999999", -1),
            (b"2022-03-20T00:00:00.123456789Z", 1_647_734_400_123_456),
            (b"9999-12-31 23:59:59.999999", 253_402_300_799_999_999),
        ] {
            assert_eq!(utc_micros(text), Some(micros), "{text:?}");
        }
        for text in [&b"2022-03-20"[..], b"2022-03-20 00:00:00+00:00", b"2022-02-30 00:00:00", b"2022-03-20_00:00:00"] {
            assert_eq!(utc_micros(text), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_become_dates_and_clocks() {
        for (number, text) in [
            (0, Some("1970-01-01")),
            (-1, Some("1969-12-31")),
            (-354_285, Some("1000-01-01")),
            (2_932_896, Some("9999-12-31")),
        ] {
            assert_eq!(day_text(number).as_deref(), text);
        }
        assert_eq!((day_text(-354_286), day_text(2_932_897)), (None, None));
        for (units, digits, text) in [
            (0, 6, Some("00:00:00")),
            (86_399_000_000, 6, Some("23:59:59")),
            (1_500, 3, Some("00:00:01.500")),
            (-1, 3, None),
            (86_400, 0, None),
        ] {
            assert_eq!(clock_text(units, digits).as_deref(), text, "{units}");
        }
    }
}
