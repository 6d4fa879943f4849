//! The parts of Avro's binary encoding that an event needs.

/// The first branch of a union with null.
pub const NULL: u8 = 0;
/// The second branch of a union with null.
pub const SOME: u8 = 2;

/// Appends a long: zig-zag, then groups of seven bits, lowest first.
#[inline]
pub fn long(out: &mut Vec<u8>, number: i64) {
    let mut bits = ((number << 1) ^ (number >> 63)) as u64;
    while bits > 0x7f {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

/// Appends a text.
#[inline]
pub fn text(out: &mut Vec<u8>, text: &[u8]) {
    long(out, text.len() as i64);
    out.extend_from_slice(text);
}

/// Appends a text, in a union with null.
#[inline]
pub fn maybe_text(out: &mut Vec<u8>, text_or_null: Option<&[u8]>) {
    match text_or_null {
        None => out.push(NULL),
        Some(present) => {
            out.push(SOME);
            text(out, present);
        }
    }
}

/// Appends a long, in a union with null.
#[inline]
pub fn maybe_long(out: &mut Vec<u8>, number: Option<i64>) {
    match number {
        None => out.push(NULL),
        Some(present) => {
            out.push(SOME);
            long(out, present);
        }
    }
}

/// Returns what follows the first of these texts, or nothing if they are not texts.
pub fn after_text(texts: &[u8]) -> &[u8] {
    let mut length = 0usize;
    for (index, byte) in texts.iter().enumerate().take(4) {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return texts.get(index + 1 + length / 2..).unwrap_or_default();
        }
    }
    &[]
}

/// Appends an array or map of these items: one block unless it is empty, then the end.
#[inline]
pub fn block(out: &mut Vec<u8>, count: i64, items: &[u8]) {
    if count > 0 {
        long(out, count);
        out.extend_from_slice(items);
    }
    out.push(0);
}
