"""The options of a Debezium projection; docs/debezium.md explains each."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

MissingBefore: TypeAlias = Literal["merge", "as_create", "partial", "drop_event", "fail"]
Truncate: TypeAlias = Literal["drop", "emit"]
Unavailable: TypeAlias = Literal["omit", "placeholder", "fail"]

_FINAL = ("drop_event", "fail")


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the codec `debezium`."""

    schema_block: bool = False
    """Values and keys as Connect's JSON converter writes them, `{"schema": …, "payload": …}`."""

    missing_before: tuple[MissingBefore, ...] = ("merge", "as_create", "partial")
    """The replacements of an old image that a reader would miss: the first that applies; when none does, `fail`."""

    unavailable: Unavailable = "omit"
    """The content of `after` for a column whose value the event does not have."""

    truncate: Truncate = "drop"
    """Flink fails on `op` t."""

    tombstones: bool = False
    """A record with the same key and no value after each delete, for compacted topics."""

    def __post_init__(self) -> None:
        if len(set(self.missing_before)) < len(self.missing_before):
            raise ValueError("missing_before names a policy twice")
        if any(policy in _FINAL for policy in self.missing_before[:-1]):
            raise ValueError("missing_before goes on after drop_event or fail, which always apply")
