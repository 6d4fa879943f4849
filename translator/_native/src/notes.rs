//! The content of an event in addition to its row: notes, and texts by name.

use crate::avro;
use crate::avro_read::DatumReader;

/// The notes of an event.
#[derive(Default)]
pub struct Notes {
    count: i64,
    items: Vec<u8>,
}

impl Notes {
    /// Adds a note; the order is kept.
    pub fn add(&mut self, note: &[u8]) {
        avro::text(&mut self.items, note);
        self.count += 1;
    }

    /// In Avro.
    pub fn written(&self) -> Vec<u8> {
        written(self.count, &self.items)
    }
}

/// The parts of a message that are kept under their own names, `ext`.
#[derive(Default)]
pub struct Kept {
    count: i64,
    items: Vec<u8>,
}

impl Kept {
    /// Adds a text; the order is kept.
    pub fn add(&mut self, name: &[u8], text: &[u8]) {
        avro::text(&mut self.items, name);
        avro::text(&mut self.items, text);
        self.count += 1;
    }

    /// In Avro.
    pub fn written(&self) -> Vec<u8> {
        written(self.count, &self.items)
    }
}

/// Returns these notes in Avro, followed by another one.
pub fn with(notes: &[u8], note: &[u8]) -> Vec<u8> {
    let mut all = Notes::default();
    let mut reader = DatumReader::new(notes);
    if reader.index(2) == Ok(1) {
        // Notes that this extension wrote can be read.
        let _ = reader.items(usize::MAX, |item| item.bytes().map(|item| all.add(item)));
    }
    all.add(note);
    all.written()
}

/// An array or map, in a union with null, which represents an empty one.
fn written(count: i64, items: &[u8]) -> Vec<u8> {
    if count == 0 {
        return vec![avro::NULL];
    }
    let mut out = vec![avro::SOME];
    avro::block(&mut out, count, items);
    out
}
