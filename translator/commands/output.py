"""Command output: tables on standard output, and remarks on standard error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from translator.operations.terminal_text import shown

if TYPE_CHECKING:
    from rich.console import Console

_ANY_WIDTH = 100_000


def say(text: str) -> None:
    """Print a remark on standard error. It begins with the name of the program, because several programs may share a
    terminal.
    """
    click.echo(f"translator: {text}", err=True)


def print_table(
    names: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None, console: Console | None = None
) -> None:
    """Print rows in columns if they fit. Otherwise, print one block of lines per row. Nothing is cut off.

    When the output is a file or a pipe, each row is one line.

    Args:
        console: where to print, or None for standard output.
    """
    # Imported here because every command imports `say`, and importing rich takes a tenth of a second.
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    cells = [[Text(shown(str(cell))) for cell in row] for row in rows]
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(Text(name), no_wrap=True)
    for row in cells:
        table.add_row(*row)
    width = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), table).maximum
    if not console.is_terminal:
        console = Console(file=console.file, width=width)
    if width <= console.width:
        console.print(table)
        return
    if title is not None:
        console.print(Text(title), soft_wrap=True)
    wide = max(map(len, names))
    for row in cells:
        console.print(Text("─" * min(console.width, wide + 2)))
        for name, cell in zip(names, row, strict=True):
            if cell.plain:
                console.print(Text(f"{name:<{wide}}  ").append_text(cell), soft_wrap=True)
