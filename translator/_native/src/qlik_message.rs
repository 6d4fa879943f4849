//! The members of a Qlik message in JSON, in the order in which Replicate writes them.

use crate::event::Transaction;
use crate::masks::Mask;
use crate::objects::{distinct, text, unquoted};
use crate::reason::{Read, Reason};
use crate::scan::{are_digits, count, Cell, Scanner, Token};
use crate::times::{is_date, two, utc_micros};

/// What stands before the id of the metadata in Replicate's envelope, by member.
const ENVELOPE: [(&[u8], &[u8]); 3] =
    [(b"\"magic\"", b"\"atMSG\""), (b"\"type\"", b"\"DT\""), (b"\"headers\"", b"null")];
const DATA: &[u8] = b"\"data\"";
const BEFORE: &[u8] = b"\"beforeData\"";
/// As in `translator/dialects/qlik/frame.py`.
const MAX_SCHEMA_ID: usize = 128;
/// Begins the ids under which schemas of a registry are learned.
pub const REGISTRY: &[u8] = b"registry/";

/// A data message.
pub struct QlikMessage<'a> {
    /// It came in Replicate's envelope.
    pub is_enveloped: bool,
    /// The id of its metadata; empty where it names none.
    pub schema_id: &'a [u8],
    /// What it says beside the row.
    pub headers: Headers<'a>,
}

/// The cells of both sections; none where a section is missing, null or empty.
#[derive(Default)]
pub struct Sections {
    /// Of `data`.
    pub data: Vec<Cell>,
    /// Of `beforeData`.
    pub before: Vec<Cell>,
}

/// What an operation does to its row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Insert,
    Update,
    Delete,
    Refresh,
}

impl Operation {
    /// By the number in the order of `translator/dialects/qlik/native_rows.py`.
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

/// Takes the envelope up to the members of what is in it; returns the id of the metadata, or nothing.
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

/// An id of metadata, which may be empty; one that is read otherwise is left to the plain way.
pub fn schema_id(sent: &[u8]) -> Read<&[u8]> {
    if sent.len() > MAX_SCHEMA_ID || sent.starts_with(REGISTRY) {
        return Err(Reason::Shape);
    }
    Ok(sent)
}

/// Takes the cells of a section, which another member follows.
fn section(scanner: &mut Scanner<'_>, cells: &mut Vec<Cell>) -> Read<()> {
    cells.clear();
    if !scanner.take(b"null") {
        scanner.object(cells)?;
    }
    scanner.mark(b',')
}

impl Sections {
    /// The row that an operation is about, and the one before an update; no cells where that is not there.
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
            // The Kafka key may have the row.
            if !has_value(row) {
                return Err(Reason::Key);
            }
        } else if row.is_empty() || has_value(other) {
            return Err(Reason::Shape);
        }
        // Nobody reads the other one, but it has to be JSON, with each column once.
        if other.iter().any(|cell| cell.value.odd) {
            return Err(Reason::Spelling);
        }
        distinct(other, value)?;
        Ok((row, &[]))
    }
}

/// The headers that are known, as `translator/dialects/qlik/sections.py` has them.
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

/// The headers, each as a scalar or not there.
pub struct Headers<'a> {
    value: &'a [u8],
    tokens: [Option<Token>; NAMES.len()],
}

impl<'a> Headers<'a> {
    /// Reads an object of scalars; a member that is not known, or there twice, is rare.
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

    /// A text without an escape; empty where it is missing, null or empty, which are the same.
    pub fn text(&self, header: usize) -> Read<&'a [u8]> {
        match self.tokens[header] {
            None => Ok(b""),
            Some(token) => Ok(optional(text_or_null(token, self.value)?)),
        }
    }

    /// The place of the change in its task; None where there is none.
    pub fn change_sequence(&self) -> Read<Option<&'a [u8]>> {
        match self.text(CHANGE_SEQUENCE)? {
            b"" => Ok(None),
            sequence if is_regular(sequence) => Ok(Some(sequence)),
            _ => Err(Reason::Cell),
        }
    }

    /// Microseconds since 1970; None where there are none.
    pub fn commit_us(&self) -> Read<Option<i64>> {
        match self.sent(TIMESTAMP) {
            b"null" | b"\"\"" => Ok(None),
            sent if sent[0] != b'"' => Err(Reason::Cell),
            sent => utc_micros(unquoted(sent)).map(Some).ok_or(Reason::Cell),
        }
    }

    /// The transaction, where there is one.
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

    /// A mask; None where nothing is known.
    pub fn mask(&self, header: usize) -> Read<Option<Mask<'a>>> {
        match self.text(header)? {
            b"" => Ok(None),
            digits => Mask::read(digits).map(Some),
        }
    }
}

/// A string without any escape, or null.
fn text_or_null(token: Token, value: &[u8]) -> Read<&[u8]> {
    match token.of(value) {
        b"null" => Ok(b"null"),
        _ => text(token, value),
    }
}

/// The content of a string; nothing of null.
fn optional(sent: &[u8]) -> &[u8] {
    if sent == b"null" {
        b""
    } else {
        unquoted(sent)
    }
}

/// 35 digits: a time to the hundredth of a second that there is, from the year 1000 on, and a number.
fn is_regular(sequence: &[u8]) -> bool {
    if sequence.len() != 35 || !are_digits(sequence) {
        return false;
    }
    let day = [&sequence[..4], b"-", &sequence[4..6], b"-", &sequence[6..8]].concat();
    is_date(&day) && two(&sequence[8..]) < 24 && two(&sequence[10..]) < 60 && two(&sequence[12..]) < 60
}
