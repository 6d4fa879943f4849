"""Change JSON documents, and find the members of a message that contain its row values."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from cdc_core.envelope import ChangeEvent
from translator.conformance.trial import Trial, with_value
from translator.dialects import MaskedValues
from translator.message import Message

_TRIES = 50
"""Number of other values to try. The document may already contain some of these values."""

_MOST_MEMBERS = 200
"""Maximum number of members to change per message. A wide table has more."""

_DIGITS = re.compile(r"\d{1,18}", re.ASCII)

Path: TypeAlias = tuple[str | int, ...]
"""The names and numbers that lead to a member."""

ImageName: TypeAlias = Literal["before", "after"]


class Cell(Struct, frozen=True):
    """A column in an image of one of a message's events. The event is identified by its number."""

    event: int
    image: ImageName
    column: str

    def of(self, events: list[ChangeEvent]) -> tuple[bool, Any]:
        """Return whether the column is in the image, and its value."""
        image = image_of(events[self.event], self.image)
        return self.column in image, image.get(self.column)


def document_of(value: bytes | None) -> Any:
    """Return the object or array in a message, or None if it is not JSON."""
    try:
        document = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, (dict, list)) else None


def image_of(event: ChangeEvent, name: ImageName) -> dict[str, Any]:
    text = getattr(event, name)
    return {} if text is None else dict(json.loads(text))


def members(document: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Return everything inside a document, each with its path."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in pairs:
        yield (*at, name), value
        if isinstance(value, (dict, list)):
            yield from members(value, (*at, name))


def edited(document: Any, values: Mapping[Path, Any]) -> Any:
    """Return a copy of a document with other values in some places. The copy shares unchanged parts."""
    for path, value in values.items():
        document = _replaced(document, path, value)
    return document


def _replaced(document: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(document)
    changed[path[0]] = _replaced(document[path[0]], path[1:], value)
    return changed


def without(document: Any, path: Path) -> Any:
    """Return a copy of a document without one member."""
    changed = copy.deepcopy(document)
    del _parent(changed, path)[path[-1]]
    return changed


def value_at(document: Any, path: Path) -> Any:
    return _parent(document, path)[path[-1]]


def _parent(document: Any, path: Path) -> Any:
    for step in path[:-1]:
        document = document[step]
    return document


def new_values(document: Any, value: Any, count: int) -> list[Any]:
    """Return other values in the same format that do not occur in the document. Some values have fewer."""
    taken = {str(value), *(str(other) for _, other in members(document))}
    found: dict[str, Any] = {}
    for number in range(1, _TRIES):
        other = _other_value(value, number)
        if str(other) not in taken and len(found) < count:
            found.setdefault(str(other), other)
    return list(found.values())


def _other_value(value: Any, number: int) -> Any:
    masked = MaskedValues(bytes([number]))
    if isinstance(value, str):
        return str(int(value) + number).zfill(len(value)) if _DIGITS.fullmatch(value) else masked.text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return value + number if isinstance(value, int) else json.loads(masked.number(json.dumps(value)))


def likely_carriers(document: Any, events: Sequence[ChangeEvent]) -> list[Path]:
    """Return the members to change, at most 200. Those with a key value come first, then those with an image value."""
    keys = {str(value) for event in events for key in (event.key, event.key_old) if key for value in _values(key)}
    others = {str(value) for event in events for row in (event.before, event.after) if row for value in _values(row)}
    ranked = sorted(members(document), key=lambda member: (str(member[1]) not in keys, str(member[1]) not in others))
    return [path for path, _ in ranked[:_MOST_MEMBERS]]


def _values(image: str) -> Iterable[Any]:
    return dict(json.loads(image)).values()


def carriers(trial: Trial, message: Message, document: Any) -> dict[Path, list[Cell]]:
    """Return the members of a message that contain its row values. With each member, return the cells that have its
    value.

    A member carries a value if two different changes to it change the same cells of a column in two different ways. If
    a member only determines how values are read, as a type does, it carries none.
    """
    events = trial.events(with_value(message, document)) or []
    found: dict[Path, list[Cell]] = {}
    for path in likely_carriers(document, events):
        variants = variants_of(trial, message, document, path, events)
        values = [_cells(variant) for variant in variants]
        cells = [cell for cell in values[0] if len({repr(of.get(cell)) for of in values}) == 3]
        if cells and len({cell.column for cell in cells}) == 1:
            found[path] = cells
    return found


def variants_of(
    trial: Trial, message: Message, document: Any, path: Path, events: list[ChangeEvent]
) -> list[list[ChangeEvent]]:
    """Return a message's events, and its events with two other values for a member. The latter are empty if the number
    of events differs."""
    others = new_values(document, value_at(document, path), 2)
    if len(others) < 2:
        return [[], [], []]
    changed = (with_value(message, edited(document, {path: other})) for other in others)
    found = [events, *(trial.events(one) or [] for one in changed)]
    return found if len({len(one) for one in found}) == 1 else [[], [], []]


def _cells(events: list[ChangeEvent]) -> dict[Cell, Any]:
    """Return the cells of all images, except cells with JSON, because a member might be a part of such a cell."""
    images: tuple[ImageName, ...] = ("before", "after")
    return {
        Cell(number, image, column): value
        for number, event in enumerate(events)
        for image in images
        for column, value in image_of(event, image).items()
        if not str(value).startswith(("{", "["))
    }
