"""The canal dialect's options (docs/dialects/canal.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from translator.dialects._topic_patterns import Topics
from translator.dialects.canal.profile import PROFILES, Binary, Labels
from translator.errors import ConfigError, unknown
from translator.values import zone

Moment = Annotated[datetime, Meta(tz=True)]
"""A time with a zone. Without a zone, this machine's zone would decide on which side of a restart a message falls."""


class Instance(Struct, frozen=True, forbid_unknown_fields=True):
    """The times at which a DTS instance was created and restarted, which determine when it switched formats
    (docs/design.md §5).
    """

    created: Moment
    restarted: tuple[Moment, ...] = ()


class Continuity(Struct, frozen=True, forbid_unknown_fields=True):
    """The check that compares updates with two full images to what is known about their rows (continuity.py)."""

    keys: Annotated[int, Meta(ge=1)] = 10_000
    """Number of rows to remember per partition. These are the rows that changed most recently."""

    action: Literal["stop", "warn", "off"] = "stop"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Declares a source's writer."""

    profile: str = "oss"
    """The writer. The default is for tools that read single messages. A configured source must declare it."""

    instance: Instance | None = None
    restart_tolerance: timedelta = timedelta(minutes=10)
    """DTS timestamps messages with its own clock. If a timestamp is this close to the restart, it does not show which
    format applies.
    """

    legacy_update_direction: Literal["data_is_before", "old_is_before"] = "data_is_before"
    """The vendor documents `data_is_before` for legacy instances, but its older manual shows the opposite (§6.2)."""

    timezone: str | None = None
    """The time zone in which the writer printed TIMESTAMP columns: its JVM's zone (§7.1)."""

    tinyint1_as_boolean: bool = False
    row_image: Literal["full", "partial"] = "full"
    """The server's `binlog_row_image`. Use `partial` for MINIMAL, NOBLOB, and a column filter in canal."""

    labels: Labels | None = None
    """The format of ENUM and SET values. Defaults to the profile's usual format."""

    binary: Binary | None = None
    """The format of bytes. Defaults to the profile's usual format."""

    newline_batches: bool = False
    """True if a record may contain several messages, one per line, as from TiCDC's storage sinks (§10)."""

    protobuf: bool = False
    """True if records are Canal's Protobuf packets, which it writes unless `flatMessage` is set (protobuf.py)."""

    object_rows: bool = False
    """True if `data` and `old` may be an object instead of an array, as from SeaTunnel's sink (§1)."""

    handle_key_only: Literal["dead_letter", "unavailable"] = "dead_letter"
    """The policy for rows whose key is all that TiCDC sent (§10): reject the rows, or translate them with all other
    columns as `unavailable`. `tables:` must declare these columns.
    """

    topics: Topics = None
    """The table for each topic, for messages without a table name, as from Flink's and SeaTunnel's own sinks (§1)."""

    heartbeat_tables: tuple[str, ...] = ()
    """Patterns for `db.table`: tables that a server writes to show that it is alive (§3.3). A table with such a name
    might belong to the user, so no pattern is set by default.
    """

    continuity: Continuity | None = None
    """None stands for the writer's default: on for Alibaba DTS, off for all others."""


def check_declared(options: Mapping[str, Any]) -> None:
    """Reject a configured source's options if they do not declare its writer.

    Raises:
        ConfigError: no profile.
    """
    if options.get("profile") is None:
        raise ConfigError(
            "canal: options.profile is required. Messages do not identify their writer, and writers disagree on "
            "whether `data` or `old` contains the row after an UPDATE. With the wrong profile, the two are silently "
            f"swapped. Set it to one of {', '.join(PROFILES)}; `translator init` reads your topics and proposes "
            "one, with its evidence"
        )


def check(options: Options) -> None:
    """Reject combinations of options that the types alone would allow.

    Raises:
        ConfigError: the profile is unknown, an option belongs to another profile, or the time zone is unknown.
    """
    if options.profile not in PROFILES:
        raise ConfigError(f"canal: {unknown('profile', options.profile, PROFILES)}")
    if options.instance is not None and options.profile != "dts":
        raise ConfigError(f"canal: instance is only for profile dts, not for {options.profile}")
    if options.handle_key_only == "unavailable" and not PROFILES[options.profile].tidb:
        raise ConfigError(f"canal: handle_key_only is only for the profiles ticdc and auto, not for {options.profile}")
    if options.protobuf and options.profile != "oss":
        raise ConfigError(f"canal: protobuf is only for profile oss, not for {options.profile}")
    if options.protobuf and options.newline_batches:
        raise ConfigError("canal: newline_batches is only for JSON, and cannot be combined with protobuf")
    if options.topics is not None and not PROFILES[options.profile].native_cells:
        allowed = "flink_cdc, ckafka and auto"
        reason = (
            f"topics is only for the profiles {allowed}, not for {options.profile}, whose messages contain a table name"
        )
        raise ConfigError(f"canal: {reason}")
    if options.restart_tolerance < timedelta(0):
        raise ConfigError("canal: restart_tolerance must not be negative")
    if options.timezone is not None:
        try:
            zone(options.timezone)
        except ValueError as error:
            raise ConfigError(f"canal: timezone: {error}") from None
