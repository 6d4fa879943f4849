"""The types of the extension (`src/`)."""

from collections.abc import Callable, Sequence
from typing import Any

from cdc_core.envelope import ChangeEvent
from translator._native.layout import (
    CanalReading,
    DtsAvroReading,
    NativeTable,
    OperationTotal,
    QlikReading,
    RecordForm,
    SharePlexReading,
    TableOperation,
    TakenMessage,
)
from translator.codecs.record import Headers, Record
from translator.message import Message, TableName

VERSION: str
SEAM: int

def totals(run: Sequence[TakenMessage | str]) -> list[OperationTotal]: ...
def records(run: Sequence[TakenMessage], output: int) -> list[Any]: ...

class Taken:
    operation: TableOperation
    rows: int
    outputs: list[list[Any]]
    events: list[ChangeEvent]
    ts_commit_us: int | None

    def insert(self, output: int, records: list[Record]) -> None: ...

class NativeRecord:
    key: bytes | None
    value: bytes | None
    headers: Headers

class ProducerQueue:
    @staticmethod
    def load(module: str) -> bool: ...
    @staticmethod
    def created() -> ProducerQueue | None: ...
    def offer(self, topic: str, partition: int, records: list[Record] | list[NativeRecord]) -> int: ...
    def outcome(self, topic: str, partition: int) -> tuple[int, int | None]: ...
    def failure(self) -> tuple[str, int] | None: ...

class KnownRows:
    def __init__(self, keys: int, fatal: bool, state: Callable[..., Any]) -> None: ...
    @property
    def horizon(self) -> int: ...
    @staticmethod
    def digest(image: bytes) -> int: ...
    def get(self, table: TableName, key: bytes) -> Any | None: ...
    def keep(self, table: TableName, key: bytes, state: Any) -> None: ...
    def forget(self, table: TableName | None) -> None: ...
    def complete(self) -> None: ...
    def begin(self, commit: int | None) -> None: ...
    def add_unconfirmed(self, reading: int, offset: int) -> None: ...
    def confirm(self, reading: int, offset: int) -> None: ...
    def unconfirmed(self, reading: int) -> tuple[list[int], int, int | None]: ...
    def contradicted(self) -> bool: ...
    def inspect(
        self, taken: Sequence[TakenMessage], current_matters: bool, legacy_matters: bool
    ) -> tuple[int, list[tuple[int, tuple[int, bool, int, tuple[list[int], int, int | None]] | None]]]: ...

class CanalRows:
    def __init__(
        self,
        options: CanalReading,
        form: RecordForm,
        compile: Callable[[bytes, bytes, bytes, bytes, bytes, bytes], NativeTable | None],
    ) -> None: ...
    def take(self, topic: str, partition: int, topic_id: str, messages: Sequence[Message]) -> list[Taken | str]: ...

class QlikRows:
    def __init__(
        self,
        options: QlikReading,
        form: RecordForm,
        compile: Callable[..., NativeTable | None],
        lookup: Callable[[str], object | None],
    ) -> None: ...
    def take(self, topic: str, partition: int, topic_id: str, messages: Sequence[Message]) -> list[Taken | str]: ...

class SharePlexRows:
    def __init__(
        self,
        options: SharePlexReading,
        form: RecordForm,
        compile: Callable[[bytes, bytes], NativeTable | None],
        instant: Callable[[str], object],
    ) -> None: ...
    def take(self, topic: str, partition: int, topic_id: str, messages: Sequence[Message]) -> list[Taken | str]: ...

class DtsAvroRows:
    def __init__(
        self,
        options: DtsAvroReading,
        form: RecordForm,
        compile: Callable[[bytes], NativeTable | None],
        compile_contrary: Callable[[bytes], NativeTable | None],
    ) -> None: ...
    def take(self, topic: str, partition: int, topic_id: str, messages: Sequence[Message]) -> list[Taken | str]: ...
