"""Options from the configuration or the command line -> the frozen class of the dialect or codec that they are for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from translator.errors import ConfigError, unknown

T = TypeVar("T", bound=Struct)


def parse_options(options_class: type[T], given: Mapping[str, Any], owner: str) -> T:
    """The options of `owner`, a dialect or a codec.

    Raises:
        ConfigError: an unknown name (with the nearest known one) or a value of the wrong type.
    """
    known = [field.encode_name for field in msgspec.structs.fields(options_class)]
    for name in given:
        if name not in known:
            raise ConfigError(f"{owner}: {unknown('option', name, known)}")
    try:
        return msgspec.convert(_with_seconds(dict(given)), options_class, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{owner}: option not valid: {error}") from None


_NO_SECONDS = re.compile(r"(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2})(Z|[+-]\d{2}:?\d{2})", re.ASCII)


def _with_seconds(value: Any) -> Any:
    """Times may be written without seconds, as people do (`2022-03-20T00:00+08:00`); RFC 3339 wants them."""
    if isinstance(value, dict):
        return {name: _with_seconds(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_seconds(item) for item in value]
    match = _NO_SECONDS.fullmatch(value) if isinstance(value, str) else None
    return f"{match[1]}:00{match[2]}" if match else value
