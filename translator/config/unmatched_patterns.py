"""Find patterns in the configuration that match nothing. A misspelled pattern would silently leave a column
unmasked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from translator.config.mask_rules import UNKNOWN_TYPE, MaskRule
from translator.config.projections import TableChoiceSettings
from translator.config.settings import Settings
from translator.config.table_filter import ANY, matcher

SeenTables = Mapping[tuple[str, str], Mapping[str, str | None]]
"""Columns with their canonical types, by source and full table name. None means that the messages do not reveal the
type.
"""


class _Entry(NamedTuple):
    """An entry with patterns.

    Args:
        place: the entry's path in the configuration.
        patterns: the entry's patterns as text, without patterns that match everything.
        matches: whether the entry matches any of the tables and columns in the sample.
        of: a description of what the entry selects.
    """

    place: str
    patterns: str
    source: str
    matches: Callable[[SeenTables], bool]
    of: str


def unmatched_sources(settings: Settings) -> list[str]:
    """Return a warning for each entry whose source pattern matches no configured source."""
    names = [source.name for source in settings.sources]
    known = ", ".join(names)
    return [
        f"{entry.place}: no source matches {entry.source}; the sources are {known}"
        for entry in _entries(settings)
        if not _any_matches(entry.source, names)
    ]


def unmatched_in(settings: Settings, seen: SeenTables) -> list[str]:
    """Return a note for each entry that matches nothing in a sample. Leave out entries whose source does not exist.

    Args:
        seen: the tables and columns in the sample.
    """
    names = [source.name for source in settings.sources]
    return [
        f"{entry.place} ({entry.patterns}) matched no {entry.of} in the sample"
        for entry in _entries(settings)
        if _any_matches(entry.source, names) and not entry.matches(seen)
    ]


def _any_matches(pattern: str, names: Iterable[str]) -> bool:
    return any(map(matcher(pattern), names))


def _entries(settings: Settings) -> Iterator[_Entry]:
    for number, given in enumerate(settings.masks.rules):
        rule = given.rule()
        patterns = {"source": rule.source, "table": rule.table, "column": rule.column, "type": rule.type}
        matches = _matches_column(rule)
        yield _Entry(f"masks.rules[{number}]", _text(patterns), rule.source, matches, "column")
    outputs: list[tuple[str, Sequence[TableChoiceSettings], Sequence[TableChoiceSettings]]] = [
        ("output", settings.output.include, settings.output.exclude),
        *((f"projections[{n}]", one.include, one.exclude) for n, one in enumerate(settings.projections)),
    ]
    for place, include, exclude in outputs:
        for kind, choices in (("include", include), ("exclude", exclude)):
            for number, choice in enumerate(choices):
                patterns = {"source": choice.source, "table": choice.table}
                matches = _matches_table(choice)
                yield _Entry(f"{place}.{kind}[{number}]", _text(patterns), choice.source, matches, "table")


def _text(patterns: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {pattern}" for name, pattern in patterns.items() if pattern != ANY) or ANY


def _matches_table(choice: TableChoiceSettings) -> Callable[[SeenTables], bool]:
    of_source, of_table = matcher(choice.source), matcher(choice.table)
    return lambda seen: any(of_source(source) and of_table(table) for source, table in seen)


def _matches_column(rule: MaskRule) -> Callable[[SeenTables], bool]:
    def matches(seen: SeenTables) -> bool:
        return any(
            rule.matches_column(column) and rule.matches_type(type_ or UNKNOWN_TYPE) is not False
            for (source, table), columns in seen.items()
            if rule.matches_source(source) and rule.matches_table(table)
            for column, type_ in columns.items()
        )

    return matches
