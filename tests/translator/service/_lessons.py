"""A dialect for tests: {"teach": key, "text": …, "announce": table} teaches, and {"need": key, "id": …} needs it."""

from __future__ import annotations

import json

from msgspec import Struct

from cdc_core.envelope import Column, Ddl, TableSchema
from translator.errors import ErrorCode, MessageError
from translator.message import (
    Changes,
    Learned,
    Lookup,
    Message,
    Needs,
    OtherChange,
    Outcome,
    RowChange,
    Setup,
    TableName,
    Writer,
)

HOSTILE = "hostile"
"""A document that cannot be read."""

BUG = "bug"
"""A document over which `learn` crashes."""

WRITER = Writer("v1", "certain", task="t")


class Lesson(Struct, frozen=True):
    """A learned text whose version is its length, without the part after `#`."""

    text: str

    @property
    def version(self) -> tuple[int, str]:
        return len(self.text), self.text

    @property
    def subject(self) -> str:
        return "rows"

    @property
    def content(self) -> str:
        return self.text.partition("#")[0]


class Lessons:
    """The dialect."""

    name = "lessons"

    def __init__(self, setup: Setup) -> None:
        self._source = setup.source
        self._lookup: Lookup = setup.lookup
        self.read: list[str] = []

    def decode(self, message: Message) -> Outcome:
        told = json.loads(message.value or b"{}")
        if "teach" in told:
            return Learned(told["teach"], told["text"].encode(), self._announces(told))
        found = self._lookup(told["need"])
        if found is None:
            return Needs(told["need"], told.get("id"))
        assert isinstance(found, Lesson)
        row = {"id": message.offset, "by": found.text}
        return Changes([RowChange("c", TableName(None, None, "rows"), WRITER, after=row)])

    def learn(self, key: str, document: bytes) -> object:
        text = document.decode()
        self.read.append(text)
        if text == HOSTILE:
            raise MessageError(ErrorCode.LIMIT_EXCEEDED, "nested too deep")
        if text == BUG:
            raise ValueError(text)
        return Lesson(text)

    def _announces(self, told: dict[str, str]) -> tuple[OtherChange, ...]:
        if "announce" not in told:
            return ()
        table = TableName(None, None, told["announce"])
        columns = [Column("id", "int64"), Column("by", "string", native=told.get("native"))]
        schema = TableSchema.of(self._source, None, None, table.table, columns, "none")
        return (OtherChange("schema", WRITER, table, ddl=Ddl("metadata", sql=told.get("sql")), schema=schema),)
