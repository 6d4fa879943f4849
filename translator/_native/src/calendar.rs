//! Days and times of the calendar as canonical text, and the reverse.

const SECONDS_PER_DAY: i64 = 86_400;

/// A day, which exists in the calendar if `is_valid`.
#[derive(Clone, Copy)]
pub struct Day {
    /// Counted from 1.
    pub year: i64,
    /// Counted from 1.
    pub month: i64,
    /// Day of the month, counted from 1.
    pub day: i64,
}

/// A time of day, which exists if `is_valid`.
#[derive(Clone, Copy)]
pub struct Clock {
    /// Counted from 0.
    pub hour: i64,
    /// Counted from 0.
    pub minute: i64,
    /// Counted from 0, without leap seconds.
    pub second: i64,
}

impl Day {
    /// Returns whether it is a day in the years 1 to 9999.
    pub fn is_valid(&self) -> bool {
        (1..=9999).contains(&self.year) && (1..=days_in(self.year, self.month)).contains(&self.day)
    }

    /// Appends `YYYY-MM-DD`.
    pub fn write(&self, out: &mut Vec<u8>) {
        digits(out, self.year, 4);
        out.push(b'-');
        digits(out, self.month, 2);
        out.push(b'-');
        digits(out, self.day, 2);
    }

    /// Returns the days since 1970, computed in eras of 400 years that begin in March.
    pub fn number(&self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    /// Returns the day with this number.
    pub fn of(number: i64) -> Self {
        let shifted = number + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = (from_march + 2) % 12 + 1;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        Self { year: year + era * 400 + i64::from(month <= 2), month, day }
    }
}

impl Clock {
    /// Returns whether the time exists.
    pub fn is_valid(&self) -> bool {
        (0..24).contains(&self.hour) && (0..60).contains(&self.minute) && (0..60).contains(&self.second)
    }

    /// Appends `hh:mm:ss`.
    pub fn write(&self, out: &mut Vec<u8>) {
        digits(out, self.hour, 2);
        out.push(b':');
        digits(out, self.minute, 2);
        out.push(b':');
        digits(out, self.second, 2);
    }
}

/// Returns the seconds since 1970 of a local time.
pub fn seconds_of(day: Day, clock: Clock) -> i64 {
    day.number() * SECONDS_PER_DAY + clock.hour * 3_600 + clock.minute * 60 + clock.second
}

/// Returns the local time for seconds since 1970.
pub fn local_of(seconds: i64) -> (Day, Clock) {
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let clock = Clock { hour: of_day / 3_600, minute: of_day / 60 % 60, second: of_day % 60 };
    (Day::of(seconds.div_euclid(SECONDS_PER_DAY)), clock)
}

/// Appends the point and the digits of a fraction, given as a number with this many digits. Appends nothing for zero.
pub fn fraction(out: &mut Vec<u8>, number: i32, count: u32) {
    if number != 0 {
        out.push(b'.');
        digits(out, number.into(), count);
    }
}

/// Returns the number of days in a month, or 0 for an invalid month.
pub fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    }
}

/// Appends a non-negative number with this many digits.
fn digits(out: &mut Vec<u8>, number: i64, count: u32) {
    for place in (0..count).rev() {
        out.push(b'0' + (number / 10_i64.pow(place) % 10) as u8);
    }
}
