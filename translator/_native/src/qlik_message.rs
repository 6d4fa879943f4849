//! The members of a Qlik message in JSON, in the order in which Replicate writes them.

use crate::masks::Mask;
use crate::objects::{distinct, text, unquoted};
use crate::reason::{Read, Reason};
use crate::row::Transaction;
use crate::scan::{are_digits, count, Cell, Scanner, Token};
use crate::times::{is_date, two, utc_micros};

/// The members before the metadata id in Replicate's envelope.
const ENVELOPE: [(&[u8], &[u8]); 3] =
    [(b"\"magic\"", b"\"atMSG\""), (b"\"type\"", b"\"DT\""), (b"\"headers\"", b"null")];
const DATA: &[u8] = b"\"data\"";
const BEFORE: &[u8] = b"\"beforeData\"";
/// The same as in `translator/dialects/qlik/frame.py`.
const MAX_SCHEMA_ID: usize = 128;
/// Prefix of the ids under which registry schemas are learned.
pub const REGISTRY: &[u8] = b"registry/";

/// A data message.
pub struct QlikMessage<'a> {
    /// The message was in Replicate's envelope.
    pub is_enveloped: bool,
    /// The id of the message's metadata; empty if the message refers to none.
    pub schema_id: &'a [u8],
    /// Its headers.
    pub headers: Headers<'a>,
}

/// The cells of both sections. A section that is missing, null or empty has no cells.
#[derive(Default)]
pub struct Sections {
    /// The cells of `data`.
    pub data: Vec<Cell>,
    /// The cells of `beforeData`.
    pub before: Vec<Cell>,
}

/// The effect of an operation on its row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Insert,
    Update,
    Delete,
    Refresh,
}

impl Operation {
    /// By number, in the order of `translator/dialects/qlik/native_rows.py`.
    pub const ALL: [Self; 4] = [Self::Insert, Self::Update, Self::Delete, Self::Refresh];
}

/// Reads a message, and the cells of its sections.
pub fn read<'a>(value: &'a [u8], sections: &mut Sections) -> Read<QlikMessage<'a>> {
    let mut scanner = Scanner::new(value)?;
    scanner.mark(b'{')?;
    let is_enveloped = !scanner.comes(DATA);
    let schema_id = if is_enveloped { open_envelope(&mut scanner, value)? } else { b"" };
    scanner.member(DATA)?;
    section(&mut scanner, &mut sections.data)?;
    sections.before.clear();
    if scanner.comes(BEFORE) {
        scanner.member(BEFORE)?;
        section(&mut scanner, &mut sections.before)?;
    }
    scanner.member(b"\"headers\"")?;
    let headers = Headers::read(&mut scanner, value)?;
    scanner.mark(b'}')?;
    if is_enveloped {
        scanner.mark(b'}')?;
    }
    if !scanner.at_end() {
        return Err(Reason::Spelling);
    }
    Ok(QlikMessage { is_enveloped, schema_id, headers })
}

/// Reads the envelope up to the members of its content. Returns the id of the metadata, or nothing.
fn open_envelope<'a>(scanner: &mut Scanner<'a>, value: &'a [u8]) -> Read<&'a [u8]> {
    for (name, content) in ENVELOPE {
        scanner.member(name)?;
        scanner.literal(content)?;
        scanner.mark(b',')?;
    }
    scanner.member(b"\"messageSchemaId\"")?;
    let schema_id = schema_id(optional(text_or_null(scanner.string_or_null()?, value)?))?;
    scanner.mark(b',')?;
    scanner.member(b"\"messageSchema\"")?;
    scanner.literal(b"null")?;
    scanner.mark(b',')?;
    scanner.member(b"\"message\"")?;
    scanner.mark(b'{')?;
    Ok(schema_id)
}

/// Reads a metadata id, which can be empty. An unusual one is left to the plain path.
pub fn schema_id(sent: &[u8]) -> Read<&[u8]> {
    if sent.len() > MAX_SCHEMA_ID || sent.starts_with(REGISTRY) {
        return Err(Reason::Shape);
    }
    Ok(sent)
}

/// Reads the cells of a section that is followed by another member.
fn section(scanner: &mut Scanner<'_>, cells: &mut Vec<Cell>) -> Read<()> {
    cells.clear();
    if !scanner.take(b"null") {
        scanner.object(cells)?;
    }
    scanner.mark(b',')
}

impl Sections {
    /// Returns the row of an operation, and the before image of an update, which has no cells if it does not exist.
    pub fn rows(&self, operation: Operation, value: &[u8]) -> Read<(&[Cell], &[Cell])> {
        let has_value = |cells: &[Cell]| cells.iter().any(|cell| cell.value.of(value) != b"null");
        let (data, before) = (&self.data[..], &self.before[..]);
        let (row, other) = match operation {
            Operation::Update if data.is_empty() => return Err(Reason::Shape),
            Operation::Update => return Ok((data, before)),
            Operation::Delete if has_value(before) => (before, data),
            _ => (data, before),
        };
        if operation == Operation::Delete {
            // The Kafka key can contain the row.
            if !has_value(row) {
                return Err(Reason::Key);
            }
        } else if row.is_empty() || has_value(other) {
            return Err(Reason::Shape);
        }
        // The other section is not used, but it must be JSON with distinct column names.
        if other.iter().any(|cell| cell.value.odd) {
            return Err(Reason::Spelling);
        }
        distinct(other, value)?;
        Ok((row, &[]))
    }
}

/// The known headers, as in `translator/dialects/qlik/sections.py`.
const NAMES: [&[u8]; 12] = [
    b"\"operation\"",
    b"\"changeSequence\"",
    b"\"timestamp\"",
    b"\"streamPosition\"",
    b"\"transactionId\"",
    b"\"changeMask\"",
    b"\"columnMask\"",
    b"\"transactionEventCounter\"",
    b"\"transactionLastEvent\"",
    b"\"externalSchemaId\"",
    b"\"schema\"",
    b"\"table\"",
];
const OPERATION: usize = 0;
const CHANGE_SEQUENCE: usize = 1;
const TIMESTAMP: usize = 2;
pub const STREAM_POSITION: usize = 3;
const TRANSACTION_ID: usize = 4;
pub const CHANGE_MASK: usize = 5;
pub const COLUMN_MASK: usize = 6;
const COUNTER: usize = 7;
const LAST_EVENT: usize = 8;
pub const EXTERNAL_SCHEMA_ID: usize = 9;
pub const SCHEMA: usize = 10;
pub const TABLE: usize = 11;

/// The headers, each a scalar or missing.
pub struct Headers<'a> {
    value: &'a [u8],
    tokens: [Option<Token>; NAMES.len()],
}

impl<'a> Headers<'a> {
    /// Reads an object of scalars. Unknown or repeated members are rare and not supported.
    fn read(scanner: &mut Scanner<'_>, value: &'a [u8]) -> Read<Self> {
        scanner.mark(b'{')?;
        let mut headers = Self { value, tokens: [None; NAMES.len()] };
        let mut expected = 0;
        loop {
            let name = scanner.string()?;
            scanner.mark(b':')?;
            let token = scanner.any_scalar()?;
            let mut places = (0..NAMES.len()).map(|step| (expected + step) % NAMES.len());
            let found = places.find(|index| NAMES[*index] == name.of(value)).ok_or(Reason::Shape)?;
            if headers.tokens[found].replace(token).is_some() || token.odd {
                return Err(Reason::Shape);
            }
            expected = found + 1;
            if !scanner.goes_on(b'}')? {
                return Ok(headers);
            }
        }
    }

    fn sent(&self, header: usize) -> &'a [u8] {
        self.tokens[header].map_or(b"null", |token| token.of(self.value))
    }

    /// The word for the operation, as JSON.
    pub fn operation(&self) -> &'a [u8] {
        self.sent(OPERATION)
    }

    /// A text without escapes. Missing, null and empty are the same.
    pub fn text(&self, header: usize) -> Read<&'a [u8]> {
        match self.tokens[header] {
            None => Ok(b""),
            Some(token) => Ok(optional(text_or_null(token, self.value)?)),
        }
    }

    /// Returns the position of the change in its task, or None.
    pub fn change_sequence(&self) -> Read<Option<&'a [u8]>> {
        match self.text(CHANGE_SEQUENCE)? {
            b"" => Ok(None),
            sequence if is_regular(sequence) => Ok(Some(sequence)),
            _ => Err(Reason::Cell),
        }
    }

    /// Returns microseconds since 1970, or None.
    pub fn commit_us(&self) -> Read<Option<i64>> {
        match self.sent(TIMESTAMP) {
            b"null" | b"\"\"" => Ok(None),
            sent if sent[0] != b'"' => Err(Reason::Cell),
            sent => utc_micros(unquoted(sent)).map(Some).ok_or(Reason::Cell),
        }
    }

    /// Returns the transaction, if there is one.
    pub fn transaction(&self) -> Read<Option<Transaction<'a>>> {
        let id = self.text(TRANSACTION_ID)?;
        let seq = match self.sent(COUNTER) {
            b"null" => None,
            sent => Some(count(sent)?),
        };
        let last = match self.sent(LAST_EVENT) {
            b"null" => None,
            b"false" => Some(false),
            b"true" => Some(true),
            _ => return Err(Reason::Shape),
        };
        Ok(Transaction::named(id).map(|named| Transaction { seq, last, ..named }))
    }

    /// Returns a mask, or None if it is unknown.
    pub fn mask(&self, header: usize) -> Read<Option<Mask<'a>>> {
        match self.text(header)? {
            b"" => Ok(None),
            digits => Mask::read(digits).map(Some),
        }
    }
}

/// A string without escapes, or null.
fn text_or_null(token: Token, value: &[u8]) -> Read<&[u8]> {
    match token.of(value) {
        b"null" => Ok(b"null"),
        _ => text(token, value),
    }
}

/// The content of a string; nothing for null.
fn optional(sent: &[u8]) -> &[u8] {
    if sent == b"null" {
        b""
    } else {
        unquoted(sent)
    }
}

/// 35 digits: a valid time in hundredths of a second, from the year 1000 on, and a number.
fn is_regular(sequence: &[u8]) -> bool {
    if sequence.len() != 35 || !are_digits(sequence) {
        return false;
    }
    let day = [&sequence[..4], b"-", &sequence[4..6], b"-", &sequence[6..8]].concat();
    is_date(&day) && two(&sequence[8..]) < 24 && two(&sequence[10..]) < 60 && two(&sequence[12..]) < 60
}
