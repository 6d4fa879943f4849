"""Tables on the terminal are complete at every width, and their content cannot control the terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from translator.commands.output import print_table

NAMES = ("source", "table", "only in", "letters")
ROWS = [("erp", "hr.employees_of_the_whole_company", "", 12), ("shop", "s.t", "cdc.debezium", 3)]


def printed(width: int, rows: list[tuple[object, ...]], *, terminal: bool = True, title: str | None = None) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    print_table(NAMES, rows, title=title, console=console)
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())


def test_side_by_side_where_it_fits() -> None:
    """A row is one line under the column names."""
    text = printed(80, ROWS, title="dry run")
    assert "dry run" == text.splitlines()[0].strip()
    lines = [
        [cell.strip() for cell in line.strip("┃│").split("┃" if "┃" in line else "│")] for line in text.splitlines()
    ]
    assert [list(NAMES), *([str(cell) for cell in row] for row in ROWS)] == [line for line in lines if len(line) == 4]


@pytest.mark.parametrize("width", [1, 20, 60])
def test_one_below_the_other_where_it_does_not(width: int) -> None:
    """Each cell is a complete line with its column name. Empty cells are omitted."""
    told = printed(width, ROWS, title="dry run")
    lines = [line.split(maxsplit=1) for line in told.splitlines() if not line.startswith("─")]
    assert [
        ["dry", "run"],
        *(["source", "erp"], ["table", "hr.employees_of_the_whole_company"], ["letters", "12"]),
        *(["source", "shop"], ["table", "s.t"], ["only", "in  cdc.debezium"], ["letters", "3"]),
    ] == lines


def test_a_file_gets_lines_that_are_whole() -> None:
    """In a file, each row is one complete line, whatever the terminal's width."""
    (line,) = (line for line in printed(20, [("a" * 500, "b", "", 1)], terminal=False).splitlines() if "aaa" in line)
    assert "a" * 500 in line


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("a\x1b[2Jb", r"a\u001b[2Jb"),
        ("a\nb\rc\x07", r"a\u000ab\u000dc\u0007"),
        ("a\u202eb\u2028", r"a\u202eb\u2028"),
        ("[red]a[/red]", "[red]a[/red]"),
        ("\U000e0001a", r"\udb40\udc01a"),
        ("Größe 大", "Größe 大"),
    ],
)
def test_no_name_acts(name: str, seen: str, terminal: bool) -> None:
    """Escapes, line breaks and direction marks are shown as in JSON, and markup as text."""
    for width in (20, 200):
        text = printed(width, [("erp", name, "", 1)], terminal=terminal)
        assert seen in text
        assert name == seen or name not in text
