"""Define what the operator declares about the writer: presets as rows of a table, and options that override them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from msgspec import Struct

from translator.dialects.shareplex.names import split_table
from translator.errors import ConfigError, MessageError, unknown
from translator.values import zone

OPERATIONS = ("ins", "upd", "del", "TRUNCATE", "DROP COLUMN", "UPDATE BEFORE", "UPDATE AFTER")
"""The three codes observed in messages and the four codes that only documentation mentions (§3)."""

WORDS = ("INSERT", "UPDATE", "DELETE", *OPERATIONS[3:])
"""The seven documented keywords."""

_CODES: Mapping[str, str] = {code.upper(): code for code in OPERATIONS[:3]}

_FOLDED: Mapping[str, str] = {
    word.replace(" ", ""): operation for word, operation in zip(WORDS, OPERATIONS, strict=True)
}
"""The documented keywords without spaces and underscores."""


def documented(op: str) -> str | None:
    """Return the operation for a code or a documented keyword, in any case, or None for other text."""
    # Conversion to upper case can turn letters from other alphabets into letters in a code, but `ıns` is not a code.
    if not op.isascii():
        return None
    word = op.upper()
    return _CODES.get(word) or _FOLDED.get(word.replace(" ", "").replace("_", ""))


class Preset(Struct, frozen=True):
    """The rules by which a writer fills the common structure."""

    key_is_key: bool
    """True if the `key` of an update contains only the key columns, and not a wide old image (§4)."""

    timezone: str | None
    """The zone for `time` and `posttime` values without a zone. None if this zone is unknown (§2)."""

    decimal_scn: bool
    """True if `scn` consists of decimal digits, as in Oracle. If false, any text is accepted as the source's own token
    (§6).
    """

    strict: bool
    """True if a message with invalid optional metadata is rejected. If false, such metadata is kept as text, with a
    note.
    """


PRESETS: Mapping[str, Preset] = {
    "quest": Preset(key_is_key=True, timezone=None, decimal_scn=True, strict=True),
    "dts": Preset(key_is_key=False, timezone="UTC", decimal_scn=False, strict=True),
    "lenient": Preset(key_is_key=False, timezone=None, decimal_scn=False, strict=False),
}


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """The options as written by the operator."""

    preset: str = "quest"
    timezone: str | None = None
    """The zone for `time` and `posttime`, as an offset or a name. Overrides the preset."""

    default_table: str | None = None
    """The table for messages whose `meta` contains no table, as `OWNER.TABLE`."""

    operations: Mapping[str, str] = {}
    """Additional values of `meta.op`, spelled exactly as in messages, and the operation for each."""


class SharePlexRules(Struct, frozen=True):
    """Preset and options combined and checked."""

    preset: str
    key_is_key: bool
    decimal_scn: bool
    strict: bool
    zone: tzinfo | None
    zone_note: str
    """The note for an event whose time has no zone."""

    default_table: str | None
    operations: Mapping[str, str]
    """Exact values, each with one of OPERATIONS. Takes precedence over `documented`."""


def rules_of(options: Options) -> SharePlexRules:
    """Return the rules for a source's options.

    Raises:
        ConfigError: an invalid option.
    """
    if options.preset not in PRESETS:
        raise ConfigError(f"shareplex: {unknown('preset', options.preset, PRESETS)}")
    preset = PRESETS[options.preset]
    timezone = preset.timezone if options.timezone is None else options.timezone
    return SharePlexRules(
        preset=options.preset,
        key_is_key=preset.key_is_key,
        decimal_scn=preset.decimal_scn,
        strict=preset.strict,
        zone=_zone(timezone),
        zone_note="TZ_UNKNOWN" if timezone is None else f"TZ_ASSUMED={timezone}",
        default_table=_default_table(options.default_table),
        operations=_operations(options.operations),
    )


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return zone(name)
    except ValueError as error:
        raise ConfigError(f"shareplex: timezone: {error}") from None


def _default_table(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        split_table(name, "$")
    except MessageError as error:
        raise ConfigError(f"shareplex: default_table: {error.reason}") from None
    return name


def _operations(further: Mapping[str, str]) -> Mapping[str, str]:
    seen = dict.fromkeys(("ins", "upd", "del"))
    for word, meaning in further.items():
        if meaning not in OPERATIONS:
            raise ConfigError(f"shareplex: operations: {word}: {unknown('operation', meaning, OPERATIONS)}")
        if word in seen:
            raise ConfigError(f"shareplex: operations: {word} is already defined")
    return {**{word: word for word in seen}, **further}
