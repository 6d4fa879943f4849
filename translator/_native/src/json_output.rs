//! A row event as JSON, as in `translator/codecs/json.py`.

use pyo3::prelude::*;

use crate::avro_read::DatumReader;
use crate::event::ENVELOPE_VERSION;
use crate::json;
use crate::reason::Read;
use crate::row::{Head, Place, Row, Transaction, ARRIVAL};

const NULL: &[u8] = b"null";

/// The parts that the events of one operation share.
#[derive(FromPyObject)]
pub struct JsonOperation {
    /// The members from `kind` to `table`.
    names: Vec<u8>,
    /// The value of `schema_id`.
    schema_id: Vec<u8>,
    /// Key changes become two events, which is not supported.
    pub splits_key_changes: bool,
}

impl JsonOperation {
    /// Returns the event of a row.
    pub fn value(&self, place: &Place, head: &Head<'_>, row: &Row<'_>, id: &[u8]) -> Read<Vec<u8>> {
        let images = row.before.map_or(0, <[u8]>::len) + row.after.map_or(0, <[u8]>::len);
        let mut event = Object { json: Vec::with_capacity(images + 1280) };
        event.number("v", Some(ENVELOPE_VERSION));
        event.text("id", Some(id));
        event.json.push(b',');
        event.json.extend_from_slice(&self.names);
        event.text("pos", Some(&[ARRIVAL, row.place_in(head).as_bytes()].concat()));
        event.avro_text("pos_scope", &place.pos_scope)?;
        event.text("pos_native", head.native);
        event.number("ts_commit_us", head.commit_us);
        event.number("ts_capture_us", head.capture_us);
        event.number("ts_origin_us", Some(head.timestamp_ms * 1000));
        event.json("key", row.key);
        event.json("key_old", row.key_old);
        event.avro_text("key_kind", row.key_kind)?;
        event.json("before", row.before);
        event.json("after", row.after);
        event.avro_text("before_state", row.before_state)?;
        event.avro_text("after_state", row.after_state)?;
        event.columns("changed", row.changed)?;
        event.columns("unavailable", row.unavailable)?;
        event.json("issues", None);
        event.json("schema_id", Some(&self.schema_id));
        event.json("tx", head.tx.as_ref().map(transaction).as_deref());
        event.json("ddl", None);
        event.json("origin", Some(&origin(place, head, row)));
        event.json("notes", notes(row.notes)?.as_deref());
        event.json("ext", kept(row.ext)?.as_deref());
        Ok(event.closed())
    }
}

fn transaction(tx: &Transaction<'_>) -> Vec<u8> {
    let mut object = Object::default();
    object.text("id", Some(tx.id));
    object.number("seq", tx.seq);
    object.number("size", tx.size);
    object.json("last", tx.last.map(|last| if last { &b"true"[..] } else { b"false" }));
    object.closed()
}

fn origin(place: &Place, head: &Head<'_>, row: &Row<'_>) -> Vec<u8> {
    let mut object = Object::default();
    object.text("topic", Some(place.topic.as_bytes()));
    object.number("partition", Some(place.partition));
    object.number("offset", Some(head.offset));
    object.number("row", Some(row.index as i64));
    object.number("rows", Some(head.rows as i64));
    object.closed()
}

/// A list of texts, given as an Avro array in a union with null.
fn notes(avro: &[u8]) -> Read<Option<Vec<u8>>> {
    let mut reader = DatumReader::new(avro);
    if reader.index(2)? == 0 {
        return Ok(None);
    }
    let mut list = List::default();
    reader.items(usize::MAX, |item| item.bytes().map(|note| list.text(note)))?;
    Ok(Some(list.closed()))
}

/// Texts by name, given as an Avro map in a union with null.
fn kept(avro: &[u8]) -> Read<Option<Vec<u8>>> {
    let mut reader = DatumReader::new(avro);
    if reader.index(2)? == 0 {
        return Ok(None);
    }
    let mut texts = Object::default();
    reader.items(usize::MAX, |entry| {
        texts.name(entry.bytes()?);
        json::text(&mut texts.json, entry.bytes()?);
        Ok(())
    })?;
    Ok(Some(texts.closed()))
}

/// An array of texts.
#[derive(Default)]
struct List {
    json: Vec<u8>,
}

impl List {
    fn text(&mut self, text: &[u8]) {
        self.json.push(if self.json.is_empty() { b'[' } else { b',' });
        json::text(&mut self.json, text);
    }

    fn closed(mut self) -> Vec<u8> {
        if self.json.is_empty() {
            self.json.push(b'[');
        }
        self.json.push(b']');
        self.json
    }
}

/// An object. Members that are None are null.
#[derive(Default)]
struct Object {
    json: Vec<u8>,
}

impl Object {
    fn name(&mut self, name: &[u8]) {
        self.json.push(if self.json.is_empty() { b'{' } else { b',' });
        json::text(&mut self.json, name);
        self.json.push(b':');
    }

    fn json(&mut self, name: &str, json: Option<&[u8]>) {
        self.name(name.as_bytes());
        self.json.extend_from_slice(json.unwrap_or(NULL));
    }

    fn text(&mut self, name: &str, text: Option<&[u8]>) {
        self.name(name.as_bytes());
        match text {
            None => self.json.extend_from_slice(NULL),
            Some(text) => json::text(&mut self.json, text),
        }
    }

    fn number(&mut self, name: &str, number: Option<i64>) {
        self.name(name.as_bytes());
        match number {
            None => self.json.extend_from_slice(NULL),
            Some(number) => json::number(&mut self.json, number),
        }
    }

    fn avro_text(&mut self, name: &str, avro: &[u8]) -> Read<()> {
        self.text(name, Some(DatumReader::new(avro).bytes()?));
        Ok(())
    }

    /// Adds a number of names, given as Avro texts.
    fn columns(&mut self, name: &str, columns: Option<(i64, &[u8])>) -> Read<()> {
        let Some((count, avro)) = columns else {
            self.json(name, None);
            return Ok(());
        };
        let (mut list, mut reader) = (List::default(), DatumReader::new(avro));
        for _ in 0..count {
            list.text(reader.bytes()?);
        }
        self.json(name, Some(&list.closed()));
        Ok(())
    }

    fn closed(mut self) -> Vec<u8> {
        if self.json.is_empty() {
            self.json.push(b'{');
        }
        self.json.push(b'}');
        self.json
    }
}
