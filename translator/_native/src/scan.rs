//! One pass over the bytes of a JSON message in the spellings that writers use, usually without white space.

use crate::reason::{Read, Reason};

/// The position of a JSON string or `null` in the message, including its quotes.
#[derive(Clone, Copy, Default)]
pub struct Token {
    start: usize,
    end: usize,
    /// An escape that the canonical encoder would write differently, or not at all.
    pub odd: bool,
}

impl Token {
    /// The bytes as sent.
    #[inline]
    pub fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.end]
    }
}

/// A member of a row: a column and its text, or null.
#[derive(Clone, Copy)]
pub struct Cell {
    /// The name of the column, with its quotes.
    pub name: Token,
    /// The text with its quotes, or `null`.
    pub value: Token,
}

/// The rows of an array, as ranges of one list of cells. A null row has no cells.
#[derive(Default)]
pub struct Rows {
    cells: Vec<Cell>,
    ends: Vec<usize>,
}

impl Rows {
    /// Removes all rows but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.ends.clear();
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether no row has a cell.
    pub fn hold_nothing(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns whether a cell is neither a text nor null.
    pub fn hold_other_scalars(&self, bytes: &[u8]) -> bool {
        self.cells.iter().any(|cell| !matches!(cell.value.of(bytes)[0], b'"' | b'n'))
    }

    /// The cells of a row.
    pub fn row(&self, index: usize) -> &[Cell] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.cells[start..self.ends[index]]
    }
}

const PLAIN: u8 = 0;
const SPECIAL: u8 = 1;

/// Bytes that end the plain part of a string: the quote, the backslash, control characters.
static CLASS: [u8; 256] = {
    let mut table = [PLAIN; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = SPECIAL;
        byte += 1;
    }
    table[b'"' as usize] = SPECIAL;
    table[b'\\' as usize] = SPECIAL;
    table
};

/// Returns whether a byte represents itself in a string.
#[inline]
pub fn is_plain(byte: u8) -> bool {
    CLASS[usize::from(byte)] == PLAIN
}

/// A forward reader. It stops at anything that is not spelled in the shortest way.
pub struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Starts at the first byte of a message, which must be UTF-8.
    pub fn new(bytes: &'a [u8]) -> Read<Self> {
        std::str::from_utf8(bytes).map_err(|_| Reason::Spelling)?;
        Ok(Self { bytes, at: 0 })
    }

    /// The next byte.
    #[inline]
    pub fn peek(&self) -> Read<u8> {
        self.bytes.get(self.at).copied().ok_or(Reason::Spelling)
    }

    /// Consumes this byte.
    #[inline]
    pub fn expect(&mut self, byte: u8) -> Read<()> {
        if self.peek()? != byte {
            return Err(Reason::Spelling);
        }
        self.at += 1;
        Ok(())
    }

    /// Consumes this text if it comes next. Returns whether it did.
    #[inline]
    pub fn take(&mut self, text: &[u8]) -> bool {
        let comes = self.comes(text);
        if comes {
            self.at += text.len();
        }
        comes
    }

    /// Returns whether this text comes next.
    #[inline]
    pub fn comes(&self, text: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(text)
    }

    /// Consumes the name of a member, which must be this one, and its colon.
    pub fn member(&mut self, quoted: &[u8]) -> Read<()> {
        self.literal(quoted)?;
        self.mark(b':')
    }

    /// Returns whether everything was read.
    pub fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Consumes `,` and returns true, or the byte that ends a list or object and returns false.
    #[inline]
    pub fn more(&mut self, end: u8) -> Read<bool> {
        let byte = self.peek()?;
        if byte != b',' && byte != end {
            return Err(Reason::Spelling);
        }
        self.at += 1;
        Ok(byte == b',')
    }

    /// Reads a string.
    #[inline]
    pub fn string(&mut self) -> Read<Token> {
        let start = self.at;
        self.expect(b'"')?;
        let mut odd = false;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            if is_plain(byte) {
                continue;
            }
            match byte {
                b'"' => return Ok(Token { start, end: self.at, odd }),
                b'\\' => {
                    odd |= !matches!(self.peek()?, b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f');
                    self.at += 1;
                }
                _ => return Err(Reason::Spelling),
            }
        }
    }

    /// Reads a string or null.
    #[inline]
    pub fn string_or_null(&mut self) -> Read<Token> {
        if self.peek()? == b'"' {
            return self.string();
        }
        let start = self.at;
        self.literal(b"null")?;
        Ok(Token { start, end: self.at, odd: false })
    }

    /// Reads a string or null whose text is not decoded later.
    ///
    /// Only the escapes that every parser accepts are allowed. The plain path decides about other escapes.
    pub fn checked_string_or_null(&mut self) -> Read<Token> {
        let token = self.string_or_null()?;
        if token.odd {
            return Err(Reason::Spelling);
        }
        Ok(token)
    }

    /// Consumes exactly this literal.
    pub fn literal(&mut self, text: &[u8]) -> Read<()> {
        if self.take(text) {
            Ok(())
        } else {
            Err(Reason::Shape)
        }
    }

    /// Reads a number from 0 to 10^18 - 1, or null.
    pub fn count_or_null(&mut self) -> Read<Option<i64>> {
        if self.take(b"null") {
            return Ok(None);
        }
        let start = self.at;
        let mut number = 0i64;
        while let Some(digit) = self.bytes.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            if self.at - start == 18 {
                return Err(Reason::Shape);
            }
            number = number * 10 + i64::from(digit - b'0');
            self.at += 1;
        }
        let length = self.at - start;
        if length == 0 || (length > 1 && self.bytes[start] == b'0') {
            return Err(Reason::Shape);
        }
        Ok(Some(number))
    }

    /// Reads null or false.
    pub fn false_or_null(&mut self) -> Read<()> {
        if self.take(b"null") {
            return Ok(());
        }
        self.literal(b"false")
    }

    /// Reads an object of strings, integers and nulls, an array of strings, or null, and returns its bytes.
    ///
    /// The contents are checked when a layout is compiled from them, once for all messages with the same bytes.
    /// `likely` are the expected bytes of the value, or nothing.
    pub fn flat(&mut self, likely: &[u8]) -> Read<&'a [u8]> {
        let start = self.at;
        if !likely.is_empty() && self.take(likely) {
            return Ok(&self.bytes[start..self.at]);
        }
        match self.peek()? {
            b'{' => {
                self.at += 1;
                if !self.take(b"}") {
                    loop {
                        self.string()?;
                        self.expect(b':')?;
                        self.scalar()?;
                        if !self.more(b'}')? {
                            break;
                        }
                    }
                }
            }
            b'[' => {
                self.at += 1;
                if !self.take(b"]") {
                    loop {
                        self.string()?;
                        if !self.more(b']')? {
                            break;
                        }
                    }
                }
            }
            _ => self.literal(b"null")?,
        }
        Ok(&self.bytes[start..self.at])
    }

    /// Reads an object of scalars, with white space anywhere. Returns the number of members.
    pub fn object(&mut self, cells: &mut Vec<Cell>) -> Read<usize> {
        cells.clear();
        self.expect(b'{').map_err(|_| Reason::Shape)?;
        self.blanks();
        if self.take(b"}") {
            return Ok(0);
        }
        loop {
            let name = self.string()?;
            self.mark(b':')?;
            cells.push(Cell { name, value: self.any_scalar()? });
            if !self.goes_on(b'}')? {
                return Ok(cells.len());
            }
        }
    }

    /// Reads a string, a number, a boolean or null.
    #[inline]
    pub fn any_scalar(&mut self) -> Read<Token> {
        let start = self.at;
        let odd = match self.peek()? {
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                self.at += self.bytes[start..].iter().take_while(|byte| is_part(byte)).count();
                !is_plain_number(&self.bytes[start..self.at])
            }
            b't' => self.literal(b"true").map(|()| false)?,
            b'f' => self.literal(b"false").map(|()| false)?,
            _ => self.literal(b"null").map(|()| false)?,
        };
        Ok(Token { start, end: self.at, odd })
    }

    /// Skips white space, if any.
    #[inline]
    pub fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| is_blank(*byte)) {
            self.at += 1;
        }
    }

    /// Consumes this byte with the white space around it.
    #[inline]
    pub fn mark(&mut self, byte: u8) -> Read<()> {
        self.blanks();
        self.expect(byte)?;
        self.blanks();
        Ok(())
    }

    /// Consumes `,` or the byte that ends a list or object, like `more`, with the white space around it.
    #[inline]
    pub fn goes_on(&mut self, end: u8) -> Read<bool> {
        self.blanks();
        let goes_on = self.more(end)?;
        self.blanks();
        Ok(goes_on)
    }

    fn scalar(&mut self) -> Read<()> {
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => {
                self.at += 1;
                while self.peek()?.is_ascii_digit() {
                    self.at += 1;
                }
                Ok(())
            }
            _ => self.literal(b"null"),
        }
    }

    /// Reads an array of rows, each an object of scalars, or null if allowed. A null in place of the array means no
    /// rows. Unless `any_scalars` is set, the scalars are texts and nulls.
    pub fn rows(&mut self, rows: &mut Rows, null_rows: bool, any_scalars: bool) -> Read<()> {
        rows.clear();
        if self.take(b"null") {
            return Ok(());
        }
        self.expect(b'[').map_err(|_| Reason::Shape)?;
        if self.take(b"]") {
            return Ok(());
        }
        loop {
            if !(null_rows && self.take(b"null")) {
                self.expect(b'{').map_err(|_| Reason::Shape)?;
                if !self.take(b"}") {
                    loop {
                        let name = self.string()?;
                        self.expect(b':')?;
                        let value = if any_scalars { self.any_scalar()? } else { self.string_or_null()? };
                        rows.cells.push(Cell { name, value });
                        if !self.more(b'}')? {
                            break;
                        }
                    }
                }
            }
            rows.ends.push(rows.cells.len());
            if !self.more(b']')? {
                return Ok(());
            }
        }
    }
}

/// Returns a JSON text without the white space around its structural characters, or None if there is none.
///
/// Other white space outside strings is not JSON, and stays for the reader to reject.
pub fn without_blanks(text: &[u8]) -> Option<Vec<u8>> {
    let mut short = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let start = at;
        match text[at] {
            b'"' => at = end_of_string(text, at),
            byte if is_blank(byte) => {
                at += text[at..].iter().take_while(|byte| is_blank(**byte)).count();
                let touches = |byte: Option<&u8>| byte.map_or(true, |byte| b"{}[]:,".contains(byte));
                if touches(short.last()) || touches(text.get(at)) {
                    continue;
                }
            }
            _ => at += 1,
        }
        short.extend_from_slice(&text[start..at]);
    }
    (short.len() < text.len()).then_some(short)
}

/// Returns the position after a string that starts here, or the end of the text.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at.min(text.len())..]) {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        at += 1; // an escaped character
    }
    text.len()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// A JSON number with at most 18 digits before the point, no exponent, and no sign on zero.
fn is_plain_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, fraction) = match memchr::memchr(b'.', digits) {
        Some(point) => (&digits[..point], Some(&digits[point + 1..])),
        None => (digits, None),
    };
    are_digits(whole)
        && (whole.len() == 1 || whole[0] != b'0')
        && whole.len() <= 18
        && fraction.map_or(true, are_digits)
        && (digits.len() == text.len() || digits.iter().any(|byte| matches!(byte, b'1'..=b'9')))
}

/// Returns whether a text consists only of digits.
#[inline]
pub fn are_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// A whole number from 1 to 10^18 - 1.
pub fn count(sent: &[u8]) -> Read<i64> {
    if sent.len() > 18 || !sent.iter().all(u8::is_ascii_digit) || sent[0] == b'0' {
        return Err(Reason::Shape);
    }
    Ok(sent.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned<T>(text: &[u8], read: impl FnOnce(&mut Scanner<'_>) -> Read<T>) -> Result<T, ()> {
        let mut scanner = Scanner::new(text).map_err(|_| ())?;
        let read = read(&mut scanner).map_err(|_| ())?;
        scanner.at_end().then_some(read).ok_or(())
    }

    #[test]
    fn strings_end_at_their_quote() {
        for (text, odd) in [
            (&b"\"\""[..], false),
            (b"\"a b\"", false),
            (b"\"a\\\"b\"", false),
            (b"\"\\u00e9\"", true),
            (b"\"\\/\"", true),
            ("\"é\"".as_bytes(), false),
        ] {
            let token = scanned(text, |scanner| scanner.string()).expect("a string");
            assert_eq!((token.of(text), token.odd), (text, odd));
        }
        for text in [&b"\"a"[..], b"a", b"", b"\"a\\\"", b"\"a\nb\"", b"\"a\"b"] {
            assert!(scanned(text, |scanner| scanner.string()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_white_space_around_structure_is_removed() {
        for (text, short) in [
            (&b" {\"a\" : [1, 2 ],\t\"b\":\r\nnull } "[..], &b"{\"a\":[1,2],\"b\":null}"[..]),
            (b"{\"a b\" :\" , \\\" : \"}", b"{\"a b\":\" , \\\" : \"}"),
            (b"[1 2, tru e]", b"[1 2,tru e]"),
            (b" \"a", b"\"a"),
        ] {
            assert_eq!(without_blanks(text).as_deref(), Some(short));
        }
        for text in [&b""[..], b"{\"a b\":\" , \"}", b"\"a\\", b"1 2", b"\x0b1"] {
            assert_eq!(without_blanks(text), None, "{text:?}");
        }
    }

    #[test]
    fn checked_strings_have_only_the_escapes_that_every_parser_accepts() {
        for text in [&b"null"[..], b"\"\"", b"\"\\n\\t\\\\\""] {
            assert!(scanned(text, |scanner| scanner.checked_string_or_null()).is_ok(), "{text:?}");
        }
        for text in [&b"\"\\x\""[..], b"\"\\u12\"", b"\"\\ud800\"", b"true"] {
            assert!(scanned(text, |scanner| scanner.checked_string_or_null()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn counts_are_whole_numbers_without_a_sign() {
        for (text, number) in
            [(&b"0"[..], Some(0)), (b"7", Some(7)), (b"1764150000000", Some(1_764_150_000_000)), (b"null", None)]
        {
            assert_eq!(scanned(text, |scanner| scanner.count_or_null()), Ok(number));
        }
        for text in [&b"-1"[..], b"01", b"1.0", b"1e3", b"\"1\"", b"99999999999999999999", b""] {
            assert!(scanned(text, |scanner| scanner.count_or_null()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn rows_keep_their_cells_apart() {
        let text = b"[{\"a\":\"1\",\"b\":null},{},{\"a\":\"2\"}]";
        let mut rows = Rows::default();
        scanned(text, |scanner| scanner.rows(&mut rows, false, false)).expect("rows");
        let cells: Vec<usize> = (0..rows.len()).map(|index| rows.row(index).len()).collect();
        assert_eq!((cells, rows.hold_nothing()), (vec![2, 0, 1], false));
        assert_eq!(rows.row(2)[0].value.of(text), b"\"2\"");
    }

    #[test]
    fn a_null_row_is_allowed_only_where_it_is_asked_for() {
        for (null_rows, accepted) in [(true, true), (false, false)] {
            let mut rows = Rows::default();
            let read = scanned(b"[null]", |scanner| scanner.rows(&mut rows, null_rows, false));
            assert_eq!(read.is_ok(), accepted);
        }
        let mut rows = Rows::default();
        assert!(scanned(b"[{\"a\":{}}]", |scanner| scanner.rows(&mut rows, false, false)).is_err());
        assert!(scanned(b"[{\"a\":\"1\"}", |scanner| scanner.rows(&mut rows, false, false)).is_err());
    }
}
