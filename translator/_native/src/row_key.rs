//! The key of a row, and how an update changes it: `_key` in `translator/translation/event_builders.py`.

use crate::notes;
use crate::reason::{Read, Reason};
use crate::row::Row;

/// The note on an event whose row had another key before.
const KEY_CHANGED: &[u8] = b"PK_CHANGED";

/// The key of a row, as JSON.
#[derive(Default)]
pub struct Key {
    /// None if the table has no key.
    pub now: Option<Vec<u8>>,
    /// The key before the change, if it changed.
    pub old: Option<Vec<u8>>,
}

impl Key {
    /// Returns the key of a row that did not exist before, or no longer exists.
    pub fn of<'a>(names: &[Vec<u8>], value_at: impl Fn(usize) -> Option<&'a [u8]>) -> Read<Self> {
        Ok(Self { now: key_of(names, value_at)?, old: None })
    }

    /// Returns the key of an updated row, from the values of its key columns in both images.
    ///
    /// A missing old value means that the column did not change.
    pub fn updated<'a>(
        names: &[Vec<u8>],
        new_at: impl Fn(usize) -> Option<&'a [u8]>,
        old_at: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Read<Self> {
        let mut is_moved = false;
        for at in 0..names.len() {
            if let (Some(new), Some(old)) = (new_at(at), old_at(at)) {
                is_moved |= differs(new, old)?;
            }
        }
        let old = if is_moved { key_of(names, old_at)? } else { None };
        Ok(Self { now: key_of(names, new_at)?, old })
    }

    /// Writes the keys of the row, and the note about a key that changed. The notes are in Avro.
    pub fn describe<'a>(&'a self, row: &mut Row<'a>, notes: &'a mut Vec<u8>) {
        row.key = self.now.as_deref();
        row.key_old = self.old.as_deref();
        if self.old.is_some() {
            *notes = notes::with(row.notes, KEY_CHANGED);
            row.notes = notes;
        }
    }
}

/// Returns the key of a row as JSON, from these columns and their values, or None if the table has no key.
///
/// A key with NULL or with a missing column is not supported.
fn key_of<'a>(names: &[Vec<u8>], value_at: impl Fn(usize) -> Option<&'a [u8]>) -> Read<Option<Vec<u8>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let mut key = Vec::with_capacity(64);
    for (at, name) in names.iter().enumerate() {
        let value = value_at(at).filter(|value| *value != b"null").ok_or(Reason::Key)?;
        key.push(if at == 0 { b'{' } else { b',' });
        key.extend_from_slice(name);
        key.push(b':');
        key.extend_from_slice(value);
    }
    key.push(b'}');
    Ok(Some(key))
}

/// Returns whether two canonical values of a column differ. A zero with a sign equals a zero without a sign and is left
/// to the plain path.
pub fn differs(one: &[u8], other: &[u8]) -> Read<bool> {
    let is_zero = |value: &[u8]| matches!(value, b"0.0" | b"-0.0");
    if one != other && is_zero(one) && is_zero(other) {
        return Err(Reason::Cell);
    }
    Ok(one != other)
}
