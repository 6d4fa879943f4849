//! The images of a Qlik row according to its masks, and the properties of the event:
//! `translator/dialects/qlik/rows.py`.

use crate::avro;
use crate::masks::Mask;
use crate::notes::Notes;
use crate::objects::{are_key, distinct, position, unquoted, CellWriter};
use crate::qlik_message::{Headers, Operation, CHANGE_MASK, COLUMN_MASK};
use crate::reason::{Read, Reason};
use crate::row::{Image, Row, STATE_FULL, STATE_KEY, STATE_NONE, STATE_PARTIAL};
use crate::row_key::Key;
use crate::scan::Cell;
use crate::table::Table;

/// Names of columns, as Avro texts.
#[derive(Default)]
pub struct Names {
    count: i64,
    names: Vec<u8>,
}

impl Names {
    fn clear(&mut self) {
        self.count = 0;
        self.names.clear();
    }

    fn add(&mut self, avro_name: &[u8]) {
        self.names.extend_from_slice(avro_name);
        self.count += 1;
    }

    /// Returns their number, and all of them.
    pub fn written(&self) -> (i64, &[u8]) {
        (self.count, &self.names)
    }

    /// The same, or None if there are none.
    pub fn any(&self) -> Option<(i64, &[u8])> {
        (self.count > 0).then_some(self.written())
    }
}

/// A row: the captured cells, and their image.
#[derive(Default)]
pub struct Section {
    /// The image.
    pub image: Image,
    /// In Avro.
    pub state: &'static [u8],
    cells: Vec<Cell>,
}

/// Both rows of one message, with their properties.
#[derive(Default)]
pub struct Rows {
    /// The row that the operation is about.
    pub row: Section,
    /// The before image of an update.
    pub before: Section,
    /// The before image was sent.
    pub has_before: bool,
    /// The columns changed by the update.
    pub changed: Names,
    /// The changed columns are known.
    pub has_changed: bool,
    /// The columns of the row whose values were not captured.
    pub withheld: Names,
    /// The assumptions.
    pub notes: Notes,
    /// Whether the events refer to the schema of the table.
    pub with_schema: bool,
    /// The key of the row.
    pub key: Key,
}

impl Rows {
    /// Returns what the event contains about the row.
    pub fn told<'a>(&'a self, table: &'a Table, operation: Operation, notes: &'a [u8], ext: &'a [u8]) -> Row<'a> {
        let row = Row {
            index: 0,
            record_key: &table.record_key,
            key: None,
            key_old: None,
            key_kind: &table.key_kind,
            before: self.has_before.then_some(&self.before.image.json),
            after: Some(&self.row.image.json),
            before_state: self.before.state,
            after_state: self.row.state,
            changed: self.has_changed.then_some(self.changed.written()),
            unavailable: self.withheld.any(),
            notes,
            ext,
        };
        if operation != Operation::Delete {
            return row;
        }
        Row { before: row.after, after: None, before_state: self.row.state, after_state: STATE_NONE, ..row }
    }
}

/// Reads the rows of one message.
pub struct RowReader<'a> {
    writer: CellWriter<'a>,
    operation: Operation,
    /// The captured columns, or None if unknown.
    column_mask: Option<Mask<'a>>,
    /// The changed columns, or None if unknown.
    change_mask: Option<Mask<'a>>,
}

impl<'a> RowReader<'a> {
    /// Creates a reader from the table of the rows and the masks in the headers.
    pub fn new(writer: CellWriter<'a>, headers: &Headers<'a>, operation: Operation) -> Read<Self> {
        Ok(Self { writer, operation, column_mask: headers.mask(COLUMN_MASK)?, change_mask: headers.mask(CHANGE_MASK)? })
    }

    /// Reads the row of the operation, and the before image, which has no cells if it was not sent.
    pub fn read(&self, row: &[Cell], before: &[Cell], rows: &mut Rows) -> Read<()> {
        let (value, table) = (self.writer.value, self.writer.table);
        for cells in [row, before] {
            if !table.names(cells, value) {
                distinct(cells, value)?;
            }
        }
        rows.changed.clear();
        rows.withheld.clear();
        rows.notes = Notes::default();
        let gaps = self.gaps(row, before, &mut rows.notes)?;
        self.section(before, row, gaps, &mut rows.before, &mut Names::default())?;
        self.section(row, row, gaps, &mut rows.row, &mut rows.withheld)?;
        if self.column_mask.is_none()
            && self.operation != Operation::Refresh
            && row.iter().any(|cell| self.is_null(cell))
        {
            rows.notes.add(b"NULLS_ASSUMED");
        }
        // A before image with only nulls was not sent, unless every row of the table can look like that.
        rows.has_before =
            !before.is_empty() && (table.key_names.is_empty() || !before.iter().all(|cell| self.is_null(cell)));
        rows.has_changed = self.operation == Operation::Update && self.change_mask.is_some() && !table.has_lobs;
        if rows.has_changed {
            self.change(row, rows)?;
        }
        if table.has_lobs && rows.has_before && self.operation == Operation::Update {
            self.check_old_nulls(row, rows)?;
        }
        rows.with_schema = !(self.names_strays(row) || self.names_strays(before));
        if !rows.with_schema {
            rows.notes.add(b"COLUMNS_UNDECLARED");
        }
        rows.row.state = self.state(&rows.row, rows.with_schema);
        rows.before.state = if rows.has_before { self.state(&rows.before, rows.with_schema) } else { STATE_NONE };
        rows.key = self.key(rows)?;
        Ok(())
    }

    fn is_null(&self, cell: &Cell) -> bool {
        cell.value.of(self.writer.value) == b"null"
    }

    /// Returns the mask of captured columns if it leaves out any column. Bits beyond all columns belong to another
    /// table.
    fn gaps(&self, row: &[Cell], before: &[Cell], notes: &mut Notes) -> Read<Option<Mask<'a>>> {
        if self.column_mask.is_none() && self.change_mask.is_none() {
            return Ok(None);
        }
        let ordinals = &self.writer.table.ordinals;
        let highest = ordinals.last().copied().unwrap_or(row.len());
        if [self.column_mask, self.change_mask].into_iter().flatten().any(|mask| mask.highest() > highest) {
            return Err(Reason::Columns);
        }
        if ordinals.is_empty() {
            notes.add(b"MASK_ORDINALS_ASSUMED");
            before.iter().enumerate().try_for_each(|(index, cell)| self.ordinal(cell, index, row).map(|_| ()))?;
        }
        Ok(self.column_mask.filter(|mask| !mask.is_full(highest)))
    }

    /// Returns the bit of a cell in masks: from metadata, or else its position in the row.
    fn ordinal(&self, cell: &Cell, expected: usize, row: &[Cell]) -> Read<usize> {
        let (value, table) = (self.writer.value, self.writer.table);
        if table.ordinals.is_empty() {
            return place(cell, row, expected, value).map(|index| index + 1).ok_or(Reason::Columns);
        }
        Ok(table.ordinals[table.column_of(cell, value, expected)?])
    }

    /// Writes the image of the captured part of a row. A value that was not captured disproves the mask.
    fn section(
        &self,
        sent: &[Cell],
        row: &[Cell],
        gaps: Option<Mask<'_>>,
        section: &mut Section,
        withheld: &mut Names,
    ) -> Read<()> {
        section.cells.clear();
        match gaps {
            None => section.cells.extend_from_slice(sent),
            Some(mask) => {
                for (index, cell) in sent.iter().enumerate() {
                    if mask.has(self.ordinal(cell, index, row)?) {
                        section.cells.push(*cell);
                    } else if self.is_null(cell) {
                        withheld.add(&self.avro_name(cell, index));
                    } else {
                        return Err(Reason::Columns);
                    }
                }
            }
        }
        self.writer.image(&section.cells, &mut section.image)
    }

    fn avro_name(&self, cell: &Cell, expected: usize) -> Vec<u8> {
        let (value, table) = (self.writer.value, self.writer.table);
        match table.column_of(cell, value, expected) {
            Ok(index) => table.columns[index].avro_name.clone(),
            Err(_) => {
                let mut name = Vec::new();
                avro::text(&mut name, unquoted(cell.name.of(value)));
                name
            }
        }
    }

    /// Lists the changed columns. If the images differ in another column, the mask is ignored.
    fn change(&self, sent: &[Cell], rows: &mut Rows) -> Read<()> {
        let (value, table) = (self.writer.value, self.writer.table);
        let mask = self.change_mask.ok_or(Reason::Panic)?;
        for (column, ordinal) in table.columns.iter().zip(&table.ordinals) {
            if mask.has(*ordinal) {
                rows.changed.add(&column.avro_name);
            }
        }
        if table.ordinals.is_empty() {
            for (index, cell) in sent.iter().enumerate().filter(|(index, _)| mask.has(index + 1)) {
                rows.changed.add(&self.avro_name(cell, index));
            }
        }
        if !rows.has_before {
            return Ok(());
        }
        for (index, cell) in rows.before.cells.iter().enumerate() {
            let after = place(cell, &rows.row.cells, index, value).map(|at| rows.row.image.value(at));
            let differs = after.is_some_and(|after| after != rows.before.image.value(index));
            if differs && !mask.has(self.ordinal(cell, index, sent)?) {
                return Err(Reason::Columns);
            }
        }
        Ok(())
    }

    /// Leaves a row to the plain path if its table has LOBs and its mask disproves a null in the before image.
    fn check_old_nulls(&self, sent: &[Cell], rows: &Rows) -> Read<()> {
        let Some(mask) = self.change_mask else {
            return Ok(());
        };
        for (index, cell) in rows.before.cells.iter().enumerate().filter(|(_, cell)| self.is_null(cell)) {
            let after = place(cell, &rows.row.cells, index, self.writer.value);
            let has_value = after.is_some_and(|at| !self.is_null(&rows.row.cells[at]));
            if has_value && !mask.has(self.ordinal(cell, index, sent)?) {
                return Err(Reason::Columns);
            }
        }
        Ok(())
    }

    /// Returns whether a row has undeclared columns although others are declared.
    fn names_strays(&self, cells: &[Cell]) -> bool {
        let (value, table) = (self.writer.value, self.writer.table);
        let may = table.undeclared.is_some() && !table.columns.is_empty();
        may && cells.iter().enumerate().any(|(index, cell)| table.column_of(cell, value, index).is_err())
    }

    /// The state of an image, in Avro.
    fn state(&self, section: &Section, with_schema: bool) -> &'static [u8] {
        let table = self.writer.table;
        if with_schema && !table.columns.is_empty() && section.cells.len() == table.columns.len() {
            STATE_FULL
        } else if are_key(&table.key_names, &section.cells, self.writer.value) {
            STATE_KEY
        } else {
            STATE_PARTIAL
        }
    }

    /// Returns the key of the row.
    fn key(&self, rows: &Rows) -> Read<Key> {
        let names = &self.writer.table.key_names;
        let of = |section: &'_ Section, at: usize| position(&names[at], &section.cells, self.writer.value);
        let new_at = |at: usize| of(&rows.row, at).map(|index| rows.row.image.value(index));
        let old_at = |at: usize| of(&rows.before, at).map(|index| rows.before.image.value(index));
        if rows.has_before {
            Key::updated(names, new_at, old_at)
        } else {
            Key::of(names, new_at)
        }
    }
}

/// Returns the index of a cell's column among others, searched from the expected position.
fn place(cell: &Cell, cells: &[Cell], expected: usize, value: &[u8]) -> Option<usize> {
    let name = cell.name.of(value);
    match cells.get(expected) {
        Some(other) if other.name.of(value) == name => Some(expected),
        _ => position(name, cells, value),
    }
}
