//! Writes JSON as the canonical encoder spells it.

use std::io::Write;

use crate::scan::is_plain;

const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
