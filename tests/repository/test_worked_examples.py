"""The worked examples match the product's output for their messages, byte for byte."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from tests.repository.pages import DOCS, page
from tests.repository.worked_examples import MARKED, VECTORS, VIEWS, cases_in, events_of, examples, rewritten, vectors
from translator.codecs.avro import AvroCodec
from translator.codecs.json import JsonCodec

PAGES = sorted(path.name for path in DOCS.glob("*.md") if "<!--" in path.read_text(encoding="utf-8"))
EXAMPLES = examples()
WRITE = "python -m tests.repository.worked_examples"


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str) -> None:
    """Every marked place shows the current output."""
    assert page(name) == rewritten(page(name)), f"write it anew: {WRITE}"


@pytest.mark.parametrize("name", PAGES)
def test_marks(name: str) -> None:
    """Every comment on the pages begins or ends a marked place. A misspelled mark would otherwise go unnoticed."""
    assert 2 * len(MARKED.findall(page(name))) == page(name).count("<!--")


def test_vectors() -> None:
    """The machine-readable file contains the same events."""
    assert vectors(cases_in(EXAMPLES)) == VECTORS.read_bytes(), f"write it anew: {WRITE}"


def test_vectors_are_readable() -> None:
    """The Avro bytes and the JSON on each line represent one event."""
    for line in VECTORS.read_bytes().splitlines():
        vector = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        avro = bytes.fromhex(json.loads(bytes(vector["avro_hex"])))
        assert JsonCodec().decode(bytes(vector["json"])) == AvroCodec().decode(avro)


def test_every_operation() -> None:
    """The examples cover every operation and every case that is hard to read."""
    events = [event for case in cases_in(EXAMPLES) for event in events_of(case)]
    assert {"r", "c", "u", "d", "t", None} == {event.op for event in events}
    assert {"row", "schema"} == {event.kind for event in events}
    for hard in ("key_old", "unavailable", "issues", "schema_id"):
        assert any(getattr(event, hard) for event in events), hard
    assert {"qlik", "dts_avro", "shareplex", "canal"} == {event.dialect for event in events}


def test_annotated_bytes() -> None:
    """The hex of the annotated value equals the value."""
    (case,) = re.findall(r"<!-- avro: (\S+) -->", EXAMPLES)
    lines = VIEWS["avro"](case).splitlines()[1:-1]
    shown = bytes.fromhex("".join(line.split("|")[0] for line in lines))
    (event,) = events_of(case)
    (record,) = AvroCodec().encode(event)
    assert record.value == shown
