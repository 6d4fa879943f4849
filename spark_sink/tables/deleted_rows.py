"""Remember a mirror's deleted rows in files next to the tables, where readers do not see them.

The position of a row is remembered after its delete, so that a late event cannot bring the row back. The rows that a
commit remembers are a generation. This is a file with the latest deleted rows, and its footer lists the older files
that still count. The commit's marker names the generation. Files are written before the commit and never change. If the
commit fails, no marker names the file. The repeated batch then writes another one.

A row in the table takes precedence over a deleted row with the same key. No file changes when the key is inserted
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from msgspec import Struct

from cdc_core.state_format import FORMAT, check_format, release
from spark_sink.events.arrow_values import counting
from spark_sink.model.event import Key
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_naming import RESERVED
from spark_sink.tables.changes import Marker
from spark_sink.tables.meta_columns import DELETED_AT, META_COLUMNS, POS, SCOPE, UPDATED_AT
from spark_sink.tables.reach import BOUNDED, Bounds, Reach, bounds_of

# The generation of a table without deleted rows that keeps them apart.
_EMPTY = 0

# Older files with up to this number of rows are merged into the next file. A larger file is merged once the next file
# has half as many rows. So the number of files grows with the logarithm of the number of rows.
_SMALL = 4096

# The number of rows in a row group. A lookup reads only the row groups that can contain its keys.
_GROUP = 16_384

# The size in bytes up to which a file is read as a whole.
_READ_WHOLE = 1 << 20

# The sink's own columns that are remembered. An earlier release did not write all of them.
REMEMBERED: Mapping[str, str] = {name: sql for name, sql in META_COLUMNS.items() if name != UPDATED_AT}

_FOOTER, _SUFFIX = b"cdc.deleted", ".parquet"

# A generation gets its number before its commit. At the end of a reload, hours can pass between them.
_UNCOMMITTED_DAYS = 1

# Microseconds. Cleaning follows the chain of generations by one link per day, because a busy table can have thousands
# of generations in a day, and reading the footer of a file is a request to the object store.
_LINK = 86_400_000_000


class _Part(Struct, frozen=True):
    """A file, the number of its rows, and the smallest and greatest values in its key columns."""

    number: int
    rows: int
    bounds: dict[str, tuple[str | int, str | int]]


class _Generation(Struct, frozen=True):
    """A file's footer.

    Args:
        parts: the files of the generation, newest first.
        apart: whether the table's deleted rows are in separate files.
        built: the rebuild that created the table; see `TableShape`.
        previous: the number of the table's last generation from an earlier day. None in a file from before the sink
            recorded this.
    """

    parts: tuple[_Part, ...] = ()
    apart: bool = True
    built: str = ""
    previous: int | None = None


class _Stamp(Struct, frozen=True):
    """The part of a footer that is the same in every format. If a file is from before release 0.1.0, it has no
    format.
    """

    format: int = 0
    release: str = ""


def marker_app(shape: TableShape) -> str:
    """Return the app of the marker whose version is a generation. The marker does not depend on the checkpoint. A
    rebuilt table does not remember the deleted rows of the table that it replaces.
    """
    return f"cdc.deleted@{shape.built}" if shape.built else "cdc.deleted"


def has_files(warehouse: str, name: str) -> bool:
    """Return whether a table has, or had, deleted rows stored outside it."""
    folder = fs.PyFileSystem(DeltaStorageHandler(warehouse)).get_file_info(_folder(name))
    return bool(folder.type == fs.FileType.Directory)


class DeletedRows:
    """A mirror's deleted rows, as of the version of the table that was opened.

    Args:
        warehouse: the folder of the tables.
        name: the table's name.
        number: the generation. If no commit has named one, it is None, and the table itself contains its deleted rows.
    """

    def __init__(self, warehouse: str, name: str, shape: TableShape, number: int | None) -> None:
        self._warehouse = warehouse
        self._folder = _folder(name)
        self._shape = shape
        self._number = number
        self._before: int | None = None
        self._begun: tuple[Marker, ...] = ()
        self._known: dict[int, _Generation] = {}
        self._open: dict[int, pq.ParquetFile] = {}

    @property
    def are_apart(self) -> bool:
        """Return whether deleted rows are remembered in these files and not in the table."""
        return self._number is not None and self._generation.apart

    @property
    def markers(self) -> tuple[Marker, ...]:
        """The marker that names the generation, if the generation has one."""
        return () if self._number is None else (Marker(marker_app(self._shape), self._number),)

    def use_newest(self) -> None:
        """Use the newest file, because the marker that names the generation has been lost. If the file belongs to a
        commit that failed, it also has rows that are still in the table. The table takes precedence.
        """
        for number in sorted(self._present(), reverse=True):
            with suppress(pa.ArrowInvalid):  # writing the file failed
                if self._of(number).built == self._shape.built:
                    self._number = number
                    break

    def find(self, names: Sequence[str], floors: Mapping[str, str], reach: Reach | None = None) -> pa.Table:
        """Return these columns of the deleted rows, each key once. Rows at or below the floors are left out.

        Args:
            reach: the keys to find, or None for all of them. The result may contain other rows.
        """
        columns = tuple(dict.fromkeys((*self._shape.key, SCOPE, POS, *names)))
        bounds = {} if reach is None else bounds_of(reach, self._shape.types)
        parts = [part for part in self._generation.parts if _overlap(part.bounds, bounds)]
        read = [self._read(part.number, columns, bounds) for part in parts]
        found = self.first_of_each_key(_above(pa.concat_tables(read), floors)) if read else self._no_rows(columns)
        return found.select(list(dict.fromkeys(names)))

    def first_of_each_key(self, rows: pa.Table) -> pa.Table:
        """Return the rows, leaving out those whose key already occurs in an earlier row."""
        # No key column has such a name.
        places = rows.select(list(self._shape.key)).append_column("\0", counting(rows.num_rows))
        first = places.group_by(list(self._shape.key)).aggregate([("\0", "min")]).column("\0_min")
        return rows if len(first) == rows.num_rows else rows.take(first.take(pc.sort_indices(first)))

    def forget(self, before: int) -> None:
        """Leave rows out of the next generation that earlier commits deleted before a time (microseconds, UTC)."""
        self._before = before

    def remember(self, rows: pa.Table, floors: Mapping[str, str]) -> tuple[Marker, ...]:
        """Write the generation that follows when a commit deletes these rows. Return the markers for the commit. If the
        generation stays the same, the result is empty.

        Args:
            rows: the key columns and the sink's own columns. There may be others.
        """
        parts = list(self._generation.parts)
        if not rows.num_rows and (self._before is None or not parts):
            begun, self._begun = self._begun, ()
            return begun
        columns = (*self._shape.key, *REMEMBERED)
        latest = self._as_remembered(rows, columns)
        while parts and (self._before is not None or parts[0].rows <= max(_SMALL, 2 * latest.num_rows)):
            older = self._read(parts.pop(0).number, columns, {})
            if self._before is not None:
                limit = pa.scalar(self._before, pa.timestamp("us", "UTC"))
                older = older.filter(pc.greater_equal(older.column(DELETED_AT), limit))
            latest = self.first_of_each_key(_above(pa.concat_tables([latest, older]), floors))
        self._begun = ()
        return (self._put(latest, parts),)

    def begin(self, *, apart: bool) -> None:
        """Begin a generation without rows. It records where deleted rows are from now on. `remember` returns its marker
        for the next commit.
        """
        if apart and self._number is None:
            self._number = _EMPTY
            self._begun = (Marker(marker_app(self._shape), _EMPTY),)
        else:
            self._begun = (self._put(self._no_rows((*self._shape.key, *REMEMBERED)), [], apart=apart),)

    def clean(self, days: float) -> int:
        """Delete the files that no version from the last days refers to, and return how many were deleted.

        These versions need all generations since then, and the last one before. The chain leads to that generation or
        to an earlier one, and later files are kept. Until the table has a generation from before that time, nothing is
        deleted. Older files may belong to a table that a rebuild has replaced.
        """
        limit = int((time.time() - (days + _UNCOMMITTED_DAYS) * 86_400) * 1_000_000)
        present, number, needed = set(self._present()), self._number, set[int]()
        while number in present:
            generation = self._of(number)
            needed |= {number, *(part.number for part in generation.parts)}
            if number < limit:
                break
            number = generation.previous
        else:
            return 0
        end = limit if number == self._number else number
        unneeded = [one for one in present - needed if one < end]
        for one in unneeded:
            self._files.delete_file(self._path(one))
        return len(unneeded)

    def erase(self, is_erased: Callable[[Key], bool]) -> int:
        """Remove rows from all files, even from those that only earlier versions of the table refer to. Return the
        number of rows.

        The files keep their names, so no commit is needed. Replacing a file is atomic.
        """
        erased, parts = 0, dict[int, _Part | None]()
        for number in sorted(self._present()):
            try:
                generation, rows = self._of(number), self._file(number).read()
            except pa.ArrowInvalid:  # writing the file failed
                generation, rows = _Generation(built="?"), pa.table({})
            if generation.built != self._shape.built:
                self._files.delete_file(self._path(number))
                continue
            keys = zip(*(rows.column(name).to_pylist() for name in self._shape.key), strict=True)
            kept = rows.filter(pa.array([not is_erased(key) for key in keys], pa.bool_()))
            erased += rows.num_rows - kept.num_rows
            older = [parts.get(part.number, part) for part in generation.parts if part.number != number]
            parts[number] = self._part(number, kept)
            generation = msgspec.structs.replace(generation, parts=tuple(filter(None, (parts[number], *older))))
            if generation != self._of(number):
                self._write(number, kept, generation)
                self._open.pop(number)
        return erased

    @property
    def _generation(self) -> _Generation:
        return self._of(self._number or _EMPTY)

    def _of(self, number: int) -> _Generation:
        if number == _EMPTY:
            return _Generation()
        if number not in self._known:
            footer = self._file(number).metadata.metadata[_FOOTER]
            stamp = msgspec.json.decode(footer, type=_Stamp)
            check_format(str(stamp.format), f"the file {self._path(number)}", stamp.release)
            self._known[number] = msgspec.json.decode(footer, type=_Generation)
        return self._known[number]

    def _file(self, number: int) -> pq.ParquetFile:
        """Open a file. A small file is read as a whole, because each partial read is a request to the object store."""
        if number not in self._open:
            opened = self._files.open_input_file(self._path(number))
            if opened.size() <= _READ_WHOLE:
                with opened:
                    opened = pa.BufferReader(opened.read())
            self._open[number] = pq.ParquetFile(opened)
        return self._open[number]

    def _put(self, rows: pa.Table, older: Sequence[_Part], *, apart: bool = True) -> Marker:
        # Delta Lake ignores a marker that is not greater than the one before.
        replaced = self._number or _EMPTY
        number = max(replaced + 1, time.time_ns() // 1000)
        parts = tuple(filter(None, (self._part(number, rows), *older)))
        previous = replaced if replaced // _LINK < number // _LINK else self._generation.previous
        self._write(number, rows, _Generation(parts, apart, self._shape.built, previous))
        self._number, self._before = number, None
        return Marker(marker_app(self._shape), number)

    def _part(self, number: int, rows: pa.Table) -> _Part | None:
        return _Part(number, rows.num_rows, _bounds(rows, self._bounded)) if rows.num_rows else None

    def _write(self, number: int, rows: pa.Table, generation: _Generation) -> None:
        if self._bounded:
            rows = rows.sort_by([(name, "ascending") for name in self._bounded])
        footer = msgspec.structs.asdict(_Stamp(FORMAT, release())) | msgspec.structs.asdict(generation)
        stamped = rows.replace_schema_metadata({_FOOTER: msgspec.json.encode(footer)})
        pq.write_table(stamped, self._path(number), row_group_size=_GROUP, filesystem=self._files)
        self._known[number] = generation

    @property
    def _bounded(self) -> list[str]:
        return [name for name in self._shape.key if self._shape.types[name] in BOUNDED]

    def _read(self, number: int, columns: Sequence[str], bounds: Bounds) -> pa.Table:
        """Return the rows of a file that might have keys within the bounds. There may be others."""
        file = self._file(number)
        names = file.schema_arrow.names
        groups = [group for group in range(file.num_row_groups) if _overlap(_statistics(file, group), bounds)]
        return self._as_remembered(file.read_row_groups(groups, [name for name in columns if name in names]), columns)

    def _as_remembered(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return these columns with their current types. If the rows lack a column, it is NULL."""
        return pa.table(
            {
                name: rows.column(name).cast(type) if name in rows.column_names else pa.nulls(rows.num_rows, type)
                for name, type in self._types(columns).items()
            }
        )

    def _no_rows(self, columns: Sequence[str]) -> pa.Table:
        return pa.Table.from_batches([], pa.schema(list(self._types(columns).items())))

    def _types(self, columns: Sequence[str]) -> dict[str, pa.DataType]:
        sql = {**self._shape.types, **REMEMBERED}
        return {name: arrow_type(sql[name]) for name in columns}

    def _present(self) -> list[int]:
        found = self._files.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        return [int(file.base_name.removesuffix(_SUFFIX)) for file in found if file.base_name.endswith(_SUFFIX)]

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number}{_SUFFIX}"

    @cached_property
    def _files(self) -> fs.FileSystem:
        return fs.PyFileSystem(DeltaStorageHandler(self._warehouse))


def _folder(name: str) -> str:
    return f"{RESERVED}/deleted/{name.replace('.', '/')}"


def _bounds(rows: pa.Table, names: Sequence[str]) -> dict[str, tuple[str | int, str | int]]:
    found = ((name, pc.min_max(rows.column(name)).as_py()) for name in names)
    return {name: (bounds["min"], bounds["max"]) for name, bounds in found}


def _above(rows: pa.Table, floors: Mapping[str, str]) -> pa.Table:
    """Return the rows that are above their scope's floor."""
    for scope, floor in floors.items():
        under = pc.and_(pc.equal(rows.column(SCOPE), scope), pc.less_equal(rows.column(POS), floor))
        rows = rows.filter(pc.invert(under))
    return rows


def _statistics(file: pq.ParquetFile, group: int) -> Bounds:
    """Return the smallest and greatest values in the columns of a row group, as far as the file contains them."""
    columns = file.metadata.row_group(group)
    found = ((name, columns.column(i).statistics) for i, name in enumerate(file.schema_arrow.names))
    return {name: (one.min, one.max) for name, one in found if one is not None and one.has_min_max}


def _overlap(held: Bounds, wanted: Bounds) -> bool:
    """Return whether a file with these bounds might contain the wanted keys."""
    for name, (least, greatest) in wanted.items():
        low, high = held.get(name, (least, greatest))
        # A column's type can have changed since the file was written.
        if isinstance(low, str) is isinstance(least, str) and (high < least or low > greatest):  # type: ignore[operator]
            return False
    return True
