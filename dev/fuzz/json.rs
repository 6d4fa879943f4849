//! The JSON scanner never panics, and accepts nothing that another parser rejects or reads differently.
#![no_main]
#![allow(dead_code)] // only a part of the modules is used

#[path = "../../translator/_native/src/calendar.rs"]
mod calendar;
#[path = "../../translator/_native/src/json.rs"]
mod json;
#[path = "../../translator/_native/src/reason.rs"]
mod reason;
#[path = "../../translator/_native/src/scan.rs"]
mod scan;
#[path = "../../translator/_native/src/times.rs"]
mod times;

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

use crate::scan::{Rows, Scanner};

fuzz_target!(|bytes: &[u8]| {
    object(bytes);
    rows(bytes);
    if let Ok(sent) = std::str::from_utf8(bytes) {
        text(sent);
        let _ = (times::utc_micros(bytes), times::is_local(bytes), times::is_date(bytes));
    }
});

/// An object of scalars has the same members in the same order. Python reads unusual forms and names with an escape.
fn object(bytes: &[u8]) {
    let Ok(mut scanner) = Scanner::new(bytes) else { return };
    let mut cells = Vec::new();
    if scanner.object(&mut cells).is_err() || !scanner.at_end() {
        return;
    }
    if cells.iter().any(|cell| cell.value.odd || cell.name.of(bytes).contains(&b'\\')) {
        return;
    }
    let parsed: Map<String, Value> = serde_json::from_slice(bytes).expect("the scanner took what is no object");
    let names = cells.iter().map(|cell| serde_json::from_slice::<String>(cell.name.of(bytes)).expect("no name"));
    let values = cells.iter().map(|cell| serde_json::from_slice::<Value>(cell.value.of(bytes)).expect("no value"));
    let scanned: Map<String, Value> = names.zip(values).collect();
    assert_eq!(scanned, parsed);
}

/// A list of objects of texts, as in Canal's rows, is read the same way. Python reads escapes.
fn rows(bytes: &[u8]) {
    if bytes.contains(&b'\\') {
        return;
    }
    for may_lack in [false, true] {
        let Ok(mut scanner) = Scanner::new(bytes) else { return };
        let mut rows = Rows::default();
        if scanner.rows(&mut rows, may_lack).is_ok() && scanner.at_end() {
            let parsed: Value = serde_json::from_slice(bytes).expect("the scanner took what is no JSON");
            assert_eq!(parsed.as_array().map_or(0, Vec::len), rows.len());
        }
    }
}

/// A quoted text is read as that text.
fn text(sent: &str) {
    let mut out = Vec::new();
    json::text(&mut out, sent.as_bytes());
    assert_eq!(sent, serde_json::from_slice::<String>(&out).expect("no text"));
}
