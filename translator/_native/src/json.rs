//! Texts as JSON, as the canonical encoder spells them.

/// Appends a text with its quotes.
pub fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    inside(out, text);
    out.push(b'"');
}

/// Appends a text as it stands between quotes.
pub fn inside(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
}
