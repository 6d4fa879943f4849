"""Convert options from the configuration or the command line to the frozen options class of a dialect or codec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from translator.errors import ConfigError, unknown

T = TypeVar("T", bound=Struct)


def parse_options(options_class: type[T], given: Mapping[str, Any], owner: str) -> T:
    """Return the options of `owner`, a dialect or a codec.

    Raises:
        ConfigError: a name or a value is unknown (the error suggests the nearest known one), or a value has the wrong
            type.
    """
    known = [field.encode_name for field in msgspec.structs.fields(options_class)]
    for name in given:
        if name not in known:
            raise ConfigError(f"{owner}: {unknown('option', name, known)}")
    hints = get_type_hints(options_class)
    options = dict(given)
    for field in msgspec.structs.fields(options_class):
        name, hint = field.encode_name, hints[field.name]
        _check_words(owner, name, hint, options.get(name))
        if hint is bool and name in options:
            options[name] = _BOOLEANS.get(str(options[name]).lower(), options[name])
    try:
        return msgspec.convert(_with_seconds(options), options_class, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{owner}: {_mistake(str(error))}") from None


_EXPECTED = re.compile(r"Expected `(?P<type>[^`]+)`(?P<bound> [^,]+)?(?:, got .*)?")
_PLACED = re.compile(r"(?P<said>.*?) - at `\$\.?(?P<place>.*)`", re.DOTALL)

_TIME = "expected a time with a UTC offset, such as 2026-01-31T00:00:00Z"
_DURATION = "expected a number of seconds, or a duration such as PT10M"

_TYPES: Mapping[str, str] = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "array": "a list, such as [a, b]",
    "object": "a mapping, such as {name: value}",
    "datetime": "a time with a UTC offset, such as 2026-01-31T00:00:00Z",
}

_INVALID: Mapping[str, str] = {
    "Invalid RFC3339 encoded datetime": _TIME,
    "Expected `datetime` with a timezone component": _TIME,
    "Invalid ISO8601 duration": _DURATION,
}


def _mistake(said: str) -> str:
    """Rephrase a msgspec error for operators. The result never contains the value."""
    placed = _PLACED.fullmatch(said)
    place, said = (placed["place"], placed["said"]) if placed else ("", said)
    expected = _EXPECTED.fullmatch(said)
    if said in _INVALID:
        said = _INVALID[said]
    elif expected:
        names = [name for name in expected["type"].split(" | ") if name != "null"]
        said = f"expected {' or '.join(_TYPES.get(name, name) for name in names)}{expected['bound'] or ''}"
    return f"option {place}: {said}" if place else f"options: {said}"


def _check_words(owner: str, name: str, hint: Any, value: Any) -> None:
    """Reject a value that the option does not allow, and list the allowed ones. msgspec does not list them."""
    allowed = _words(hint)
    for word in value if isinstance(value, (list, tuple)) else (value,):
        if allowed and isinstance(word, str) and word not in allowed:
            raise ConfigError(f"{owner}: {unknown(name, word, allowed)}")


# Settings are read as YAML 1.2, in which these words are plain text. Boolean options accept the words, as settings do.
_BOOLEANS = {"yes": True, "on": True, "no": False, "off": False}


def _words(hint: Any) -> tuple[str, ...]:
    """Return the values allowed for an option whose type is a Literal or a list of Literals. Empty for other types."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((words for arm in get_args(hint) if (words := _words(arm))), ())


_NO_SECONDS = re.compile(r"(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2})(Z|[+-]\d{2}:?\d{2})", re.ASCII)


def _with_seconds(value: Any) -> Any:
    """Add the seconds if they are missing. RFC 3339 requires them, but people leave them out
    (`2022-03-20T00:00+08:00`).
    """
    if isinstance(value, dict):
        return {name: _with_seconds(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_seconds(item) for item in value]
    match = _NO_SECONDS.fullmatch(value) if isinstance(value, str) else None
    return f"{match[1]}:00{match[2]}" if match else value
