"""Certify a catalog or a warehouse: create a table, and do everything to it that the sink does to tables.

The rows are invented, so the report contains no user data. All writing goes through the sink's own code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import pyarrow as pa
from msgspec import Struct

from cdc_core.envelope import Column, TableSchema
from cdc_core.table_id import TableId
from spark_sink.errors import FatalError, Overtaken
from spark_sink.operations.checks import Answer, Note, Question, State, answers
from spark_sink.schema.column_types import arrow_type
from spark_sink.schema.engine_choice import Engine
from spark_sink.schema.evolution import AddColumns, Create, TableShape, evolve
from spark_sink.schema.table_spec import Format, TableSpec
from spark_sink.tables.changes import Marker, TableChanges
from spark_sink.tables.formats import FormatTables
from spark_sink.tables.maintenance import DEFAULT_TARGET, TableMaintenance
from spark_sink.tables.meta_columns import DELETED_AT, INCOMPLETE, META_COLUMNS, POS, SCOPE, UPDATED_AT
from spark_sink.tables.protocols import MirrorTable, TableDdl
from spark_sink.tables.registration import Catalog
from spark_sink.tables.spark_operations import OrderRunner

FORMAT = 1
"""The version of the report's structure."""

# The namespaces of certifications. The rest of the name is random, so that no existing table has it.
PREFIX = "cdc_certify_"

Result: TypeAlias = Literal["passed", "failed", "not supported"]

_RESULTS: Mapping[State, Result] = {"ok": "passed", "note": "not supported", "WRONG": "failed"}

_TABLE = TableId("certification", "certification", None, "trial")
_KEY, _TEXT, _AMOUNT, _ADDED = "id", "text", "amount", "added"
_COLUMNS = (Column(_KEY, "int64", key=1), Column(_TEXT, "string"), Column(_AMOUNT, "decimal(10,2)"))
_OLD = TableSchema.of(*_TABLE, _COLUMNS, "primary")
_NEW = TableSchema.of(*_TABLE, (*_COLUMNS, Column(_ADDED, "int32")), "primary")

_SCOPE = "certification"

Row: TypeAlias = dict[str, Any]


class Outside(Protocol):
    """The table as another program sees it, and how to remove it."""

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of all rows, in the order of the first column."""

    def rows_by_name(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return the same rows through the catalog that registers the table."""

    def rows_of_view(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return the same rows through the table's view."""

    def accepts_outdated(self, other_commit: Callable[[], None]) -> bool:
        """Return whether the catalog accepts a commit that was prepared before another commit."""

    def drop(self) -> None:
        """Delete the table and everything that belongs to it."""


@dataclass(frozen=True)
class Candidate:
    """The parts of the sink that write one table.

    Args:
        probe: a function that tests the catalog just as the sink does at startup, or None for tables that are in no
            catalog.
        catalog: a function that returns the catalog which registers tables and keeps views, or None if the sink does
            neither.
        is_registered: whether this catalog registers the table.
        has_view: whether the sink keeps a view of the table.
        maintains: whether the sink maintains tables.
    """

    format: Format
    engine: Engine
    name: str
    tables: FormatTables
    ddl: TableDdl
    writer: OrderRunner
    files: TableMaintenance
    outside: Outside
    probe: Callable[[], None] | None
    catalog: Callable[[], Catalog | None]
    is_registered: bool
    has_view: bool
    maintains: bool

    @property
    def title(self) -> str:
        return f"{self.format} ({self.engine})"


class CertifiedStep(Struct, frozen=True):
    """One step of a certification."""

    step: str
    result: Result
    seconds: float
    detail: str
    needed_for: str


class CertifiedTable(Struct, frozen=True):
    """The steps that were performed on one table."""

    format: Format
    engine: Engine
    table: str
    steps: list[CertifiedStep]


class CertifiedCatalog(Struct, frozen=True):
    """The catalog for Iceberg tables. The traits are None if the probe failed."""

    type: str
    address: str
    server: str | None
    format_version: int | None
    keeps_snapshots: bool | None
    can_expire: bool | None


class Certificate(Struct, frozen=True):
    """The report. It contains neither secrets nor user data."""

    certificate: int
    made_at: str
    passed: bool
    versions: dict[str, str]
    storage: str
    catalog: CertifiedCatalog | None
    tables: list[CertifiedTable]


class _Step(NamedTuple):
    """One step, and the reason why the sink needs it.

    Args:
        needs: the step that this one depends on, or "" if it is always possible.
    """

    name: str
    run: Callable[[], str]
    needed_for: str
    needs: str = ""


def certify(candidate: Candidate, report: Callable[[Answer], None]) -> CertifiedTable:
    """Run and report all steps. Delete the table even if a step fails or the run is interrupted."""
    steps, done = _Run(candidate).steps(), list[CertifiedStep]()
    try:
        for step, answer, seconds in _timed(candidate, steps):
            report(answer)
            done.append(
                CertifiedStep(step.name, _RESULTS[answer.state], round(seconds, 3), answer.text, step.needed_for)
            )
    finally:
        if len(done) < len(steps):
            candidate.outside.drop()
    return CertifiedTable(candidate.format, candidate.engine, candidate.name, done)


def _timed(candidate: Candidate, steps: Sequence[_Step]) -> Iterator[tuple[_Step, Answer, float]]:
    def subject(name: str) -> str:
        return f"{candidate.title}: {name}" if name else ""

    questions = (
        Question(subject(step.name), step.run, f"the sink needs this for {step.needed_for}", subject(step.needs))
        for step in steps
    )
    started = time.monotonic()
    for step, answer in zip(steps, answers(questions), strict=True):
        yield step, answer, time.monotonic() - started
        started = time.monotonic()


@dataclass
class _Run:
    """One run. `_expected` contains the rows that the table must have, by key."""

    candidate: Candidate
    _expected: dict[int, Row] = field(default_factory=dict)
    _batch: int = 0
    _early: tuple[int, int] | None = None

    def steps(self) -> list[_Step]:
        candidate, steps = self.candidate, list[_Step]()
        first = ""
        if candidate.probe is not None:
            first = "probe"
            steps.append(
                _Step(first, partial(_probe, candidate.probe), "choosing what the catalog supports, at startup")
            )
        steps += [
            _Step("create", self._create, "creating a table when its first event arrives", first),
            _Step("append", self._append, "writing new rows, with a marker in the same commit", "create"),
            _Step("merge", self._merge, "writing updates and deletes in one commit", "append"),
            _Step("marker", self._marker, "not writing a batch twice after a crash", "merge"),
            _Step("add column", self._add_column, "following a new column at the source", "merge"),
            _Step("same batch twice", self._two_writers, "surviving a second sink or a repeated batch", "merge"),
        ]
        if candidate.format is Format.ICEBERG or candidate.engine is Engine.FUSED:
            needed = "losing no commit when two programs write at the same time"
            steps.append(_Step("outdated commit", self._outdated, needed, "merge"))
        steps += [
            _Step("read back", self._read_back, "readers, and for comparing events with rows", "merge"),
            _Step("earlier version", self._earlier, "cuts, sweeps by time and reads of old versions", "merge"),
        ]
        if candidate.is_registered:
            steps.append(_Step("register", self._register, "readers that find tables by name (catalog.name)", "merge"))
        if candidate.has_view:
            steps.append(_Step("view", self._view, "readers of views", "merge"))
        if candidate.maintains:
            steps += [
                _Step("compact", self._compact, "merging small files (maintenance)", "merge"),
                _Step("expire", self._expire, "deleting old versions and their files (maintenance)", "merge"),
            ]
        return [*steps, _Step("drop", self._drop, "leaving nothing behind")]

    def _create(self) -> str:
        plan = evolve(None, _TABLE, [_OLD], _OLD, form=TableSpec(format=self.candidate.format))
        if not isinstance(plan.step, Create):
            raise AssertionError("a table that does not exist must be created")
        self.candidate.ddl.create(self.candidate.name, plan.step.shape)
        self._open()
        return f"table {self.candidate.name}"

    def _append(self) -> str:
        rows = {id: {_KEY: id, _TEXT: f"row {id}", _AMOUNT: id} for id in range(1, 6)}
        self._write(rows, inserts_only=True)
        self._expected |= rows
        self._check()
        self._early = self._open().version, len(rows)
        return f"{len(rows)} rows"

    def _merge(self) -> str:
        """In one commit, update a row, update a part of another row, delete a row, and insert a row."""
        changed: dict[int, Row] = {
            1: {_KEY: 1, _TEXT: "updated", _AMOUNT: 10},
            2: {_KEY: 2, _TEXT: "updated in part", _AMOUNT: None},
            3: {_KEY: 3, _TEXT: None, _AMOUNT: None, DELETED_AT: 1},
            6: {_KEY: 6, _TEXT: "inserted", _AMOUNT: 6},
        }
        kept = {_AMOUNT: [True, False, True, True]}
        self._write(changed, inserts_only=False, kept=kept)
        self._expected |= {1: changed[1], 2: {**changed[2], _AMOUNT: 2}, 6: changed[6]}
        del self._expected[3]
        self._check()
        return "1 row updated, 1 updated in part, 1 deleted, 1 inserted"

    def _marker(self) -> str:
        found = self._open().applied(self._app)
        if found != self._batch:
            raise FatalError(f"the newest commit has the marker {found} instead of {self._batch}")
        return f"batch {found} is recorded in its commit"

    def _add_column(self) -> str:
        shape = self._open().shape
        plan = evolve(shape, _TABLE, [_NEW], _NEW, form=TableSpec(format=self.candidate.format))
        if not isinstance(plan.step, AddColumns):
            raise AssertionError("the table must lack the new column")
        self.candidate.ddl.add_columns(self.candidate.name, plan.step.columns)
        row = {4: {**self._expected[4], _ADDED: 40}}
        self._write(row, inserts_only=False)
        self._expected |= row
        self._check()
        return "existing rows have NULL, and a changed row has the new value"

    def _two_writers(self) -> str:
        """Write the same batch from two equal states of the table. One commit must count."""
        row: dict[int, Row] = {7: {_KEY: 7, _TEXT: "written twice", _AMOUNT: 7}}
        self._batch += 1
        first, second = self._open(), self._open()
        told = "the second commit changed nothing"
        for table in (first, second):
            try:
                self._commit(table, row, inserts_only=True)
            except Overtaken:
                told = "the second commit was rejected"
        self._expected |= row
        self._check()
        return told

    def _outdated(self) -> str:
        before = self._open()
        if self.candidate.format is Format.ICEBERG:
            if self.candidate.outside.accepts_outdated(partial(self._change, 5, "first")):
                raise FatalError(
                    "the catalog accepted a commit that another commit had overtaken, so commits can be lost"
                )
        else:
            self._change(5, "first")
            self._batch += 1
            row = {5: {**self._expected[5], _TEXT: "outdated"}}
            try:
                self._commit(before, row, inserts_only=False)
            except Overtaken:
                self._batch -= 1
            else:
                raise FatalError("a commit from an outdated version was accepted, so commits can be lost")
        self._check()
        return "the outdated commit was rejected, and the other commit is kept"

    def _read_back(self) -> str:
        self._check()
        names = [name for name in (_KEY, _TEXT, _AMOUNT, _ADDED) if name in self._open().shape.types]
        seen = self._seen(self.candidate.outside.rows(*names), names)
        return f"{seen} rows, equal in both clients"

    def _earlier(self) -> str:
        self._wants(keeps_snapshots=True)
        if self._early is None:
            raise AssertionError("the first version is known after the append")
        version, rows = self._early
        table = self.candidate.tables.at(self.candidate.name, version)
        found = 0 if table is None else len(table.live_keys())
        if found != rows:
            raise FatalError(f"the version after the first commit has {found} rows instead of {rows}")
        return f"the version after the first commit has {rows} rows"

    def _register(self) -> str:
        self._catalog().register(self.candidate.name)
        return f"{self._seen(self.candidate.outside.rows_by_name(_KEY, _TEXT), (_KEY, _TEXT))} rows, read by name"

    def _view(self) -> str:
        self._catalog().register(self.candidate.name)
        return f"{self._seen(self.candidate.outside.rows_of_view(_KEY, _TEXT), (_KEY, _TEXT))} rows, read from the view"

    def _compact(self) -> str:
        removed, added = self.candidate.files.compact(self.candidate.name, DEFAULT_TARGET)
        self._check()
        self._marker()
        return f"{removed} files replaced by {added}; rows and marker are unchanged"

    def _expire(self) -> str:
        self._wants(can_expire=True)
        removed = self.candidate.files.vacuum(self.candidate.name, 0)
        self._check()
        self._marker()
        return f"{removed} files deleted; rows and marker are unchanged"

    def _drop(self) -> str:
        self.candidate.outside.drop()
        if self.candidate.tables.exists(self.candidate.name):
            raise FatalError(f"the table {self.candidate.name} still exists; drop it")
        return "the table and its namespace are gone"

    def _change(self, id: int, text: str) -> None:
        row = {id: {**self._expected[id], _TEXT: text}}
        self._write(row, inserts_only=False)
        self._expected |= row

    def _write(
        self, rows: Mapping[int, Row], *, inserts_only: bool, kept: Mapping[str, list[bool]] | None = None
    ) -> None:
        self._batch += 1
        self._commit(self._open(), rows, inserts_only=inserts_only, kept=kept)

    def _commit(
        self,
        table: MirrorTable,
        rows: Mapping[int, Row],
        *,
        inserts_only: bool,
        kept: Mapping[str, list[bool]] | None = None,
    ) -> None:
        """Write rows to an opened table as a batch does, including the orders for the driver."""
        table.keep_deleted_rows(apart=True)
        table.write(_changes(table.shape, rows, kept or {}, inserts_only=inserts_only), Marker(self._app, self._batch))
        for why in self.candidate.writer.carry_out(
            {self.candidate.name: table.orders} if table.orders else {}
        ).values():
            raise FatalError(why)

    def _check(self) -> None:
        """Compare the table's rows with the expected rows, as the sink reads them."""
        table = self._open()
        live = table.live_keys()
        found = {int(str(row[_KEY])): row for row in table.rows(set(live)).values()}
        columns = table.shape.types
        wanted = {id: {name: row.get(name) for name in columns} for id, row in self._expected.items()}
        differing = sum(found.get(id) != wanted.get(id) for id in found.keys() | wanted.keys())
        if differing or max(live.values(), default=1) > 1:
            doubles = sum(number > 1 for number in live.values())
            raise FatalError(f"{differing} of {len(wanted)} rows differ from what was written, {doubles} are doubled")

    def _seen(self, found: list[tuple[Any, ...]], names: Sequence[str]) -> int:
        wanted = [tuple(self._expected[id].get(name) for name in names) for id in sorted(self._expected)]
        if found != wanted:
            raise FatalError(f"Spark reads {len(found)} rows, and not the {len(wanted)} rows that were written")
        return len(found)

    def _open(self) -> MirrorTable:
        table = self.candidate.tables.open(self.candidate.name)
        if not isinstance(table, MirrorTable):
            raise FatalError(f"the table {self.candidate.name}, which was created here, is not found")
        return table

    def _catalog(self) -> Catalog:
        found = self.candidate.catalog()
        if found is None:
            raise AssertionError("these steps exist only with a catalog")
        return found

    def _wants(self, **traits: bool) -> None:
        """Raise Note if the catalog lacks the trait that this step tests."""
        if self.candidate.probe is not None:
            known = self.candidate.tables.catalog_traits
            for name, wanted in traits.items():
                if getattr(known, name) != wanted:
                    raise Note(f"the catalog does not support this ({name} is {getattr(known, name)})")

    @property
    def _app(self) -> str:
        return self.candidate.tables.app


def _probe(ask: Callable[[], None]) -> str:
    ask()
    return "the catalog creates tables and keeps markers"


def _changes(
    shape: TableShape, rows: Mapping[int, Row], kept: Mapping[str, list[bool]], *, inserts_only: bool
) -> TableChanges:
    own: Row = {SCOPE: _SCOPE, POS: "1", INCOMPLETE: False}
    types = {name: sql for name, sql in {**shape.types, **META_COLUMNS}.items() if name != UPDATED_AT}
    full = [{**own, **row} for row in rows.values()]
    columns = {name: pa.array([row.get(name) for row in full], arrow_type(sql)) for name, sql in types.items()}
    flags = {name: pa.array(values) for name, values in kept.items()}
    return TableChanges(pa.table(columns), flags, inserts_only, at=time.time_ns() // 1000)
