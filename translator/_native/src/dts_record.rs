//! A DTS record: its fields in the order of `translator/dialects/dts_avro/record.v3.avsc`.

use crate::avro;
use crate::avro_read::DatumReader;
use crate::dts_cells::Cell;
use crate::reason::{Read, Reason};
use crate::row::Transaction;

// The branches of columns and images.
const ABSENT: usize = 0;
const LISTED: usize = 2;
const BRANCHES: usize = 3;

/// Maximum number of tags. A record rarely has more.
const MANY_TAGS: usize = 32;

/// Limits for the numbers of a record.
pub struct Bounds {
    /// The number of source types.
    pub source_types: usize,
    /// The number of operations.
    pub operations: usize,
    /// The maximum number of columns.
    pub columns: usize,
}

/// The fields of a common record.
pub struct Record<'a> {
    version: i32,
    id: i64,
    timestamp: i64,
    /// The position in the source.
    pub position: &'a [u8],
    safe_position: &'a [u8],
    txid: &'a [u8],
    /// By its ordinal.
    pub source_type: usize,
    /// By its ordinal.
    pub operation: usize,
    /// The name of the table with its database.
    pub object_name: &'a [u8],
    tags: Vec<(&'a [u8], &'a [u8])>,
    /// The bytes of the column list, which are checked when a layout is compiled from them.
    pub columns: &'a [u8],
    /// The before image.
    pub before: Option<Vec<Cell<'a>>>,
    /// The after image.
    pub after: Option<Vec<Cell<'a>>>,
    /// None in version 2 of the schema, which lacks this field.
    pub born: Option<i64>,
}

impl<'a> Record<'a> {
    /// Reads all bytes of a message.
    pub fn read(message: &'a [u8], bounds: &Bounds) -> Read<Self> {
        let datum = &mut DatumReader::new(message);
        let (version, id, timestamp) = (datum.int()?, datum.long()?, datum.long()?);
        let (position, safe_position, txid) = (datum.text()?, datum.text()?, datum.text()?);
        let source_type = datum.index(bounds.source_types)?;
        datum.text()?; // version of the source
        let operation = datum.index(bounds.operations)?;
        if datum.index(2)? == ABSENT {
            return Err(Reason::Shape);
        }
        let object_name = datum.text()?;
        if datum.index(2)? != ABSENT {
            return Err(Reason::Shape); // processTimestamps
        }
        let tags = tags(datum)?;
        let (columns, width) = columns(datum, bounds.columns)?;
        let before = image(datum, width, None)?;
        let after = image(datum, width, before.as_deref())?;
        let born = if datum.at_end() { None } else { Some(datum.long()?) };
        if !datum.at_end() {
            return Err(Reason::Shape);
        }
        Ok(Self {
            version,
            id,
            timestamp,
            position,
            safe_position,
            txid,
            source_type,
            operation,
            object_name,
            tags,
            columns,
            before,
            after,
            born,
        })
    }

    /// Returns the value of a tag.
    pub fn tag(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.tags.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Returns the transaction. MySQL writes the number `0` for every transaction.
    pub fn transaction(&self) -> Option<Transaction<'a>> {
        let name = if matches!(self.txid, b"" | b"0") { self.tag(b"GTID").unwrap_or_default() } else { self.txid };
        Transaction::named(name)
    }

    /// Returns the source time in microseconds. The writer sends it in seconds or milliseconds
    /// (`envelope_fields.time_us`).
    pub fn commit_us(&self) -> Option<i64> {
        match self.timestamp {
            1..=9_999_999_999 => Some(self.timestamp * 1_000_000),
            10_000_000_000..=99_999_999_999_999 => Some(self.timestamp * 1_000),
            _ => None,
        }
    }

    /// Returns the reader's time in microseconds. The writer sends it as text, in milliseconds.
    pub fn capture_us(&self) -> Option<i64> {
        let millis = self.tag(b"readerThroughoutTime")?;
        if millis.len() > 14 || !millis.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = millis.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Some(number * 1_000).filter(|time| *time != 0)
    }

    /// Returns the values that fit no field of an event, in Avro (`envelope_fields._extras`).
    pub fn extras(&self, has_binlog: bool) -> Vec<u8> {
        let (mut entries, mut count) = (Vec::new(), 0);
        let mut keep = |name: &[u8], text: &[u8]| {
            avro::text(&mut entries, name);
            avro::text(&mut entries, text);
            count += 1;
        };
        keep(b"version", self.version.to_string().as_bytes());
        keep(b"id", self.id.to_string().as_bytes());
        if let Some(born) = self.born {
            keep(b"bornTimestamp", born.to_string().as_bytes());
        }
        keep(b"safeSourcePosition", self.safe_position);
        keep(b"sourceTxid", self.txid);
        if let Some((offset, file)) = binlog(self.position).filter(|_| has_binlog) {
            keep(b"binlogOffset", offset);
            keep(b"binlogFile", file);
        }
        for (name, value) in &self.tags {
            keep(&[b"tag.", *name].concat(), value);
        }
        let mut ext = vec![avro::SOME];
        avro::block(&mut ext, count, &entries);
        ext
    }
}

fn tags<'a>(datum: &mut DatumReader<'a>) -> Read<Vec<(&'a [u8], &'a [u8])>> {
    let mut tags: Vec<(&[u8], &[u8])> = Vec::with_capacity(8);
    datum.items(MANY_TAGS, |datum| {
        let (name, value) = (datum.text()?, datum.text()?);
        if tags.iter().any(|(known, _)| *known == name) {
            return Err(Reason::Shape);
        }
        tags.push((name, value));
        Ok(())
    })?;
    Ok(tags)
}

/// Reads the list of columns. Returns its bytes and the number of columns.
fn columns<'a>(datum: &mut DatumReader<'a>, most: usize) -> Read<(&'a [u8], usize)> {
    if datum.index(BRANCHES)? != LISTED {
        return Err(Reason::Shape);
    }
    let start = datum.at();
    let width = datum.items(most, |datum| {
        datum.bytes()?; // name
        datum.int()?; // dataTypeNumber
        Ok(())
    })?;
    Ok((datum.since(start), width))
}

/// Reads an image with this many columns. A cell with the same bytes as in the other image is identical to that cell,
/// because a cell's bytes determine its end.
fn image<'a>(datum: &mut DatumReader<'a>, width: usize, like: Option<&[Cell<'a>]>) -> Read<Option<Vec<Cell<'a>>>> {
    match datum.index(BRANCHES)? {
        ABSENT => return Ok(None),
        LISTED => {}
        _ => return Err(Reason::Shape),
    }
    let like = like.unwrap_or_default();
    let mut cells = Vec::with_capacity(width);
    let count = datum.items(width, |datum| {
        let same = like.get(cells.len()).filter(|cell| datum.take(cell.sent));
        cells.push(match same {
            Some(cell) => cell.repeated(),
            None => Cell::read(datum)?,
        });
        Ok(())
    })?;
    if count != width {
        return Err(Reason::Columns);
    }
    Ok(Some(cells))
}

/// Returns the offset and the number of the binlog file, if the position has the form `offset@file`.
fn binlog(position: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'@', position)?;
    let (offset, file) = (&position[..at], &position[at + 1..]);
    let is_number = |text: &[u8]| (1..=19).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    (is_number(offset) && is_number(file)).then_some((offset, file))
}
