//! Masks of columns: hex digits, the most significant first; bit n-1 is ordinal n.

use crate::reason::{Read, Reason};

/// A mask, stored as its digits without leading zeros.
#[derive(Clone, Copy)]
pub struct Mask<'a>(&'a [u8]);

impl<'a> Mask<'a> {
    /// Reads a non-empty text.
    pub fn read(text: &'a [u8]) -> Read<Self> {
        let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(Reason::Shape);
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        Ok(Self(&digits[zeros..]))
    }

    /// Returns whether the bit of an ordinal is set. Ordinals begin with 1.
    #[inline]
    pub fn has(self, ordinal: usize) -> bool {
        let (from_right, bit) = ((ordinal - 1) / 4, (ordinal - 1) % 4);
        from_right < self.0.len() && nibble(self.0[self.0.len() - 1 - from_right]) >> bit & 1 == 1
    }

    /// Returns the highest ordinal in the mask, or 0.
    pub fn highest(self) -> usize {
        match self.0.first() {
            None => 0,
            Some(first) => 4 * (self.0.len() - 1) + (u8::BITS - nibble(*first).leading_zeros()) as usize,
        }
    }

    /// Returns whether the mask has all ordinals up to this one.
    pub fn is_full(self, highest: usize) -> bool {
        (1..=highest).all(|ordinal| self.has(ordinal))
    }
}

#[inline]
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
