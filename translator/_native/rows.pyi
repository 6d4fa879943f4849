"""The types of the extension (`src/`)."""

from collections.abc import Callable, Sequence
from typing import Any

from cdc_core.envelope import ChangeEvent
from translator._native.layout import (
    CanalReading,
    DtsAvroReading,
    NativeTable,
    QlikReading,
    RecordForm,
    SharePlexReading,
    TableOperation,
)
from translator.message import Message

VERSION: str
SEAM: int

class RowImages:
    key: bytes | None
    key_old: bytes | None
    before: bytes | None
    after: bytes | None
    whole: bool

class Taken:
    operation: TableOperation
    outputs: list[list[Any]]
    events: list[ChangeEvent]
    ts_commit_us: int | None
    ts_capture_us: int | None
    images: list[RowImages]

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
