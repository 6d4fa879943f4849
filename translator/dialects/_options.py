"""Dialect options: a mapping from the configuration or the command line -> the frozen class of the dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from translator.errors import ConfigError, unknown

T = TypeVar("T", bound=Struct)


def parse_options(options_class: type[T], given: Mapping[str, Any], dialect: str) -> T:
    """The options of a dialect.

    Raises:
        ConfigError: an unknown name (with the nearest known one) or a value of the wrong type.
    """
    known = [field.encode_name for field in msgspec.structs.fields(options_class)]
    for name in given:
        if name not in known:
            raise ConfigError(f"{dialect}: {unknown('option', name, known)}")
    try:
        return msgspec.convert(dict(given), options_class, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{dialect}: option not valid: {error}") from None
