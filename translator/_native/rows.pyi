"""The types of the extension (`src/`)."""

from collections.abc import Callable, Sequence
from typing import Any

from translator._native.layout import CanalReading, TableOperation
from translator.message import Message

VERSION: str

class RowImages:
    key: bytes | None
    before: bytes | None
    after: bytes | None
    whole: bool

class Taken:
    operation: TableOperation
    records: list[Any]
    ts_commit_us: int | None
    ts_capture_us: int | None
    images: list[RowImages]

class CanalRows:
    def __init__(
        self,
        options: CanalReading,
        source: str,
        header: bytes,
        max_record: int,
        record: Callable[..., object],
        compile: Callable[[bytes, bytes, bytes, bytes, bytes], object],
        convert_cell: Callable[[bytes, Any], bytes],
    ) -> None: ...
    def take(self, topic: str, partition: int, topic_id: str, messages: Sequence[Message]) -> list[Taken | str]: ...
