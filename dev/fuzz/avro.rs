//! The Avro reader never panics, and only accepts a number in its canonical encoding.
#![no_main]
#![allow(dead_code)] // only a part of the modules is used

#[path = "../../translator/_native/src/avro.rs"]
mod avro;
#[path = "../../translator/_native/src/avro_read.rs"]
mod avro_read;
#[path = "../../translator/_native/src/calendar.rs"]
mod calendar;
#[path = "../../translator/_native/src/reason.rs"]
mod reason;

use libfuzzer_sys::fuzz_target;

use crate::avro_read::DatumReader;
use crate::calendar::Day;

fuzz_target!(|bytes: &[u8]| {
    number(bytes);
    fields(bytes);
    day(bytes);
});

fn number(bytes: &[u8]) {
    let mut datum = DatumReader::new(bytes);
    if let Ok(number) = datum.long() {
        let mut written = Vec::new();
        avro::long(&mut written, number);
        assert_eq!(written, datum.since(0));
    }
}

/// Read fields of kinds chosen by the input, until one cannot be read.
fn fields(bytes: &[u8]) {
    let mut datum = DatumReader::new(bytes);
    while let Ok(kind) = datum.index(8) {
        let read = match kind {
            0 => datum.long().map(|_| ()),
            1 => datum.int().map(|_| ()),
            2 => datum.text().map(|text| assert!(std::str::from_utf8(text).is_ok())),
            3 => datum.bytes().map(|_| ()),
            4 => datum.double().map(|_| ()),
            5 => datum.boolean().map(|_| ()),
            6 => datum.items(100, |datum| datum.text().map(|_| ())).map(|count| assert!(count <= 100)),
            _ => datum.index(3).map(|index| assert!(index < 3)),
        };
        if read.is_err() {
            return;
        }
    }
}

/// A number of days round-trips through its date.
fn day(bytes: &[u8]) {
    if let Some(number) = bytes.get(..4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_le_bytes) {
        assert_eq!(i64::from(number), Day::of(number.into()).number());
    }
}
