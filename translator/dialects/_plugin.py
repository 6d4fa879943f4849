"""The description of a dialect, whether it is built in or installed as a plug-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from translator.dialects._masked_values import MaskedValues
from translator.message import Dialect, Message, Setup
from translator.proposals import Recognizer

API = 1
"""The version of the dialect interface. It stays 1 in all releases 1.x."""


class DialectPlugin(Struct, frozen=True, kw_only=True):
    """A dialect that an entry point in the group `cdc_translator.dialects` offers.

    Args:
        name: the value of `dialect` in the configuration, and the `name` of every dialect that `build` returns.
        api: the version of the dialect interface that the dialect was written for, as a literal number.
        build: returns the dialect for one source. Its second argument is an instance of `options`. It raises
            ConfigError for a combination of options that the types alone would allow.
        options: the class of the source's options. The translator rejects unknown names and wrong types.
        recognizer: lets `translator init` recognize the dialect's messages. Without it, `init` never proposes the
            dialect.
        masked_value: returns a copy of a non-empty message value in which every row value is masked. It raises
            Unmaskable if it cannot find the values. Without it, `translator capture --mask` refuses the source's
            topics, unless the dialect is a `MasksItself`.
    """

    name: str
    api: int
    build: Callable[[Setup, Any], Dialect]
    options: type[Struct]
    recognizer: Recognizer | None = None
    masked_value: Callable[[bytes, MaskedValues], bytes] | None = None


@runtime_checkable
class MasksItself(Protocol):
    """A dialect that needs its options and learned metadata to tell values from other text."""

    def masked_copy(self, message: Message, masked: MaskedValues) -> Message:
        """Return a copy of the message with different row values, or raise Unmaskable."""
        ...
