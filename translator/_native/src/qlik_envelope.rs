//! Replicate's envelope in Avro.

use crate::avro_read::DatumReader;
use crate::qlik_message::schema_id;
use crate::reason::{Read, Reason};

/// The first bytes of an envelope.
pub const MAGIC: &[u8] = b"atMSG";

/// The branches of a union of null and something.
const OPTIONAL: usize = 2;

/// A data message in an envelope that names its metadata and has no schema of its own.
pub struct Envelope<'a> {
    /// The id of its metadata.
    pub schema_id: &'a [u8],
    /// The record, still in Avro.
    pub message: &'a [u8],
}

/// Reads an envelope that begins with its magic.
pub fn open(value: &[u8]) -> Read<Envelope<'_>> {
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
    Ok(Envelope { schema_id, message })
}
