"""Read the sections, code blocks and tables of a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    """Return the text of a page under docs/."""
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return the text under a second-level heading."""
    (found,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return str(found)


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def table(text: str, head: str) -> list[list[str]]:
    """Return the rows of the table whose first column has that heading, as cells."""
    (body,) = re.findall(rf"^\| {re.escape(head)} \|.*\n\|[ |-]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in body.splitlines()]


def names(rows: list[list[str]]) -> list[str]:
    """Return every word in code marks in the first column."""
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]


def run(*sources: str) -> dict[str, Any]:
    """Run the snippets in order and return the names they define."""
    defined: dict[str, Any] = {}
    for source in sources:
        exec(compile(source, "a snippet of docs", "exec"), defined)
    return defined
