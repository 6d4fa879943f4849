"""A plug-in's dialect, whose mistakes stay within the message in which they occur.

A plug-in runs in the translator's process and with its rights, so this code protects against mistakes and not against
malice. Any exception other than MessageError, any result outside the interface, and any call that takes too long
becomes a dead letter with DIALECT_FAILED. The reason names only the type of the exception and a line of code, because
the exception's text could contain row data.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec
from msgspec import Struct

from translator.dialects._masked_values import MaskedValues
from translator.dialects._plugin import DialectPlugin, MasksItself
from translator.dialects._time_limit import SECONDS, Overdue, limited
from translator.errors import ConfigError, ErrorCode, MessageError, Unmaskable
from translator.message import (
    Change,
    Changes,
    Dialect,
    Image,
    Learned,
    Learning,
    Message,
    Naming,
    Needs,
    OtherChange,
    Outcome,
    RowChange,
    Sequenced,
    Setup,
    Skip,
    TableName,
)
from translator.proposals import Proposal, ReadMessage, Recognizer

P = ParamSpec("P")
S = TypeVar("S", bound=Struct)
T = TypeVar("T")

MOST_REASONS = 16
"""Maximum number of different reasons to skip messages. Each reason is the label of a metric."""

_CODES = frozenset(ErrorCode) - {
    *(ErrorCode.CONTRADICTION, ErrorCode.HELD, ErrorCode.TOO_LARGE, ErrorCode.TOPIC_REFUSED),
    *(ErrorCode.DIALECT_FAILED, ErrorCode.INTERNAL),
}
"""The codes with which a dialect can reject a message. With masks, the translator withholds the reasons for these."""

_SCALARS = frozenset((str, int, float, bool, type(None)))
_REASON = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


class Contained:
    """The dialect that a plug-in built for one source. It never has guards or a native path.

    Raises:
        ConfigError: the dialect rejects its options, or cannot be built.
    """

    def __init__(self, plugin: DialectPlugin, setup: Setup, options: Struct) -> None:
        self.name = plugin.name
        self._dialect = dialect = _built(plugin, setup, options)
        self._reasons: set[str] = set()
        self._mask = plugin.masked_value
        # The optional protocols are checked with isinstance, which looks for attributes.
        if isinstance(dialect, Naming):
            self.tables: Callable[[Message], Sequence[TableName]] = lambda message: [
                _copied(table, TableName) for table in _call(dialect.tables, message)
            ]
        if isinstance(dialect, Learning):
            self.learns = dialect.learns
        if isinstance(dialect, Sequenced):
            self.native_position = dialect.native_position
        if isinstance(dialect, MasksItself):
            self.masked_copy: Callable[[Message, MaskedValues], Message] = lambda message, masked: _masked(
                dialect.masked_copy, message, masked
            )

    @property
    def masked_value(self) -> Callable[[bytes, MaskedValues], bytes] | None:
        """The plug-in's function for masked copies, or None."""
        mask = self._mask
        return None if mask is None else lambda value, masked: _masked(mask, value, masked)

    def decode(self, message: Message) -> Outcome:
        outcome = _call(self._dialect.decode, message)
        if isinstance(outcome, Changes):
            return Changes([_checked_change(change) for change in outcome.changes])
        if isinstance(outcome, Skip):
            self._check_reason(outcome.reason)
            return outcome
        if isinstance(outcome, Learned):
            announces = tuple(_checked_change(change) for change in outcome.announces)
            return _copied(Learned(outcome.key, outcome.document, announces), Learned)  # type: ignore[arg-type]
        if isinstance(outcome, Needs):
            return _copied(outcome, Needs)
        raise _failed(f"decode returned {type(outcome).__name__} instead of an outcome")

    def learn(self, key: str, document: bytes) -> object:
        """Parse metadata, even if another dialect wrote it for this source."""
        return _call(self._dialect.learn, key, document)

    def _check_reason(self, reason: object) -> None:
        """Check that a reason is a keyword, because it becomes the label of a metric."""
        if not isinstance(reason, str) or not _REASON.fullmatch(reason):
            raise _failed("the reason to skip the message is not a keyword of lower-case letters")
        if reason not in self._reasons and len(self._reasons) >= MOST_REASONS:
            raise _failed(f"the dialect has more than {MOST_REASONS} reasons to skip messages")
        self._reasons.add(reason)


def contained_recognizer(name: str, recognizer: Recognizer, warn: Callable[[str], object]) -> Recognizer:
    """Return a recognizer that proposes nothing if the plug-in fails.

    Args:
        warn: called with a sentence about the failure.
    """

    def propose(sample: Sequence[ReadMessage]) -> list[Proposal]:
        try:
            return _call(recognizer.propose, sample)
        except (MessageError, Unmaskable) as error:
            warn(f"dialect {name} proposes no options: {error}")
            return []

    return Recognizer(recognizer.attempts, propose)


def _built(plugin: DialectPlugin, setup: Setup, options: Struct) -> Dialect:
    try:
        dialect = plugin.build(setup, options)
    except ConfigError:
        raise
    except Exception as error:  # no message has been read yet, so the text contains no row data
        raise ConfigError(f"dialect {plugin.name} cannot be built: {type(error).__name__}: {error}"[:300]) from None
    if getattr(dialect, "name", None) != plugin.name:
        raise ConfigError(f"dialect {plugin.name}: the `name` of the dialect that was built is not {plugin.name}")
    return dialect


def _call(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plug-in.

    Raises:
        MessageError: the plug-in rejects the message or fails.
        Unmaskable: the plug-in cannot mask the message.
    """
    try:
        return limited(call, *args, **kwargs)
    except Unmaskable:
        raise
    except MessageError as error:
        if error.code not in _CODES:
            raise _failed("the dialect raised MessageError with a code that is not for dialects") from None
        raise
    except Overdue:
        raise _failed(f"no result within {SECONDS} s") from None
    except (Exception, SystemExit) as error:
        raise _failed(f"{type(error).__name__} in {_line_of(error)}") from None


def _masked(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plug-in to mask values.

    Raises:
        Unmaskable: the plug-in cannot mask the message or fails.
    """
    try:
        return _call(call, *args, **kwargs)
    except MessageError as error:
        if error.code == ErrorCode.DIALECT_FAILED:
            raise Unmaskable(f"its dialect failed: {error.reason}") from None
        raise Unmaskable(f"it cannot be read: {error.code}") from None


def _failed(reason: str) -> MessageError:
    return MessageError(ErrorCode.DIALECT_FAILED, reason)


def _line_of(error: BaseException) -> str:
    """Return the line that raised an exception, with its file's folder: `cdc_maxwell/decode.py:41`."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno}"


def _checked_change(change: object) -> Change:
    """Return a copy of a change in which every field has its declared type.

    Raises:
        MessageError: DIALECT_FAILED, or LIMIT_EXCEEDED for a name.
    """
    if isinstance(change, RowChange):
        _check_image(change.before)
        _check_image(change.after)
        return _copied(change, RowChange)
    if isinstance(change, OtherChange):
        _check_image(change.after)
        return _copied(change, OtherChange)
    raise _failed(f"a change is a {type(change).__name__}")


def _copied(part: Struct, kind: type[S]) -> S:
    """Return a copy of a part of an outcome. Structs do not check the types of their fields, but decoding does."""
    try:
        return msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=kind)
    except MessageError:
        raise
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        raise _failed(f"a field of {kind.__name__} does not have its declared type") from None


def _check_image(image: Image | None) -> None:
    for name, value in (image or {}).items():
        if not isinstance(name, str) or type(value) not in _SCALARS:
            raise _failed(f"an image maps {type(name).__name__} to {type(value).__name__}, not a column to a scalar")
