"""A Debezium projection's options. docs/debezium.md explains each."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

MissingBefore: TypeAlias = Literal["merge", "as_create", "partial", "drop_event", "fail"]
Truncate: TypeAlias = Literal["drop", "emit"]
Unavailable: TypeAlias = Literal["omit", "placeholder", "fail"]

_FINAL = ("drop_event", "fail")


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options for the `debezium` codec."""

    schema_block: bool = False
    """Write values and keys in the format of Connect's JSON converter, `{"schema": …, "payload": …}`."""

    missing_before: tuple[MissingBefore, ...] = ("merge", "as_create", "partial")
    """The policies for an old image that consumers expect and that is missing.

    The first policy that applies is used, or `fail` if none does.
    """

    unavailable: Unavailable = "omit"
    """The treatment of a column in `after` whose value the event does not contain."""

    truncate: Truncate = "drop"
    """The policy for truncates. Flink fails on `op` t."""

    tombstones: bool = False
    """Write a tombstone after each delete, for compacted topics."""

    def __post_init__(self) -> None:
        if len(set(self.missing_before)) < len(self.missing_before):
            raise ValueError("missing_before lists a policy twice")
        if any(policy in _FINAL for policy in self.missing_before[:-1]):
            raise ValueError(
                "missing_before lists another policy after drop_event or fail; that policy would never apply"
            )
