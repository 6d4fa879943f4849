"""Write the meanings of codes and notes, and the runbooks, for the desk: `python -m dev.pages.meanings`.

The documentation explains them. The desk shows them without a network. They are therefore collected into
translator/web/meanings.json and translator/web/runbooks.json. A test compares the files with the pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "translator" / "web"

_PAGES = (
    *("docs/operate/dead-letters.md", "docs/envelope.md", "docs/envelope/values.md", "docs/envelope/statements.md"),
    *(f"docs/dialects/{name}.md" for name in ("canal", "dts_avro", "qlik", "shareplex")),
)

_TABLES = frozenset({"code", "note", "issue"})
"""Headings of the first column in tables of meanings."""

_NAME = re.compile(r"`([A-Z][A-Z0-9_]{3,})(?:=[^`]*)?`")
_ITEM = re.compile(r"^- `([A-Z][A-Z_]{3,})` (?:is|means) ")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_PARAGRAPH = re.compile(r"\n\s*\n\s*(?:- )?|\n *- ")
_RULE = re.compile(r"^\|[ :|-]+\|$")


def meanings() -> dict[str, list[dict[str, str]]]:
    """Return the meanings of each name in page order, each with its page and heading."""
    found: dict[str, list[dict[str, str]]] = {}
    for page in _PAGES:
        for name, heading, text in _of_page((ROOT / page).read_text(encoding="utf-8")):
            found.setdefault(name, []).append({"page": page, "heading": heading, "text": text})
    return dict(sorted(found.items()))


def _of_page(text: str) -> Iterator[tuple[str, str, str]]:
    heading, table = "", False
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#"):
            heading = line.strip("# ")
        if item := _ITEM.match(line):
            yield item[1], heading, _plain(" ".join(_item(lines[number:])))
        if not line.startswith("|"):
            table = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if number + 1 < len(lines) and _RULE.match(lines[number + 1]):
            table = cells[0] in _TABLES
        elif table:
            for name in _NAME.findall(cells[0]):
                yield name, heading, _plain(cells[1])


def _item(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a list item."""
    yield lines[0].removeprefix("- ")
    for line in lines[1:]:
        if not line.startswith("  "):
            return
        yield line.strip()


def _plain(text: str) -> str:
    """Return Markdown as plain text."""
    return _LINK.sub(r"\1", text).replace("`", "").replace("**", "")


def runbooks() -> dict[str, dict[str, Any]]:
    """Return each alert's runbook: its page and paragraphs. Code in a paragraph keeps its backquotes."""
    found = {}
    for page in ("docs/runbooks/translator.md", "docs/runbooks/spark-sink.md"):
        for section in (ROOT / page).read_text(encoding="utf-8").split("\n## ")[1:]:
            alert, _, text = section.partition("\n")
            paragraphs = _PARAGRAPH.split(text.strip())
            plain = [_LINK.sub(r"\1", " ".join(part.split())).replace("**", "") for part in paragraphs]
            found[alert] = {"page": page, "paragraphs": plain}
    return found


def files() -> dict[Path, str]:
    """Return the content of each generated file."""
    content = {"meanings.json": meanings(), "runbooks.json": runbooks()}
    return {FOLDER / name: json.dumps(each, ensure_ascii=False, indent=1) + "\n" for name, each in content.items()}


if __name__ == "__main__":
    for file, content in files().items():
        file.write_text(content, encoding="utf-8")
