"""Apply masks to values. NULL stays NULL, because it reveals nothing. A key that contains NULL is not a key, even if it
is masked.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from translator.config.mask_rules import Action, MaskRule
from translator.errors import ConfigError
from translator.message import Scalar

Masked: TypeAlias = Callable[[Scalar], Scalar]
"""Returns the masked form of a value other than NULL."""


def masked_by(rule: MaskRule, key: bytes | None) -> Masked:
    """Return the function that applies a rule to values, or None for `drop`.

    Raises:
        ConfigError: the rule requires a key, but no key is set.
    """
    return _MAKERS[rule.action](rule, key)


def _nothing(rule: MaskRule, key: bytes | None) -> Masked:
    return lambda value: None


def _hash(rule: MaskRule, key: bytes | None) -> Masked:
    if not key:
        raise ConfigError("masks: a rule uses hash, but masks.key is not set")
    return lambda value: hmac.digest(key, text_of(value).encode(), "sha256").hex()


def _truncate(rule: MaskRule, key: bytes | None) -> Masked:
    return lambda value: _part(text_of(value), slice(rule.length), rule.length)


def _keep_last(rule: MaskRule, key: bytes | None) -> Masked:
    return lambda value: _part(text_of(value), slice(-rule.length, None), rule.length)


def _part(text: str, part: slice, length: int) -> str:
    """Return a part of a string. If this would be the whole string, return nothing."""
    return text[part] if len(text) > length else ""


def _replace(rule: MaskRule, key: bytes | None) -> Masked:
    return lambda value: rule.text


_MAKERS: Mapping[Action, Callable[[MaskRule, bytes | None], Masked]] = {
    "drop": _nothing,
    "set_null": _nothing,
    "hash": _hash,
    "truncate": _truncate,
    "keep_last": _keep_last,
    "replace": _replace,
}

TEXT = frozenset({"hash", "truncate", "keep_last", "replace"})
"""The actions that always produce text."""


def text_of(value: Scalar) -> str:
    """Return the canonical text of a value. 7 and "7" have the same text, so columns of both types can be joined."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
