//! Writes JSON as the canonical encoder spells it.

use std::io::Write;

use crate::scan::is_plain;

const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The six bits that each letter of base64 represents.
static SEXTETS: [Option<u32>; 256] = {
    let mut table = [None; 256];
    let mut bits = 0;
    while bits < 64 {
        table[BASE64[bits] as usize] = Some(bits as u32);
        bits += 1;
    }
    table
};

/// Appends a text, which is UTF-8, with its quotes.
pub fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    inside(out, text);
    out.push(b'"');
}

/// Appends a UTF-8 text without its quotes.
pub fn inside(out: &mut Vec<u8>, text: &[u8]) {
    let mut copied = 0;
    for (at, byte) in text.iter().enumerate() {
        if !is_plain(*byte) {
            out.extend_from_slice(&text[copied..at]);
            escape(out, *byte);
            copied = at + 1;
        }
    }
    out.extend_from_slice(&text[copied..]);
}

/// Appends a number.
pub fn number(out: &mut Vec<u8>, number: i64) {
    // Writing to memory never fails.
    let _ = write!(out, "{number}");
}

/// Returns an array of texts that are already JSON.
pub fn array(texts: &[&[u8]]) -> Vec<u8> {
    [b"[", &texts.join(&b","[..])[..], b"]"].concat()
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Appends bytes as base64 with padding.
pub fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = BASE64[(bits >> (18 - 6 * place) & 0x3f) as usize];
            out.push(if place > three.len() { b'=' } else { letter });
        }
    }
    out.push(b'"');
}

/// Returns the bytes of a base64 text in its only canonical form, or None.
pub fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() % 4 != 0 {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|letter| **letter == b'=').count();
    let (mut bytes, mut bits) = (Vec::with_capacity(text.len() / 4 * 3), 0u32);
    for (index, letter) in text[..text.len() - padding].iter().enumerate() {
        bits = bits << 6 | SEXTETS[usize::from(*letter)]?;
        if index % 4 == 3 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            bits = 0;
        }
    }
    if padding > 0 {
        let bits = bits << (6 * padding);
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
        if bits.to_be_bytes()[4 - padding..].iter().any(|byte| *byte != 0) {
            return None;
        }
    }
    Some(bytes)
}

/// Returns the content of a JSON text that the canonical encoder wrote, or None if it has another escape.
pub fn unescaped(quoted: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?.iter();
    let mut out = Vec::with_capacity(quoted.len());
    while let Some(byte) = bytes.next() {
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        out.push(match bytes.next()? {
            byte @ (b'"' | b'\\') => *byte,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 0x08,
            b'f' => 0x0c,
            b'u' => {
                let digits: Vec<u8> = bytes.by_ref().take(4).copied().collect();
                let code = u8::from_str_radix(std::str::from_utf8(digits.strip_prefix(b"00")?).ok()?, 16).ok()?;
                Some(code).filter(|code| digits.len() == 4 && *code < 0x20)?
            }
            _ => return None,
        });
    }
    Some(out)
}
