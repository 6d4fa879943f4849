"""What the documents say is so: tables name what the code has, examples are what comes out, snippets run."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.translator.examples import UPDATE
from translator.codecs.avro import HEADER, AvroCodec
from translator.codecs.json import JsonCodec
from translator.commands.record_file import read_records
from translator.dialects import build
from translator.envelope import ChangeEvent, Column, TableSchema, avro_schema
from translator.errors import ErrorCode
from translator.message import Limits, Setup
from translator.translate import Events, Translator
from translator.values import CANONICAL_TYPES

ROOT = Path(__file__).parents[2]
ENVELOPE = (ROOT / "docs" / "envelope.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def section(heading: str) -> str:
    """The text of one section of docs/envelope.md."""
    (text,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", ENVELOPE, re.MULTILINE | re.DOTALL)
    return str(text)


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def table(text: str, head: str) -> list[list[str]]:
    """The rows of the table whose first column has that head; cells without code marks' surroundings."""
    (body,) = re.findall(rf"^\| {head} \|.*\n\|[ |-]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in body.splitlines()]


def names(rows: list[list[str]]) -> list[str]:
    """Every word in code marks in the first column."""
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]


class TestEnvelope:
    def test_fields(self) -> None:
        """The table names exactly the fields of ChangeEvent, in order."""
        assert list(ChangeEvent.__struct_fields__) == names(table(section("Fields"), "field"))

    def test_types(self) -> None:
        """The table marks exactly the fields that may be null."""
        marked = [row[1].endswith("?") for row in table(section("Fields"), "field")]
        assert [isinstance(field["type"], list) for field in avro_schema()["fields"]] == marked

    def test_values(self) -> None:
        """The table of image forms names every canonical type once, and no other."""
        assert sorted([*CANONICAL_TYPES, "decimal(p,s)"]) == sorted(names(table(section("Values in images"), "type")))

    def test_codes(self) -> None:
        """The table of issue codes names exactly the codes that the shared converters give."""
        sources = (ROOT / "translator" / "values").glob("*.py")
        texts = [re.sub(r"__all__ = .*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in sources]
        given = {code for text in texts for code in re.findall(r'"([A-Z][A-Z0-9_]{3,})"', text)}
        listed = names(table(section("Values in images"), "code"))
        assert sorted(given) == sorted(listed)

    def test_schema(self) -> None:
        """The members of a table schema and of a column are named."""
        text = section("The schemas topic")
        wanted = [*TableSchema.__struct_fields__, *Column.__struct_fields__]
        assert [] == [name for name in wanted if f"`{name}`" not in text]

    def test_header(self) -> None:
        """The header of an Avro value is the one that is written, wherever it stands in the page."""
        assert {HEADER.hex()} == set(re.findall(r"c301[0-9a-f]{16}", ENVELOPE))

    def test_example(self, tmp_path: Path) -> None:
        """The event of the example is what the translator makes of the record of the example."""
        record, event = blocks(section("An example"), "json")
        path = tmp_path / "records.jsonl"
        path.write_text(record, encoding="utf-8")
        (message,) = read_records(path)
        translator = Translator("shop", build("canal", Setup("shop"), {}), Limits())
        result = translator.translate(message)
        assert isinstance(result, Events)
        (written,) = JsonCodec().encode(result.events[0])
        assert json.loads(event) == json.loads(written.value or b"")

    def test_python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The snippet for Python reads what the codec writes, and refuses what it does not know."""
        monkeypatch.chdir(ROOT)
        decode = _run(blocks(section("The Kafka record"), "python")[0])["decode"]
        event = decode(AvroCodec().encode(UPDATE)[0].value)
        assert {"id": 8, "price": "12.50"} == event["after"]
        assert list(ChangeEvent.__struct_fields__) == list(event)
        with pytest.raises(ValueError, match="not version 1"):
            decode(b'{"v":1}')


def _run(source: str) -> dict[str, Callable[..., Any]]:
    """The names that a snippet of a document defines."""
    defined: dict[str, Any] = {}
    exec(compile(source, "docs/envelope.md", "exec"), defined)
    return defined


def dead_links(page: Path) -> list[str]:
    """Links to files of this repository that lead nowhere."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [target for target in targets if "://" not in target and not (page.parent / target).exists()]


class TestDocuments:
    @pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
    def test_links(self, page: Path) -> None:
        """Every link to a file of this repository leads to one."""
        assert [] == dead_links(page)

    def test_the_search_finds(self, tmp_path: Path) -> None:
        """The search above can fail, and leaves addresses and headings alone."""
        page = tmp_path / "page.md"
        page.write_text("[a](page.md) [b](page.md#x) [c](gone.md#x) [d](https://example.org/gone.md) [e](#here)")
        assert ["gone.md"] == dead_links(page)


def test_error_codes_are_a_closed_list() -> None:
    """The codes of dead letters are those of the contract; operators filter by them."""
    assert {
        *("FRAMING", "MALFORMED_JSON", "MALFORMED_AVRO", "LIMIT_EXCEEDED", "UNKNOWN_TYPE", "UNKNOWN_OPERATION"),
        *("MISSING_FIELD", "INVALID_FIELD", "TABLE_UNKNOWN", "SCHEMA_MISSING", "AMBIGUOUS_VARIANT"),
        *("UNSUPPORTED_SHAPE", "KEY_MISSING", "KEY_CHANGE_INCOMPLETE", "HELD", "TOO_LARGE", "INTERNAL"),
    } == {code.value for code in ErrorCode}


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


class TestGlossary:
    def test_one_term_one_meaning(self) -> None:
        """No term is explained twice."""
        terms = re.findall(r"\*\*([^*]+)\*\*(?: \(([^)]+)\))?", GLOSSARY)
        assert sorted(set(terms)) == sorted(terms)

    @pytest.mark.parametrize(
        "term",
        [
            *("message", "dialect", "event", "envelope", "before image", "after image", "key", "position", "scope"),
            *("dead letter", "parked", "tombstone", "watermark", "micro-batch", "absent", "null", "unavailable"),
            *("translated", "dead", "skipped", "learned"),
        ],
    )
    def test_terms(self, term: str) -> None:
        """The words that the code and the other pages use are explained."""
        assert f"**{term}**" in GLOSSARY
