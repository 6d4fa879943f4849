"""Describe a mistake in the configuration in plain words. The text gives the location and the expected value, but never
the actual value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import yaml
from pydantic import BaseModel, ValidationError

from cdc_core.errors import ConfigError, quote, unknown

Location: TypeAlias = tuple[int | str, ...]


class Places:
    """A file's line numbers, and the names of list items, by location."""

    def __init__(self, root: yaml.Node | None) -> None:
        self._lines: dict[Location, int] = {}
        self._names: dict[Location, str] = {}
        self._walk(root, (), frozenset())

    def _walk(self, node: yaml.Node | None, location: Location, above: frozenset[int]) -> None:
        if node is None or id(node) in above:  # an alias can refer to a node that contains the alias
            return
        self._lines.setdefault(location, node.start_mark.line + 1)
        below = above | {id(node)}
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._walk(item, (*location, index), below)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    self._lines[*location, key.value] = key.start_mark.line + 1
                    self._walk(value, (*location, key.value), below)
                    if key.value == "name" and isinstance(value, yaml.ScalarNode):
                        self._names[location] = value.value

    def is_there(self, location: Location) -> bool:
        return location in self._lines

    def text(self, location: Location) -> str:
        """Return a location in words, such as `line 5: sources[0] (erp).topics`. If a setting is missing, the line is
        that of its section.
        """
        known = location
        while known and known not in self._lines:
            known = known[:-1]
        line = f"line {self._lines[known]}: " if known else ""
        return line + self._path(location)

    def _path(self, location: Location) -> str:
        path = ""
        for depth, part in enumerate(location, 1):
            if isinstance(part, str):
                key = part if part.isprintable() else quote(part)
                path += f".{key}" if path else key
                continue
            path += f"[{part}]"
            if name := self._names.get(location[:depth]):
                path += f" ({name[:_NAME_CHARACTERS] if name.isprintable() else quote(name)})"
        return path


_NAME_CHARACTERS = 60


class SettingsFile:
    """The file that the settings were read from, for mistakes that show only when the settings are used."""

    def __init__(self, where: str, places: Places) -> None:
        self._where = where
        self._places = places

    def refusal(self, wrong: Sequence[tuple[Location, ConfigError]]) -> ConfigError:
        """Return one error for all mistakes, each with its location."""
        return refused(self._where, [f"{self._places.text(place)}: {error}" for place, error in wrong])


def refused(where: str, lines: Sequence[str]) -> ConfigError:
    """Return one error that lists everything that is wrong with a file."""
    return ConfigError(f"{where}:\n" + "\n".join(f"  {line}" for line in lines))


def mistakes(error: ValidationError, model: type[BaseModel], places: Places) -> list[str]:
    """Return one line for each location with a mistake."""
    found: dict[Location, dict[str, None]] = {}
    told = error.errors(include_input=False, include_url=False)
    within = {mistake["loc"][:depth] for mistake in told for depth in range(len(mistake["loc"]))}
    for mistake in told:
        if mistake["type"] == "too_short" and mistake["loc"] in within:
            continue  # pydantic also reports a list with invalid items as empty
        place = _place(mistake["loc"], mistake["type"], places)
        found.setdefault(place, {})[_said(mistake, model)] = None
    return [
        f"{places.text(place)}: {_joined([*sentences])}" if place else _joined([*sentences])
        for place, sentences in found.items()
    ]


def _place(location: Location, kind: str, places: Places) -> Location:
    """Return the location in the file, without the parts that pydantic adds for keys and for the variants of a
    union.
    """
    if location and location[-1] == "[key]":
        return location[:-1]
    if kind in ("missing", "extra_forbidden"):
        return location
    while location and not places.is_there(location):
        location = location[:-1]
    return location


def _joined(sentences: Sequence[str]) -> str:
    """Return one sentence that lists all values which a setting with several types accepts."""
    if len(sentences) > 1 and all(sentence.startswith(_EXPECTED) for sentence in sentences):
        return _EXPECTED + " or ".join(sentence.removeprefix(_EXPECTED) for sentence in sentences)
    return "; ".join(sentences)


_EXPECTED = "expected "


def _said(mistake: Any, model: type[BaseModel]) -> str:
    kind, location, context = mistake["type"], mistake["loc"], mistake.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown("setting", location[-1], _names_at(model, location[:-1]))
    if location and location[-1] == "[key]" and "expected" in context:
        return unknown("key", location[-2], _words(context["expected"]))
    if kind in _SENTENCES:
        return _SENTENCES[kind](context)
    return str(mistake["msg"]).removeprefix("Value error, ")


def _words(expected: str) -> list[str]:
    """Return the words in pydantic's text `'a', 'b' or 'c'`."""
    return re.findall(r"'([^']*)'", expected)


def _names_at(model: Any, location: Location) -> list[str]:
    """Return the known settings at a location in the file."""
    for part in location:
        if isinstance(part, str):
            model = _model_in(model.model_fields[part].annotation)
    return list(model.model_fields)


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(found for arm in annotation.__args__ if (found := _model_in(arm)) is not None)


def _one_of(context: Mapping[str, Any]) -> str:
    *others, last = _words(context["expected"])
    return f"expected {', '.join(others)} or {last}" if others else f"expected {last}"


def _length(count: int, context: Mapping[str, Any]) -> str:
    """Return a length with its unit. Pydantic reports the length of a secret just like the length of a list."""
    one, many = ("entry", "entries") if context["field_type"] in _COLLECTIONS else ("character", "characters")
    return f"{count} {one if count == 1 else many}"


_COLLECTIONS = frozenset({"List", "Tuple", "Set", "Frozenset", "Dictionary"})


def _always(sentence: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda _: sentence


def _kinds() -> Iterator[tuple[str, Callable[[Mapping[str, Any]], str]]]:
    """Yield the sentences for mistakes, keyed by the names that pydantic gives to them."""
    for kinds, sentence in (
        (("bool_type", "bool_parsing"), "expected true or false"),
        (("string_type",), "expected text; add quotes around values that YAML would read as another type"),
        (("int_type", "int_parsing", "int_from_float"), "expected a whole number"),
        (("float_type", "float_parsing"), "expected a number"),
        (("tuple_type", "list_type"), "expected a list, such as [a, b]"),
        (("dict_type", "model_type", "model_attributes_type"), "expected a mapping, such as {name: value}"),
        (("missing",), "is required"),
        (("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), _TIME),
        (("timezone_aware",), _TIME),
        (("path_type",), "expected a file name"),
    ):
        for kind in kinds:
            yield kind, _always(sentence)


_TIME = "expected a time with a UTC offset, such as 2026-01-31T00:00:00Z"

_SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    **dict(_kinds()),
    "literal_error": _one_of,
    "enum": _one_of,
    "greater_than": lambda context: f"expected more than {context['gt']}",
    "greater_than_equal": lambda context: f"expected at least {context['ge']}",
    "less_than": lambda context: f"expected less than {context['lt']}",
    "less_than_equal": lambda context: f"expected at most {context['le']}",
    "too_short": lambda context: f"expected at least {_length(context['min_length'], context)}",
    "too_long": lambda context: f"expected at most {_length(context['max_length'], context)}",
    "string_too_short": lambda context: f"expected at least {context['min_length']} characters",
    "string_too_long": lambda context: f"expected at most {context['max_length']} characters",
    "string_pattern_mismatch": lambda context: f"expected text that matches {context['pattern']}",
}
