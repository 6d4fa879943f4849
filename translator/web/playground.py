"""Run the playground: one message, the product that wrote it, how it is read, and the events that it gives."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from translator.dialects import DIALECTS
from translator.errors import ConfigError, unknown
from translator.message import Learned, Limits, Message, Skip
from translator.operations.explanation import outcome_lines
from translator.operations.file_translator import of_dialect
from translator.operations.message_preview import preview
from translator.operations.recognition import TopicFinding, recognise
from translator.resolution.resolve import Translation
from translator.translation.dead_letter import DeadLetter
from translator.web.event_view import EventView, view

BYTES = 1024 * 1024
"""Maximum size of a message, and of all messages that precede it."""

OPTIONS_BYTES = 16 * 1024
"""Maximum size of the options. Parsing YAML takes a second for every 30 KiB."""

RECOGNISE = "recognise"
"""Value of the dialect field that requests recognition."""

_LIMITS = Limits(value_bytes=BYTES, rows=1000, columns=2000)

_TOPIC, _SOURCE = "playground", "playground"


class Sample(Struct, frozen=True, forbid_unknown_fields=True):
    """A sample message in one format, ready to be translated."""

    name: str
    title: str
    dialect: str
    options: str
    encoding: str
    message: str
    before: str
    other_options: str = ""
    """Options that give the message a different meaning, for comparison."""


class PastedMessage(Struct, frozen=True):
    """A message as entered by the user.

    Args:
        options: the dialect's options, and `tables`, as YAML.
        before: the messages that come before it, one per line, such as Qlik metadata.
        key: the record key, as text; empty for no key.
    """

    message: str
    encoding: str = "text"
    dialect: str = RECOGNISE
    options: str = ""
    before: str = ""
    key: str = ""


class MessageReading(Struct, frozen=True):
    """The result for a message, and everything that is shown about it.

    Args:
        outcome: one of the four outcomes, with the names used in the glossary.
        code: a dead letter's code, or None.
        reason: why the message is a dead letter or was skipped.
        decisions: lines without row data.
        layout: names, types and lengths in the message, without row data.
        raw: the message in the form in which it is shown next to its events.
        finding: the result of recognition, if requested.
        refusals: if no dialect recognizes the message, the reason of each dialect by name.
    """

    dialect: str
    options: Mapping[str, Any]
    outcome: str
    code: str | None
    reason: str | None
    decisions: Sequence[str]
    layout: Sequence[str]
    raw: str
    events: Sequence[EventView]
    finding: TopicFinding | None
    refusals: Mapping[str, str] = {}


@cache
def samples() -> Mapping[str, Sample]:
    """The samples by name, in page order."""
    text = resources.files("translator.web").joinpath("samples.json").read_bytes()
    return {sample.name: sample for sample in msgspec.json.decode(text, type=list[Sample])}


def answer(question: PastedMessage) -> MessageReading:
    """Translate the message as the service would.

    Raises:
        ConfigError: the input is invalid; the text gives the reason.
    """
    value = _decoded(question)
    if len(value) > BYTES or len(question.before) > BYTES:
        raise ConfigError(f"the message, and the messages before it, may each have at most {BYTES} bytes here")
    if len(question.options.encode()) > OPTIONS_BYTES:
        raise ConfigError(f"the options may have at most {OPTIONS_BYTES} bytes here")
    before = [line.encode() for line in question.before.splitlines() if line.strip()]
    if question.dialect not in (RECOGNISE, *DIALECTS):
        raise ConfigError(unknown("dialect", question.dialect, [RECOGNISE, *DIALECTS]))
    *others, message = [Message(_TOPIC, 0, offset, 0, None, text) for offset, text in enumerate([*before, value])]
    message = msgspec.structs.replace(message, key=question.key.encode() or None)
    options = _options(question.options)
    finding: TopicFinding | None = None
    dialect = question.dialect
    if dialect == RECOGNISE:
        finding = recognise({_TOPIC: [message], "before": others})[0]
        if finding.verdict is None:
            return _unrecognised(finding, value)
        dialect, options = finding.verdict.dialect, {**finding.options, **options}
    found: list[str] = []
    translator = of_dialect(dialect, options, _SOURCE, [*others, message], found.append, _LIMITS, stops=False)
    for other in others:
        translator.translate(other)
    translation = translator.translate(message)
    outcome, code, reason = _outcome(translation)
    return MessageReading(
        dialect=dialect,
        options=options,
        outcome=outcome,
        code=code,
        reason=reason,
        decisions=[*outcome_lines(translation, values=False), *found],
        layout=preview(value),
        raw=shown(value),
        events=[view(event) for event in translation.events.events] if translation.events else (),
        finding=finding,
    )


def _decoded(question: PastedMessage) -> bytes:
    if question.encoding not in _DECODERS:
        raise ConfigError(unknown("encoding", question.encoding, _DECODERS))
    try:
        return _DECODERS[question.encoding](question.message)
    except (ValueError, binascii.Error):
        raise ConfigError(f"the message is not valid {question.encoding}") from None


def _unbroken(text: str) -> str:
    """Return text without the white space that terminals add to lines and columns."""
    return "".join(text.split())


_DECODERS: Mapping[str, Callable[[str], bytes]] = {
    "text": str.encode,
    "base64": lambda text: base64.b64decode(_unbroken(text), validate=True),
    "hex": lambda text: bytes.fromhex(_unbroken(text)),
}
ENCODINGS: Sequence[str] = tuple(_DECODERS)


def _options(text: str) -> dict[str, Any]:
    try:
        # BaseLoader keeps dates and numbers as text, and the option types parse them.
        given = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  it makes strings, lists, mappings only
    except (yaml.YAMLError, RecursionError):
        raise ConfigError("the options are not valid YAML") from None
    if not given:
        return {}
    if not isinstance(given, dict):
        raise ConfigError("the options must be a mapping, such as `profile: oss`")
    return given


def _unrecognised(finding: TopicFinding, value: bytes) -> MessageReading:
    return MessageReading(
        dialect="none",
        options={},
        outcome="not recognised",
        code=None,
        reason=finding.why,
        decisions=(),
        layout=preview(value),
        raw=shown(value),
        events=(),
        finding=finding,
        refusals={name: _without_place(why).removeprefix(f"{name}: ") for name, why in finding.refusals.items()},
    )


_PLACE = re.compile(rf" \(topic {_TOPIC}, partition 0, offset \d+\)$")


def _without_place(reason: str) -> str:
    """Remove the coordinates of the message from a reason, because a pasted message has none."""
    return _PLACE.sub("", reason)


def _outcome(translation: Translation) -> tuple[str, str | None, str | None]:
    match translation.outcome:
        case DeadLetter(code=code, reason=reason):
            return "dead", code, _without_place(reason)
        case Skip(reason=reason):
            return "skipped", None, reason
        case Learned(key=key):
            return "learned", None, f"metadata {key}"
        case _:
            return "translated", None, None


def shown(value: bytes) -> str:
    """Return the message in readable form: JSON with one field per line, otherwise its bytes in hex."""
    try:
        return _pretty(value)
    except (ValueError, RecursionError):
        pass
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "\n".join(_hex_lines(value))


_ROW, _MOST_ROWS = 16, 512


def _hex_lines(value: bytes) -> Iterator[str]:
    for start in range(0, min(len(value), _ROW * _MOST_ROWS), _ROW):
        row = value[start : start + _ROW]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{start:06x}  {row.hex(' '):<{3 * _ROW}} {text}"
    if len(value) > _ROW * _MOST_ROWS:
        yield f"… and {len(value) - _ROW * _MOST_ROWS} more bytes"


def _pretty(text: bytes) -> str:
    """Return JSON with one field per line. Numbers keep their digits."""
    return msgspec.json.format(text, indent=2).decode()
