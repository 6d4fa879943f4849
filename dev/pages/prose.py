"""Print sentences drawn at random from this repository's prose: `python -m dev.pages.prose --seed N`.

Shuffle them with sentences from projects you admire. Have someone who knows neither project rate how natural each
sentence's English is, from 1 to 5 (docs/writing.md). `--count` sets the number of sentences. `--where` also prints each
sentence's file and line.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import click

ROOT = Path(__file__).parents[2]
PACKAGES = ("cdc_core", "translator", "spark_sink", "dev", "bench")

Kind = Literal["docs", "docstring", "setting", "help", "log", "error"]
# The share of each kind in a sample.
_SHARES: Mapping[Kind, float] = {
    "docs": 0.4,
    "docstring": 0.3,
    "setting": 0.1,
    "help": 0.05,
    "log": 0.05,
    "error": 0.1,
}

_LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"(\[])")
_END = re.compile(r"[.!?:][*\")]*$")
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):$")
_CODE = re.compile(
    r"\b(?:SELECT|MERGE INTO|CREATE (?:OR|TABLE|INDEX)|ALTER TABLE|WHEN (?:NOT )?MATCHED|ATTACH|case when|topk)\b"
    r"|import \w+[;,]|[\w.]\|[\w.]|font-family|body \{|-src "
)
"""SQL, Python, CSS and regular expressions."""
_FUNCTION_WORD = re.compile(r"\b(?:an?|the|is|are|was|has|have|not|no|to|of|in|for|from|by|with|and|or|as|on|it)\b")
"""The words that appear in any longer sentence, but not in a list of names."""
_PART = re.compile(r"(?:… ?)?(?:[,;:)]|and\b|but\b|or\b)|#!")
"""The beginning of a string that is only part of a sentence, or of a script."""
_LITERAL = re.compile(r"(?<=\n\n)(?:\x08\n(?:.+(?:\n|\Z))+|(?: {4}.*(?:\n|\Z))+)")
"""An indented block in a docstring, or a block that Click prints as it is."""
_WORDS = re.compile(r"[A-Za-z]{2,}")
_NOT_WORDS = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|\S*[/_.]\S+")
"""Code in marks, targets of links, HTML, paths and names."""


class Text(NamedTuple):
    """A piece of prose, and the line on which it starts."""

    path: Path
    line: int
    kind: Kind
    text: str


def prose() -> Iterator[Text]:
    """Return every page, docstring, setting description, help text, log event and error text, ordered by path."""
    for path in pages():
        yield from _of_page(path)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield from of_module(path, path.read_text(encoding="utf-8"))


def pages() -> list[Path]:
    """Return the Markdown files that people read."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "helm").rglob("*.md")])


def sentences(text: str) -> list[str]:
    """Split a text into sentences, without argument names and list markers."""
    found = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.)\s)|\n(?=\s+\w+: )", text):
        joined = " ".join(line.strip() for line in paragraph.splitlines() if not _SECTION.match(line.strip()))
        joined = re.sub(r"^(?:[-*>#]+|\d+\.)\s+|^\w+: (?=[a-z])", "", joined.strip())
        found += [part.strip() for part in _SENTENCE_END.split(joined) if part.strip()]
    return found


def _of_page(path: Path) -> Iterator[Text]:
    text = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), path.read_text(encoding="utf-8"))
    text = re.sub(r"<!--.*?-->", lambda mark: "\n" * mark[0].count("\n"), text, flags=re.DOTALL)
    paragraph: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                yield Text(path, number, "docs", cell.strip())
        elif line.strip() and not line.startswith(("<", "#")):
            paragraph.append(line)
            continue
        elif line.startswith("#"):
            yield Text(path, number, "docs", line.lstrip("# "))
        if paragraph:
            yield Text(path, number - len(paragraph), "docs", "\n".join(paragraph))
            paragraph = []


def of_module(path: Path, source: str) -> Iterator[Text]:
    """Return a module's docstrings, and its strings with three words or more."""
    tree = ast.parse(source)
    known: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text) as constant):
                known.add(id(constant))
                yield Text(path, node.lineno, "docstring", _LITERAL.sub("", inspect.cleandoc(text)))
            case ast.Call(func=function, args=arguments, keywords=keywords):
                named: dict[str, Kind] = {"description": "setting", "help": "help", "short_help": "help"}
                for keyword in keywords:
                    if keyword.arg in named:
                        yield from _strings(path, keyword.value, named[keyword.arg], known)
                event = arguments[0] if arguments else None
                if (
                    isinstance(function, ast.Attribute)
                    and function.attr in _LOG_METHODS
                    and isinstance(event, ast.Constant)
                ):
                    yield from _strings(path, event, "log", known)
    yield from _strings(path, tree, "error", known)


def _strings(path: Path, root: ast.AST, kind: Kind, known: set[int]) -> Iterator[Text]:
    for node in ast.walk(root):
        if id(node) in known:
            continue
        match node:
            case ast.JoinedStr(values=values):
                known.update(id(child) for child in ast.walk(node))
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in values)
            case ast.Constant(value=str() as text):
                known.add(id(node))
            case _:
                continue
        if " " in text.strip() and len(_WORDS.findall(text)) >= (2 if kind == "log" else 3):
            yield Text(path, node.lineno, kind, text)


def sample(seed: int, count: int) -> list[tuple[Text, str]]:
    """Draw sentences together with their sources. Each kind of prose has a fixed share."""
    drawn = random.Random(seed)
    by_kind: dict[Kind, list[tuple[Text, str]]] = {kind: [] for kind in _SHARES}
    for text in prose():
        enough = 3 if text.kind == "log" else 6
        for one in sentences(text.text):
            # A list of tests, a path or a line of SVG is not prose, regardless of the number of words.
            if text.kind == "error" and (_PART.match(one) or _CODE.search(one) or not _FUNCTION_WORD.search(one)):
                continue
            # Headings, list items and table cells are often fragments that only their context explains.
            if text.kind == "docs" and (one[0].islower() or not _END.search(one)):
                continue
            if len(_WORDS.findall(_NOT_WORDS.sub(" ", one))) >= enough:
                by_kind[text.kind].append((text, one))
    chosen = [one for kind, share in _SHARES.items() for one in drawn.sample(by_kind[kind], round(count * share))]
    drawn.shuffle(chosen)
    return chosen


@click.command()
@click.option("--seed", type=int, required=True, help="Seed for the draw. The same seed draws the same sentences.")
@click.option("--count", type=int, default=60, show_default=True, help="Number of sentences.")
@click.option("--where", is_flag=True, help="Print the file and the line of each sentence.")
def main(seed: int, count: int, where: bool) -> None:
    """Draw sentences for a blind rating."""
    for number, (text, sentence) in enumerate(sample(seed, count), 1):
        origin = f"  [{text.path.relative_to(ROOT)}:{text.line}, {text.kind}]" if where else ""
        click.echo(f"{number}. {' '.join(sentence.split())}{origin}")


if __name__ == "__main__":
    main()
