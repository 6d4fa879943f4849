"""Convert the cells of a row to its image. All dialects share this loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from cdc_core.envelope import Issue
from translator.dialects._source_text import SentJson
from translator.message import Image, Limits
from translator.values import Assumed, Converter, Unrepresentable
from translator.values.scalar import raw_text

Converters: TypeAlias = Mapping[str, Converter | None]
"""Each column's converter. None means that all possible values are already canonical, so no call is needed."""


class ConvertersOr(dict[str, Converter | None]):
    """Converters for known columns, with a default for all other columns."""

    def __init__(self, known: Mapping[str, Converter | None], other: Converter | None) -> None:
        super().__init__(known)
        self._other = other

    def __missing__(self, column: str) -> Converter | None:
        return self._other


class Findings(Struct):
    """A row's issues and notes, in order. If an issue or a note applies to both images, it is listed once.

    `sent` is the text from which the cells were parsed. It is None if all cells are text or the message is not JSON.
    """

    issues: dict[Issue, None] = {}
    notes: dict[str, None] = {}
    sent: SentJson | None = None


def build_image(
    cells: Iterable[tuple[str, object]], converters: Converters, findings: Findings, limits: Limits
) -> Image:
    """Return the canonical value for each column, in the order of `cells`. None stays null. `cells` may be iterated
    twice.

    If a value has no faithful canonical form, it is omitted and reported as an issue. Its raw text is truncated to
    `limits.issue_raw_chars`. If a value was read under an assumption, it stays and gets the note `ASSUMPTION=column`.
    """
    try:
        # The common case, without unusual values. Hardly any row has an unusual value, and this code runs for every
        # cell.
        return {
            name: value if value is None or (convert := converters[name]) is None else convert(value)  # type: ignore[misc]
            for name, value in cells
        }
    except (Unrepresentable, Assumed):
        return _with_findings(cells, converters, findings, limits)


class Columns:
    """Converters for a table whose rows usually contain all of its columns.

    Args:
        known: the table's columns.
        other: the converter for any other column.
    """

    def __init__(self, known: Mapping[str, Converter | None], other: Converter | None) -> None:
        self.names = frozenset(known)
        self._converters = ConvertersOr(known, other)
        self._needed = [(name, convert) for name, convert in known.items() if convert is not None]

    def converter(self, name: str) -> Converter | None:
        """Return a column's converter, or None if its values stay unchanged."""
        return self._converters[name]

    def image(self, row: Mapping[str, object], findings: Findings, limits: Limits) -> Image:
        """Return the same image as `build_image`. In a complete row, process only the columns that need a
        conversion.
        """
        if row.keys() != self.names:
            return build_image(row.items(), self._converters, findings, limits)
        image: dict[str, Any] = dict(row)
        try:
            for name, convert in self._needed:
                value = image[name]
                if value is not None:
                    image[name] = convert(value)
        except (Unrepresentable, Assumed):
            return build_image(row.items(), self._converters, findings, limits)
        return image


def _with_findings(
    cells: Iterable[tuple[str, object]], converters: Converters, findings: Findings, limits: Limits
) -> Image:
    image: Image = {}
    for name, value in cells:
        convert = None if value is None else converters[name]
        try:
            image[name] = value if convert is None else convert(value)  # type: ignore[assignment]
        except Unrepresentable as bad:
            findings.issues[Issue(name, bad.code, _raw(value, bad, findings.sent)[: limits.issue_raw_chars])] = None
        except Assumed as assumed:
            image[name] = assumed.value
            findings.notes[f"{assumed.note}={name}"] = None
    return image


def _raw(cell: object, bad: Unrepresentable, sent: SentJson | None) -> str:
    """Return the original text of a cell, because a converter sees and reports the parsed value."""
    if isinstance(cell, str):
        return raw_text(cell)
    text = None if sent is None else sent.text(cell)
    return bad.raw if text is None else text
