"""Values and what masks make of them. NULL tells no text, and stays: a key that holds it is none, masked or not."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from translator.config.mask_rules import Action, MaskRule
from translator.errors import ConfigError
from translator.message import Scalar

Masked: TypeAlias = Callable[[Scalar], Scalar]
"""The masked value of a value that is not NULL."""


def masked_by(rule: MaskRule, key: bytes | None) -> Masked:
    """Return what a rule makes of values; `drop` makes none.

    Raises:
        ConfigError: it needs a key, and there is none.
    """
    return _MAKERS[rule.action](rule, key)


def _nothing(rule: MaskRule, key: bytes | None) -> Masked:
    return lambda value: None


def _hash(rule: MaskRule, key: bytes | None) -> Masked:
    if not key:
        raise ConfigError("masks: a rule hashes, and masks.key is not set")
    return lambda value: hmac.digest(key, text_of(value).encode(), "sha256").hex()


def _truncate(rule: MaskRule, key: bytes | None) -> Masked:
    return lambda value: _part(text_of(value), slice(rule.length), rule.length)


def _keep_last(rule: MaskRule, key: bytes | None) -> Masked:
    return lambda value: _part(text_of(value), slice(-rule.length, None), rule.length)


def _part(text: str, part: slice, length: int) -> str:
    """A part of a text; nothing of one that would stay whole."""
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
"""The actions that make text of every value."""


def text_of(value: Scalar) -> str:
    """Return the canonical text of a value: 7 and "7" are one, so that columns of both types can be joined."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
