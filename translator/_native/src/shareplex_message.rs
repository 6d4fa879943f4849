//! The members of a SharePlex message: `meta`, `data` and `key`.

use crate::objects::{distinct, text, unquoted};
use crate::reason::{Read, Reason};
use crate::row::Transaction;
use crate::scan::{count, Cell, Scanner, Token};

/// The members of `meta`. Texts include their quotes.
#[derive(Default)]
pub struct Meta<'a> {
    pub op: &'a [u8],
    pub table: &'a [u8],
    pub time: Option<&'a [u8]>,
    pub posttime: Option<&'a [u8]>,
    pub scn: Option<&'a [u8]>,
    pub host: &'a [u8],
    pub trans: Option<&'a [u8]>,
    pub seq: Option<i64>,
    pub size: Option<i64>,
    pub idx: Option<&'a [u8]>,
    pub userid: Option<&'a [u8]>,
    pub rowid: Option<&'a [u8]>,
}

/// Reads all members of a message. No member may be repeated or unknown. Returns whether there is a `key`.
pub fn members<'a>(value: &'a [u8], data: &mut Vec<Cell>, key: &mut Vec<Cell>) -> Read<(Meta<'a>, bool)> {
    let mut scanner = Scanner::new(value)?;
    let mut found = None;
    let mut seen = 0u8;
    let mut has_key = false;
    data.clear();
    key.clear();
    scanner.expect(b'{')?;
    loop {
        let member = match scanner.string()?.of(value) {
            b"\"meta\"" => {
                scanner.expect(b':')?;
                found = Some(read_meta(&mut scanner, value)?);
                1
            }
            b"\"data\"" => {
                scanner.expect(b':')?;
                scanner.object(data)?;
                2
            }
            b"\"key\"" => {
                scanner.expect(b':')?;
                if !scanner.take(b"null") {
                    scanner.object(key)?;
                    has_key = !key.is_empty();
                }
                4
            }
            _ => return Err(Reason::Shape),
        };
        if seen & member != 0 {
            return Err(Reason::Shape);
        }
        seen |= member;
        scanner.blanks();
        if !scanner.more(b'}')? {
            break;
        }
    }
    // `key` belongs to updates. An empty one in other operations is rare.
    if !scanner.at_end() || seen & 3 != 3 || (seen & 4 != 0 && !has_key) {
        return Err(Reason::Shape);
    }
    distinct(data, value)?;
    distinct(key, value)?;
    Ok((found.ok_or(Reason::Shape)?, has_key))
}

fn read_meta<'a>(scanner: &mut Scanner<'a>, value: &'a [u8]) -> Read<Meta<'a>> {
    let mut meta = Meta { host: b"", ..Meta::default() };
    let mut seen = 0u16;
    scanner.expect(b'{').map_err(|_| Reason::Shape)?;
    loop {
        let name = scanner.string()?;
        scanner.expect(b':')?;
        let token = scanner.any_scalar()?;
        let sent = token.of(value);
        let member = match name.of(value) {
            b"\"op\"" => {
                meta.op = text(token, value)?;
                0
            }
            b"\"table\"" => {
                meta.table = text(token, value)?;
                1
            }
            b"\"time\"" => {
                meta.time = Some(text(token, value)?);
                2
            }
            b"\"posttime\"" => {
                meta.posttime = Some(text(token, value)?);
                3
            }
            b"\"scn\"" => {
                meta.scn = Some(word(token, value)?);
                4
            }
            b"\"host\"" => {
                meta.host = text(token, value)?;
                5
            }
            b"\"trans\"" => {
                meta.trans = Some(word(token, value)?);
                6
            }
            b"\"seq\"" => {
                meta.seq = Some(count(sent)?);
                7
            }
            b"\"size\"" => {
                meta.size = Some(count(sent)?);
                8
            }
            b"\"idx\"" => {
                meta.idx = Some(text(token, value)?);
                9
            }
            b"\"userid\"" => {
                meta.userid = Some(word(token, value)?);
                10
            }
            b"\"rowid\"" => {
                meta.rowid = Some(text(token, value)?);
                11
            }
            _ => return Err(Reason::Shape),
        };
        if seen & (1 << member) != 0 {
            return Err(Reason::Shape);
        }
        seen |= 1 << member;
        if !scanner.more(b'}')? {
            break;
        }
    }
    if meta.op.is_empty() || meta.table.len() <= 2 || meta.host == b"\"\"" {
        return Err(Reason::Shape);
    }
    Ok(meta)
}

/// A non-empty string, or a whole number.
fn word(token: Token, value: &[u8]) -> Read<&[u8]> {
    let sent = token.of(value);
    if sent[0] == b'"' {
        return if sent.len() > 2 { text(token, value) } else { Err(Reason::Shape) };
    }
    let digits = sent.strip_prefix(b"-").unwrap_or(sent);
    if token.odd || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Reason::Shape);
    }
    Ok(sent)
}

/// Returns the transaction. Contradictory sizes are left to the plain path.
pub fn transaction<'a>(meta: &Meta<'a>) -> Read<Option<Transaction<'a>>> {
    let Some(trans) = meta.trans else {
        let counts = meta.seq.is_some() || meta.size.is_some() || meta.idx.is_some();
        return if counts { Err(Reason::Shape) } else { Ok(None) };
    };
    let whole = match (meta.seq, meta.size) {
        (Some(seq), Some(size)) => Some((seq, size)),
        _ => None,
    };
    if let Some(idx) = meta.idx {
        let (seq, size) = whole.ok_or(Reason::Shape)?;
        if unquoted(idx) != format!("{seq}/{size}").as_bytes() {
            return Err(Reason::Shape);
        }
    }
    if whole.is_some_and(|(seq, size)| seq > size) {
        return Err(Reason::Shape);
    }
    let last = whole.map(|(seq, size)| seq == size);
    Ok(Some(Transaction { id: unquoted(trans), seq: meta.seq, size: meta.size, last }))
}
