//! A forward reader for Avro's binary encoding: every number in its shortest form, arrays and maps in one block.

use crate::reason::{Read, Reason};

/// Reads the fields of a datum in the order of its schema. Reading stops at the end of its bytes.
pub struct DatumReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> DatumReader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The position of the next field.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns whether everything was read.
    pub fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Returns the bytes read since this position.
    #[inline]
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// Consumes these bytes if they come next. Returns whether it did.
    #[inline]
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        let comes = self.bytes[self.at..].starts_with(bytes);
        if comes {
            self.at += bytes.len();
        }
        comes
    }

    /// Reads a long.
    #[inline]
    pub fn long(&mut self) -> Read<i64> {
        let first = self.byte()?;
        let mut bits = u64::from(first & 0x7f);
        let mut last = first;
        let mut shift = 7;
        while last >= 0x80 {
            last = self.byte()?;
            // The tenth byte contains the last bit of 64. A zero at the end would be a longer form.
            if last == 0 || (shift == 63 && last > 1) {
                return Err(Reason::Spelling);
            }
            bits |= u64::from(last & 0x7f) << shift;
            shift += 7;
        }
        Ok((bits >> 1) as i64 ^ -((bits & 1) as i64))
    }

    /// Reads an int.
    #[inline]
    pub fn int(&mut self) -> Read<i32> {
        i32::try_from(self.long()?).map_err(|_| Reason::Spelling)
    }

    /// Reads the index of a union with this many branches, or the ordinal of an enum with this many symbols.
    #[inline]
    pub fn index(&mut self, count: usize) -> Read<usize> {
        usize::try_from(self.long()?).ok().filter(|index| *index < count).ok_or(Reason::Shape)
    }

    /// Reads bytes.
    #[inline]
    pub fn bytes(&mut self) -> Read<&'a [u8]> {
        let length = usize::try_from(self.long()?).map_err(|_| Reason::Spelling)?;
        let rest = &self.bytes[self.at..];
        if length > rest.len() {
            return Err(Reason::Spelling);
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// Reads a text, which must be UTF-8.
    #[inline]
    pub fn text(&mut self) -> Read<&'a [u8]> {
        let text = self.bytes()?;
        std::str::from_utf8(text).map(|_| text).map_err(|_| Reason::Spelling)
    }

    /// Reads a boolean.
    pub fn boolean(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Reason::Spelling),
        }
    }

    /// Reads a double.
    #[inline]
    pub fn double(&mut self) -> Read<f64> {
        let number = self.bytes.get(self.at..self.at + 8).and_then(|bytes| bytes.try_into().ok());
        self.at += 8;
        number.map(f64::from_le_bytes).ok_or(Reason::Spelling)
    }

    /// Reads an array or map by calling `item` for each entry, and returns the number of entries, up to `most`.
    #[inline]
    pub fn items(&mut self, most: usize, mut item: impl FnMut(&mut Self) -> Read<()>) -> Read<usize> {
        let count = usize::try_from(self.long()?).map_err(|_| Reason::Spelling)?;
        if count > most {
            return Err(Reason::Size);
        }
        for _ in 0..count {
            item(self)?;
        }
        if count > 0 && self.byte()? != 0 {
            return Err(Reason::Spelling);
        }
        Ok(count)
    }

    #[inline]
    fn byte(&mut self) -> Read<u8> {
        let byte = self.bytes.get(self.at).copied().ok_or(Reason::Spelling)?;
        self.at += 1;
        Ok(byte)
    }
}
