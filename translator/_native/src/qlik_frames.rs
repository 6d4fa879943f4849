//! The two Avro frames of a record: Replicate's envelope, and Confluent's for a schema registry.

use std::borrow::Cow;

use crate::avro_read::DatumReader;
use crate::qlik_message::{schema_id, REGISTRY};
use crate::reason::{Read, Reason};

/// The first bytes of an envelope.
const MAGIC: &[u8] = b"atMSG";

/// The branches of a union with null.
const OPTIONAL: usize = 2;

/// The bytes of Confluent's frame: 00, and the schema id.
const FRAME_BYTES: usize = 5;

/// A data message without an embedded schema, as described by its frame.
pub struct Framed<'a> {
    /// The message refers to a registry schema, which does not contain everything about the table.
    pub is_registered: bool,
    /// The id under which the message's metadata or schema was learned.
    pub schema_id: Cow<'a, [u8]>,
    /// The record, still encoded in Avro.
    pub message: &'a [u8],
}

/// Reads the frame of a message. None for JSON, or for an unknown framing.
pub fn open(value: &[u8]) -> Read<Option<Framed<'_>>> {
    if value.starts_with(MAGIC) {
        return open_envelope(value).map(Some);
    }
    Ok(registry_id(value).map(|id| Framed {
        is_registered: true,
        schema_id: Cow::Owned(id),
        message: &value[FRAME_BYTES..],
    }))
}

/// Returns the schema id in Confluent's frame of a value or Kafka key, or None without such a frame.
pub fn registry_id(framed: &[u8]) -> Option<Vec<u8>> {
    let number = framed.get(1..FRAME_BYTES)?.try_into().map(u32::from_be_bytes).ok()?;
    framed.starts_with(b"\0").then(|| [REGISTRY, number.to_string().as_bytes()].concat())
}

fn open_envelope(value: &[u8]) -> Read<Framed<'_>> {
    let mut datum = DatumReader::new(value);
    let is_data = datum.take(MAGIC) && datum.bytes()? == b"DT";
    let has_headers = datum.index(OPTIONAL)? > 0;
    if !is_data || has_headers || datum.index(OPTIONAL)? == 0 {
        return Err(Reason::Shape);
    }
    let schema_id = schema_id(datum.bytes()?)?;
    if schema_id.is_empty() || datum.index(OPTIONAL)? > 0 {
        return Err(Reason::Shape);
    }
    let message = datum.bytes()?;
    if !datum.at_end() {
        return Err(Reason::Spelling);
    }
    Ok(Framed { is_registered: false, schema_id: Cow::Borrowed(schema_id), message })
}
