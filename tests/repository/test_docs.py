"""The documentation matches the code: its tables are complete, its links work, and its terms are explained."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from cdc_core.envelope import ChangeEvent, Column, TableSchema, avro_schema
from tests.repository.pages import DOCS, ROOT, names, page, section, table
from tests.translator.dialects.case import CASES, find_cases, opened
from translator.codecs.avro import HEADER
from translator.dialects import DIALECTS
from translator.errors import ErrorCode
from translator.message import Limits
from translator.translation.translate import Events, Translator
from translator.values import CANONICAL_TYPES

ENVELOPE = page("envelope.md")
VALUES = page("envelope/values.md")
SOURCES = page("envelope/sources.md")
DOCUMENTS = sorted([*ROOT.glob("README*.md"), *DOCS.rglob("*.md")])


class TestEnvelope:
    def test_fields(self) -> None:
        """The table lists exactly the fields of ChangeEvent, in order."""
        assert list(ChangeEvent.__struct_fields__) == names(table(section(ENVELOPE, "Fields"), "field"))

    def test_types(self) -> None:
        """The table marks exactly the nullable fields."""
        marked = [row[1].endswith("?") for row in table(section(ENVELOPE, "Fields"), "field")]
        assert [isinstance(field["type"], list) for field in avro_schema()["fields"]] == marked

    def test_values(self) -> None:
        """The table of image forms lists every canonical type once, and nothing else."""
        assert sorted([*CANONICAL_TYPES, "decimal(p,s)"]) == sorted(names(table(section(VALUES, "Types"), "type")))

    def test_codes(self) -> None:
        """The tables of issue codes and notes list exactly those that the shared converters produce."""
        sources = (ROOT / "translator" / "values").glob("*.py")
        texts = [re.sub(r"__all__ = .*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in sources]
        given = {code for text in texts for code in re.findall(r'"([A-Z][A-Z0-9_]{3,})"', text)}
        listed = [name for head in ("code", "note") for name in names(table(VALUES, head))]
        assert sorted(given) == sorted(listed)

    def test_schema(self) -> None:
        """The page documents every member of a table schema and of a column."""
        text = section(ENVELOPE, "The schemas topic")
        wanted = [*TableSchema.__struct_fields__, *Column.__struct_fields__]
        assert [] == [name for name in wanted if f"`{name}`" not in text]

    def test_header(self) -> None:
        """Every page that shows the header of an Avro value shows the one that the translator writes."""
        found = {header for path in DOCUMENTS for header in re.findall(r"c301[0-9a-f]{16}", path.read_text())}
        assert {HEADER.hex()} == found


def _issue_codes(dialect: str) -> set[str]:
    """Return the codes that a dialect's own modules raise."""
    found: set[str] = set()
    for path in (ROOT / "translator" / "dialects" / dialect).glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _WITH_CODE:
                texts = (node.value for node in ast.walk(call) if isinstance(node, ast.Constant))
                found.update(text for text in texts if isinstance(text, str) and re.fullmatch("[A-Z_]{4,}", text))
    return found


_WITH_CODE = ("Unrepresentable", "_one_reading")


class TestDialects:
    @pytest.mark.parametrize("dialect", DIALECTS)
    def test_issue_codes(self, dialect: str) -> None:
        """Every issue code of a dialect is listed on its page or among the codes that all dialects share."""
        text = VALUES + page(f"dialects/{dialect}.md")
        assert [] == sorted(code for code in _issue_codes(dialect) if f"`{code}`" not in text)

    def test_the_search_finds(self) -> None:
        """The search finds codes in each of the ways in which the code sets them."""
        assert _issue_codes("canal") >= {"SRID_UNSUPPORTED", "ENUM_UNKNOWN", "LABEL_AMBIGUOUS", "LABEL_MISSING"}


def _sources() -> dict[str, dict[str, str]]:
    """Return the origin of each field by dialect, as stated on the page."""
    rows = table(SOURCES, "field")
    return {name: dict(zip(DIALECTS, row[1:], strict=True)) for row in rows for name in names([row])}


class TestSources:
    def test_fields(self) -> None:
        """Every field appears exactly once: in the table, or above it if it does not depend on the dialect."""
        above, _, _ = SOURCES.partition("come from the Kafka record")
        listed = [*re.findall(r"`([^`]+)`", above), *_sources()]
        assert sorted(ChangeEvent.__struct_fields__) == sorted(listed)

    def test_columns(self) -> None:
        """The columns are the dialects, in dictionary order."""
        heads = ("field", *(f"`{name}`" for name in DIALECTS))
        assert f"| {' | '.join(heads)} |" in SOURCES

    @pytest.mark.parametrize("case", find_cases(), ids=lambda path: path.relative_to(CASES).as_posix())
    def test_always_null(self, case: Path) -> None:
        """If the page says that a dialect never sets a field, no test case of that dialect sets it."""
        dialect, message = opened(case)
        result = Translator("source", dialect, Limits()).translate(message)
        never = [field for field, told in _sources().items() if told[case.parent.name] == "–"]
        events = result.events if isinstance(result, Events) else []
        assert {} == {field: value for event in events for field in never if (value := getattr(event, field))}


def dead_links(path: Path) -> list[str]:
    """Return the broken links to files of this repository and to headings of its pages."""
    prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", prose) if "://" not in target]
    return [target for target in targets if not _leads_somewhere(path, *target.partition("#")[::2])]


def _leads_somewhere(path: Path, file: str, heading: str) -> bool:
    target = path.parent / file if file else path
    if not heading:
        return target.exists()
    return target.is_file() and heading in _anchors(target.read_text(encoding="utf-8"))


def _anchors(text: str) -> list[str]:
    """Return the anchors that GitHub generates for the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


class TestDocuments:
    @pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
    def test_links(self, path: Path) -> None:
        """Every link to a file or heading of this repository has a target."""
        assert [] == dead_links(path)

    def test_the_search_finds(self, tmp_path: Path) -> None:
        """The search finds broken links and ignores URLs and code."""
        path = tmp_path / "page.md"
        path.write_text(
            "# It is: `here`\n[a](page.md) [b](page.md#it-is-here) [c](gone.md#x) [d](https://example.org/gone.md#x)"
            "[e](#it-is-here) [f](#gone)\n```\na[0](gone.md)\n```\n"
        )
        assert ["gone.md#x", "#gone"] == dead_links(path)


def test_error_codes_are_a_closed_list() -> None:
    """Dead letters use exactly the codes of the contract, because operators filter by them."""
    assert {
        *("FRAMING", "MALFORMED_JSON", "MALFORMED_AVRO", "LIMIT_EXCEEDED", "UNKNOWN_TYPE", "UNKNOWN_OPERATION"),
        *("MISSING_FIELD", "INVALID_FIELD", "TABLE_UNKNOWN", "ROW_NOT_SENT", "SCHEMA_MISSING", "AMBIGUOUS_VARIANT"),
        *("UNSUPPORTED_SHAPE", "KEY_MISSING", "KEY_CHANGE_INCOMPLETE", "HELD", "TOO_LARGE", "INTERNAL"),
        *("CONTRADICTION", "TOPIC_REFUSED", "DIALECT_FAILED"),
    } == {code.value for code in ErrorCode}


GLOSSARY = page("glossary.md")


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
        """The glossary explains the terms that the code and the other pages use."""
        assert f"**{term}**" in GLOSSARY
