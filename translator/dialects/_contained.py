"""Contain a plug-in's dialect. Each of its mistakes affects only the message in which it happens.

A message becomes a dead letter with DIALECT_FAILED if there is any exception other than MessageError, a result outside
the interface, or a call that takes too long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from msgspec import Struct

from translator.dialects._masked_values import MaskedValues
from translator.dialects._plugin import DialectPlugin, MasksItself
from translator.dialects._plugin_calls import BrokenRule, OverdueCall, call, line_of
from translator.dialects._plugin_outcomes import OutcomeCopies, copied
from translator.errors import ConfigError, ErrorCode, MessageError, Unmaskable
from translator.message import Dialect, Learning, Message, Naming, Outcome, Sequenced, Setup, Skip, TableName
from translator.proposals import Proposal, ReadMessage, Recognizer

P = ParamSpec("P")
T = TypeVar("T")

MOST_REASONS = 16
"""Maximum number of different reasons to skip messages. Each reason is the label of a metric."""

_REASON = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


class Contained:
    """The dialect that a plug-in built for one source. It never has guards or a native path.

    Raises:
        ConfigError: the dialect rejects its options, or cannot be built.
    """

    def __init__(self, plugin: DialectPlugin, setup: Setup, options: Struct) -> None:
        self.name = plugin.name
        self._dialect = dialect = _built(plugin, setup, options)
        self._copies = OutcomeCopies(setup.source, setup.limits)
        self._reasons: set[str] = set()
        self._mask = plugin.masked_value
        self.overdue = False
        """True once a call to `decode` or `learn` took too long."""
        # The optional protocols are checked with isinstance, which looks for attributes.
        if isinstance(dialect, Naming):
            self.tables: Callable[[Message], Sequence[TableName]] = lambda message: call(
                lambda: self._copies.tables(dialect.tables(message))
            )
        if isinstance(dialect, Learning):
            self.learns = dialect.learns
        if isinstance(dialect, Sequenced):
            self.native_position = dialect.native_position
        if isinstance(dialect, MasksItself):
            self.masked_copy: Callable[[Message, MaskedValues], Message] = lambda message, masked: _masked(
                lambda: copied(dialect.masked_copy(message, masked), Message)
            )

    @property
    def masked_value(self) -> Callable[[bytes, MaskedValues], bytes] | None:
        """The plug-in's function for masked copies, or None."""
        mask = self._mask
        return None if mask is None else lambda value, masked: _masked(lambda: _bytes(mask(value, masked)))

    def decode(self, message: Message) -> Outcome:
        return self._timed(self._decoded, message)

    def learn(self, key: str, document: bytes) -> object:
        """Parse metadata, even if another dialect wrote it for this source."""
        return self._timed(self._dialect.learn, key, document)

    def _timed(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(function, *args, **kwargs)
        except OverdueCall:
            self.overdue = True
            raise

    def _decoded(self, message: Message) -> Outcome:
        outcome = self._copies.outcome(self._dialect.decode(message))
        if isinstance(outcome, Skip):
            self._check_reason(outcome.reason)
        return outcome

    def _check_reason(self, reason: str) -> None:
        """Check that a reason is a keyword, because it becomes a metric label."""
        if not _REASON.fullmatch(reason):
            raise BrokenRule(
                "the reason to skip the message is not a keyword; expected a lower-case letter, followed by up to "
                "39 lower-case letters, digits and underscores"
            )
        if reason not in self._reasons and len(self._reasons) >= MOST_REASONS:
            raise BrokenRule(f"the dialect has more than {MOST_REASONS} reasons to skip messages")
        self._reasons.add(reason)


def contained_recognizer(name: str, recognizer: Recognizer, warn: Callable[[str], object]) -> Recognizer:
    """Return a recognizer that proposes nothing if the plug-in fails.

    Args:
        warn: called with a sentence about the failure.
    """

    def propose(sample: Sequence[ReadMessage]) -> list[Proposal]:
        try:
            return call(lambda: _proposals(recognizer.propose(sample)))
        except (MessageError, Unmaskable) as error:
            warn(f"dialect {name} proposes no options: {error}")
            return []

    return Recognizer(recognizer.attempts, propose)


def _proposals(proposals: object) -> list[Proposal]:
    if not isinstance(proposals, list) or not all(isinstance(one, Proposal) for one in proposals):
        raise BrokenRule("propose returned something other than a list of Proposal")
    return proposals


def _built(plugin: DialectPlugin, setup: Setup, options: Struct) -> Dialect:
    try:
        dialect = plugin.build(setup, options)
        _check_built(plugin.name, dialect)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:  # the text is left out, because it could contain an option's value
        raise ConfigError(
            f"dialect {plugin.name} cannot be built: {type(error).__name__} in {line_of(error)}"
        ) from None
    return dialect


def _check_built(name: str, dialect: Dialect) -> None:
    found = getattr(dialect, "name", None)
    if found != name:
        raise ConfigError(f"dialect {name}: build returned a dialect with the name {found!r}; expected {name!r}")
    for method in ("decode", "learn"):
        if not callable(getattr(dialect, method, None)):
            raise ConfigError(f"dialect {name}: build returned a dialect without the method {method}")
    if isinstance(dialect, Learning) and not isinstance(dialect.learns, bool):
        raise ConfigError(f"dialect {name}: learns is {type(dialect.learns).__name__}; expected bool")
    if isinstance(dialect, Sequenced):
        try:
            re.compile(dialect.native_position)
        except (re.error, TypeError):
            raise ConfigError(f"dialect {name}: native_position is not a regular expression") from None


def _masked(mask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plug-in to mask values.

    Raises:
        Unmaskable: the plug-in cannot mask the message or fails.
    """
    try:
        return call(mask, *args, **kwargs)
    except MessageError as error:
        if error.code == ErrorCode.DIALECT_FAILED:
            raise Unmaskable(f"its dialect failed: {error.reason}") from None
        raise Unmaskable(f"it cannot be read: {error.code}") from None


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise BrokenRule(f"masked_value returned {type(value).__name__} instead of bytes")
    return value
