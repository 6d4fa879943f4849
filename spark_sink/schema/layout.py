"""Layouts of table files (`tables.layout`), and the conditions under which a table can have one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from spark_sink.errors import Reason, Refused
from spark_sink.schema.column_types import has_statistics
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import SOURCE, Format, Mode, match_rule


class WriteMode(StrEnum):
    """The place where Iceberg stores changes to existing rows: next to the data files, or in new data files."""

    MERGE_ON_READ = "merge-on-read"
    COPY_ON_WRITE = "copy-on-write"


class Feature(StrEnum):
    """The Delta Lake features that a layout can enable."""

    CHANGE_DATA_FEED = "change_data_feed"
    COLUMN_MAPPING = "column_mapping"
    DELETION_VECTORS = "deletion_vectors"


class Transform(StrEnum):
    """The value by which rows are partitioned, taken from a column."""

    IDENTITY = "identity"
    BUCKET = "bucket"
    DAY = "day"
    MONTH = "month"


# deltalake writes tables with this feature. Spark writes tables with any other.
_OF_DELTALAKE = frozenset({Feature.CHANGE_DATA_FEED})

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})

# The column types that each transform accepts. Delta Lake's partition values are text: an empty text would be read as
# NULL, and deltalake writes negative decimals incorrectly. In Iceberg, a partition's value is part of the names of its
# files, so a long text would be an impossible name, and storage errors would show texts from rows.
_ACCEPTS: Mapping[Format, Mapping[Transform, frozenset[str]]] = {
    Format.DELTA: {Transform.IDENTITY: _NUMBERS | {"date", "boolean"}},
    Format.ICEBERG: {
        Transform.IDENTITY: _NUMBERS | {"date", "boolean"},
        Transform.BUCKET: _NUMBERS | {"string"},
        Transform.DAY: frozenset({"date", "timestamp", "timestamp_ntz"}),
        Transform.MONTH: frozenset({"date", "timestamp", "timestamp_ntz"}),
    },
}

_MAX_BUCKETS = 4096

_BUCKET = re.compile(r"bucket\((\d+), *([^()]+)\)")
_TIME = re.compile(r"(day|month)\(([^()]+)\)")
_COLUMN = re.compile(r"[^()]+")


class Partition(NamedTuple):
    """One part of a table's partitioning. `buckets` is the number of buckets, or 0 if there are none."""

    transform: Transform
    column: str
    buckets: int = 0

    @classmethod
    def parse(cls, text: str) -> Partition:
        """Parse `column`, `day(column)`, `month(column)` or `bucket(16, column)`.

        Raises:
            ValueError: the text has another format.
        """
        text = text.strip()
        if found := _BUCKET.fullmatch(text):
            if not 2 <= int(found[1]) <= _MAX_BUCKETS:
                raise ValueError(f"{text!r} has {found[1]} buckets, but the number must be 2 to {_MAX_BUCKETS}")
            return cls(Transform.BUCKET, found[2].strip(), int(found[1]))
        if found := _TIME.fullmatch(text):
            return cls(Transform(found[1]), found[2].strip())
        if _COLUMN.fullmatch(text):
            return cls(Transform.IDENTITY, text)
        raise ValueError(
            f"{text!r} is not a partition; write a column, day(column), month(column) or bucket(NUMBER, column)"
        )

    def field_names(self) -> frozenset[str]:
        """Return the names that Iceberg may give to the partition. No column may have one of them."""
        if self.transform is Transform.IDENTITY:
            return frozenset()
        name = f"{self.column}_{self.transform}"
        return frozenset({name, f"{name}_{self.buckets}"})

    def __str__(self) -> str:
        if self.transform is Transform.IDENTITY:
            return self.column
        return f"{self.transform}({f'{self.buckets}, ' if self.buckets else ''}{self.column})"


class SortKey(NamedTuple):
    """A column by which the rows within files are sorted."""

    column: str
    descending: bool = False

    @classmethod
    def parse(cls, text: str) -> SortKey:
        """Parse `column`, `column asc` or `column desc`."""
        column, _, direction = text.strip().rpartition(" ")
        if column and direction.lower() in ("asc", "desc"):
            return cls(column.strip(), direction.lower() == "desc")
        return cls(text.strip())

    def __str__(self) -> str:
        return f"{self.column} desc" if self.descending else self.column


@dataclass(frozen=True)
class FileLayout:
    """A table's layout. If a setting has no value, the table behaves as if it had no layout.

    Args:
        cluster: the columns of Delta's liquid clustering.
        file_megabytes: the size up to which maintenance merges smaller files.
        changing: whether a change from or to this layout is unfinished.
    """

    partition: tuple[Partition, ...] = ()
    sort: tuple[SortKey, ...] = ()
    cluster: tuple[str, ...] = ()
    format_version: int | None = None
    write_mode: WriteMode | None = None
    features: tuple[Feature, ...] = ()
    file_megabytes: int | None = None
    changing: bool = False

    @property
    def parted_by(self) -> list[str]:
        """The columns whose values determine a row's partition."""
        return [part.column for part in self.partition]

    @property
    def needs_spark(self) -> bool:
        """Return whether Spark has to write Delta tables with this layout, because deltalake lacks a feature."""
        return bool(self._lacking)

    @property
    def _lacking(self) -> list[str]:
        return [*(name for name in self.features if name not in _OF_DELTALAKE), *["cluster"] * bool(self.cluster)]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> FileLayout:
        """Return the layout with these settings. This is the reverse of `settings`.

        Raises:
            ValueError: a setting has a wrong format.
        """
        return cls(
            tuple(map(Partition.parse, settings.get("partition", ()))),
            tuple(map(SortKey.parse, settings.get("sort", ()))),
            tuple(settings.get("cluster", ())),
            settings.get("format_version"),
            WriteMode(settings["write_mode"]) if settings.get("write_mode") else None,
            tuple(sorted(set(map(Feature, settings.get("features", ()))))),
            settings.get("file_megabytes"),
            settings.get("changing", False),
        )

    def settings(self) -> dict[str, Any]:
        """Return the settings that have values, in the format of the configuration."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: [str(one) for one in value] if isinstance(value, tuple) else value
            for name, value in found.items()
            if value not in ((), None, False)
        }

    def while_changing_to(self, other: FileLayout) -> FileLayout:
        """Return the layout to record before a change begins. A table may keep the features of both layouts."""
        features = tuple(sorted({*self.features, *other.features}))
        return replace(self, features=features, cluster=self.cluster or other.cluster, changing=True)


NO_LAYOUT = FileLayout()

# Keyed by table name or pattern.
FileLayouts = Mapping[str, FileLayout]

NO_LAYOUTS: FileLayouts = MappingProxyType({})

_ONLY: Mapping[Format, Sequence[str]] = {
    Format.DELTA: ("cluster", "features"),
    Format.ICEBERG: ("sort", "format_version", "write_mode"),
}


def layout_for(name: str, layouts: FileLayouts) -> FileLayout | None:
    """Return the configured layout for a table, or None if the configuration has none."""
    return match_rule(name, layouts)


def contradiction(layout: FileLayout) -> str | None:
    """Return why no table can have this layout, or None if one can."""
    of = {format: [name for name in names if getattr(layout, name)] for format, names in _ONLY.items()}
    if all(of.values()):
        names = ", ".join(name for some in of.values() for name in some)
        return (
            f"{names} cannot be combined: {' and '.join(_ONLY[Format.DELTA])} are for Delta tables; "
            f"{_listed(_ONLY[Format.ICEBERG])} are for Iceberg tables"
        )
    if layout.cluster and layout.partition:
        return "partition and cluster: a Delta table is either partitioned or clustered"
    columns = {"partition": layout.parted_by, "cluster": layout.cluster, "sort": [one.column for one in layout.sort]}
    for setting, named in columns.items():
        counts = Counter(map(str.lower, named))
        twice = [name for name in named if counts[name.lower()] > 1]
        if twice:
            return f"{setting} names the column {twice[0]} twice; a column can be used only once"
    return None


def check_layout(layout: FileLayout, shape: TableShape, format: Format) -> None:
    """Raise an error unless a table can have this layout.

    Raises:
        Refused: the table cannot have it. The message lists all reasons.
    """
    if found := list(_objections(layout, shape, format)):
        raise Refused(Reason.TABLE_REFUSED, f"tables.layout cannot be applied: {'; '.join(found)}")


def new_layout(name: str, shape: TableShape, format: Format, layouts: FileLayouts) -> FileLayout:
    """Return the layout for a new table.

    Raises:
        Refused: a table of this shape cannot have the configured layout.
    """
    layout = layout_for(name, layouts) or NO_LAYOUT
    check_layout(layout, shape, format)
    return layout


def _objections(layout: FileLayout, shape: TableShape, format: Format) -> Iterator[str]:
    for other, names in _ONLY.items():
        wrong = [name for name in names if getattr(layout, name)]
        if other is not format and wrong:
            yield f"{_listed(wrong)} can only be set for {other} tables, but this is a table with format {format}"
    sorted_by = [order.column for order in layout.sort]
    missing = [name for name in (*layout.parted_by, *layout.cluster, *sorted_by) if name not in shape.types]
    if missing:
        yield f"the table has no column {_listed(missing)}; its columns are {_listed(sorted(shape.types))}"
    yield from _partition_objections(layout, shape, format)
    unknown = [name for name in layout.cluster if name in shape.types and not has_statistics(shape.types[name])]
    for name in unknown:
        yield f"cluster: {name} has the type {shape.types[name]}, for which the table has no statistics"
    if layout.needs_spark and shape.mode is not Mode.MIRROR and format is Format.DELTA:
        yield f"deltalake writes tables with mode {shape.mode}, and does not support {_listed(layout._lacking)}"


def _partition_objections(layout: FileLayout, shape: TableShape, format: Format) -> Iterator[str]:
    accepts = _ACCEPTS[format]
    for part in layout.partition:
        if part.transform not in accepts:
            allowed = _listed(sorted(accepts))
            yield f"partition {part}: tables with format {format} have no {part.transform} partitions, only {allowed}"
        elif format is Format.ICEBERG and (taken := part.field_names() & shape.types.keys()):
            yield f"partition {part}: Iceberg would name the partition {min(taken)}, like a column of the table"
        elif part.column in shape.types and shape.types[part.column] not in accepts[part.transform]:
            allowed = _listed(sorted(accepts[part.transform]))
            yield (
                f"partition {part}: {part.column} has the type {shape.types[part.column]}, but {part.transform} "
                f"partitions of tables with format {format} need one of {allowed}"
            )
    if format is Format.DELTA and shape.types and not shape.types.keys() - set(layout.parted_by) - {SOURCE}:
        yield "a Delta table needs a column that is not a partition column"


def differences(stored: FileLayout, wanted: FileLayout) -> list[str]:
    """Return the settings in which two layouts differ, each with both values."""
    if stored.changing:
        return ["an earlier change of the layout was interrupted or failed"]
    before, after = stored.settings(), wanted.settings()
    names = [field.name for field in fields(FileLayout) if before.get(field.name) != after.get(field.name)]
    return [f"{name}: {_value(before.get(name))}, configured: {_value(after.get(name))}" for name in names]


def _value(value: str | int | list[str] | None) -> str:
    return _listed(value) if isinstance(value, list) else "not set" if value is None else str(value)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
