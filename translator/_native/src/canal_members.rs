//! The members of a Canal message.

use crate::reason::{Read, Reason};
use crate::scan::{Rows, Scanner};

/// The supported types, by the index of their operation.
const OPERATIONS: [&[u8]; 3] = [b"\"INSERT\"", b"\"UPDATE\"", b"\"DELETE\""];
/// The range of times in milliseconds (`translator/dialects/canal/time_units.py`). Others are rare.
const MILLISECONDS: std::ops::Range<i64> = 10_000_000_000..100_000_000_000_000;

/// The members of a message except its rows. Texts include their quotes.
#[derive(Default)]
pub struct Members<'a> {
    pub database: &'a [u8],
    pub table: &'a [u8],
    pub types: &'a [u8],
    pub sql_types: &'a [u8],
    pub key: &'a [u8],
    pub operation: Option<usize>,
    pub es: Option<i64>,
    pub ts: Option<i64>,
    pub id: Option<i64>,
    pub commit_ts: Option<i64>,
    pub gtid: Option<&'a [u8]>,
}

/// Reads the members of one message.
pub struct MemberReader<'a> {
    /// Receives the rows of `data`.
    pub data: &'a mut Rows,
    /// Receives the rows of `old`.
    pub old: &'a mut Rows,
    /// The likely texts of `mysqlType` and `sqlType`. An equal text is not scanned again.
    pub likely: (&'a [u8], &'a [u8]),
    /// `_tidb` can be present.
    pub tidb: bool,
    /// Cells can be numbers and booleans.
    pub any_scalars: bool,
}

impl Members<'_> {
    /// Returns whether the message does not describe its columns.
    pub fn are_untyped(&self) -> bool {
        matches!(self.types, b"" | b"null" | b"{}")
    }
}

impl MemberReader<'_> {
    /// Reads all members. No member may be repeated or unknown.
    pub fn read<'v>(&mut self, value: &'v [u8]) -> Read<Members<'v>> {
        let mut scanner = Scanner::new(value)?;
        let mut members = Members { database: b"null", key: b"null", ..Members::default() };
        let mut seen = 0u32;
        self.data.clear();
        self.old.clear();
        scanner.expect(b'{')?;
        loop {
            let name = scanner.string()?;
            scanner.expect(b':')?;
            let member = self.member(name.of(value), &mut scanner, value, &mut members)?;
            if seen & (1 << member) != 0 {
                return Err(Reason::Shape);
            }
            seen |= 1 << member;
            if !scanner.more(b'}')? {
                break;
            }
        }
        let no_milliseconds = |ms: Option<i64>| ms.is_some_and(|ms| !MILLISECONDS.contains(&ms));
        if !scanner.at_end() || members.table.len() <= 2 || no_milliseconds(members.es) || no_milliseconds(members.ts) {
            return Err(Reason::Shape);
        }
        Ok(members)
    }

    /// Reads the value of one member. Returns the number of the member.
    #[inline]
    fn member<'v>(
        &mut self,
        name: &[u8],
        scanner: &mut Scanner<'v>,
        value: &'v [u8],
        members: &mut Members<'v>,
    ) -> Read<u8> {
        Ok(match name {
            b"\"data\"" => {
                scanner.rows(self.data, false, self.any_scalars)?;
                0
            }
            b"\"old\"" => {
                scanner.rows(self.old, true, self.any_scalars)?;
                1
            }
            b"\"database\"" => {
                members.database = scanner.string_or_null()?.of(value);
                2
            }
            b"\"table\"" => {
                members.table = scanner.string()?.of(value);
                3
            }
            b"\"mysqlType\"" => {
                members.types = scanner.flat(self.likely.0)?;
                4
            }
            b"\"sqlType\"" => {
                members.sql_types = scanner.flat(self.likely.1)?;
                5
            }
            b"\"pkNames\"" => {
                members.key = scanner.flat(b"")?;
                6
            }
            b"\"es\"" => {
                members.es = scanner.count_or_null()?;
                7
            }
            b"\"ts\"" => {
                members.ts = scanner.count_or_null()?;
                8
            }
            b"\"id\"" => {
                members.id = scanner.count_or_null()?;
                9
            }
            b"\"gtid\"" => {
                members.gtid = Some(scanner.checked_string_or_null()?.of(value));
                10
            }
            b"\"sql\"" => {
                scanner.checked_string_or_null()?;
                11
            }
            b"\"isDdl\"" => {
                scanner.false_or_null()?;
                12
            }
            b"\"type\"" => {
                members.operation = operation(scanner.string()?.of(value));
                13
            }
            b"\"_tidb\"" if self.tidb => {
                members.commit_ts = Some(commit_ts(scanner)?);
                14
            }
            _ => return Err(Reason::Shape),
        })
    }
}

/// TiCDC's member in a row that is sent like any other.
fn commit_ts(scanner: &mut Scanner<'_>) -> Read<i64> {
    scanner.literal(b"{\"commitTs\":")?;
    let number = scanner.count_or_null()?.ok_or(Reason::Shape)?;
    scanner.literal(b"}")?;
    Ok(number)
}

fn operation(type_: &[u8]) -> Option<usize> {
    OPERATIONS.iter().position(|known| *known == type_)
}
