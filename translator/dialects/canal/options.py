"""The options of the canal dialect (docs/dialects/canal.md)."""

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
"""A time with its zone: without one, which side of a restart a message lies on would depend on this machine."""


class Instance(Struct, frozen=True, forbid_unknown_fields=True):
    """The life of a DTS instance: what decides when it changed its form (docs/design.md §5)."""

    created: Moment
    restarted: tuple[Moment, ...] = ()


class Continuity(Struct, frozen=True, forbid_unknown_fields=True):
    """The check of updates with two full images against what is known of their rows (continuity.py)."""

    keys: Annotated[int, Meta(ge=1)] = 10_000
    """Rows of each partition that are remembered: those that changed last."""

    action: Literal["stop", "warn", "off"] = "stop"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """The declaration of a source's writer."""

    profile: str = "oss"
    """The writer. The default is for tools that read single messages; a configured source has to declare it."""

    instance: Instance | None = None
    restart_tolerance: timedelta = timedelta(minutes=10)
    """DTS stamps messages with its own clock; this near to the restart, its stamp decides nothing."""

    legacy_update_direction: Literal["data_is_before", "old_is_before"] = "data_is_before"
    """The vendor says `data_is_before` of legacy instances; its own older manual shows the other (§6.2)."""

    timezone: str | None = None
    """The zone in which the writer printed TIMESTAMP columns: that of its JVM (§7.1)."""

    tinyint1_as_boolean: bool = False
    row_image: Literal["full", "partial"] = "full"
    """The server's `binlog_row_image`; `partial` stands for MINIMAL and NOBLOB, and for a column filter in canal."""

    labels: Labels | None = None
    """The form in which ENUM and SET are printed; None: that of the profile's writer."""

    binary: Binary | None = None
    """The form in which bytes are printed; None: that of the profile's writer."""

    newline_batches: bool = False
    """One record may hold several messages, one a line: storage sinks of TiCDC (§10)."""

    object_rows: bool = False
    """`data` and `old` may be one object in place of an array: SeaTunnel's sink (§1)."""

    handle_key_only: Literal["dead_letter", "unavailable"] = "dead_letter"
    """A row of which TiCDC sent the key alone (§10): refused, or translated with all other columns, which
    `tables:` declares, in `unavailable`."""

    topics: Topics = None
    """Table of each topic, for messages that name none: those of Flink's and SeaTunnel's own sinks (§1)."""

    heartbeat_tables: tuple[str, ...] = ()
    """Patterns over `db.table`: tables that a server writes to show that it is alive (§3.3). No default: a table
    of such a name may be the user's own."""

    continuity: Continuity | None = None
    """None: as by default for Alibaba DTS, off for the others."""


def check_declared(options: Mapping[str, Any]) -> None:
    """Refuse options of a configured source that do not declare their writer.

    Raises:
        ConfigError: no profile.
    """
    if options.get("profile") is None:
        raise ConfigError(
            "canal: options.profile is missing. No message says which writer sent it, and writers disagree about which "
            "of `data` and `old` is the row after an UPDATE; the wrong profile exchanges the two without an error. "
            f"Declare one of {', '.join(PROFILES)}; `translator init` reads your topics and proposes one, with its "
            "evidence"
        )


def check(options: Options) -> None:
    """Refuse what the types alone allow.

    Raises:
        ConfigError: an unknown profile, an option that belongs to another one, or an unknown zone.
    """
    if options.profile not in PROFILES:
        raise ConfigError(f"canal: {unknown('profile', options.profile, PROFILES)}")
    if options.instance is not None and options.profile != "dts":
        raise ConfigError(f"canal: instance belongs to profile dts, not {options.profile}")
    if options.handle_key_only == "unavailable" and not PROFILES[options.profile].tidb:
        raise ConfigError(f"canal: handle_key_only belongs to the profiles ticdc and auto, not {options.profile}")
    if options.topics is not None and not PROFILES[options.profile].native_cells:
        allowed = "flink_cdc, ckafka and auto"
        reason = f"topics belongs to the profiles {allowed}, not {options.profile}, whose messages name a table"
        raise ConfigError(f"canal: {reason}")
    if options.restart_tolerance < timedelta(0):
        raise ConfigError("canal: restart_tolerance is negative")
    if options.timezone is not None:
        try:
            zone(options.timezone)
        except ValueError as error:
            raise ConfigError(f"canal: timezone: {error}") from None
