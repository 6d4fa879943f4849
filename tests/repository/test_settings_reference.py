"""The pages and schemas in docs/settings/ match the types, and the schemas accept and reject real files correctly."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from dev.pages.settings_reference import FOLDER, PROGRAMS, pages, schema
from tests.repository.pages import ROOT

SINK = ROOT / "docs" / "sink.yaml"
TRANSLATOR: dict[str, Any] = {
    "kafka": {"bootstrap_servers": "broker:9092", "sasl_password": "${PASSWORD}"},
    "sources": [{"name": "erp", "dialect": "canal", "topics": ["erp.canal"], "options": {"profile": "oss"}}],
    "start": "2026-11-01T00:00:00Z",
    "on_error": {"INVALID_FIELD": "stop"},
}


def test_the_files_are_what_the_types_say() -> None:
    """The committed files are those that `python -m dev.pages.settings_reference` writes."""
    assert pages() == {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir())}


@pytest.mark.parametrize("program", PROGRAMS)
def test_schema_is_valid(program: str) -> None:
    """Each file is valid JSON Schema of the draft that it declares."""
    Draft202012Validator.check_schema(schema(program))


def test_schema_takes_good_files() -> None:
    """The schemas accept the sink's sample file and a translator's file."""
    Draft202012Validator(schema("spark-sink")).validate(yaml.safe_load(SINK.read_text(encoding="utf-8")))
    Draft202012Validator(schema("translator")).validate(TRANSLATOR)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"gruop": "g"}, []),
        ({"sources": []}, ["sources"]),
        ({"timing": {"session": 0}}, ["timing", "session"]),
        ({"on_error": {"INVALID_FIELD": "ignore"}}, ["on_error", "INVALID_FIELD"]),
    ],
    ids=["unknown name", "empty list", "out of range", "unknown word"],
)
def test_schema_refuses_mistakes(change: dict[str, Any], place: list[str]) -> None:
    """The schemas reject the mistakes that the program rejects, and point at the same place."""
    (error, *_) = Draft202012Validator(schema("translator")).iter_errors({**TRANSLATOR, **change})
    assert place == list(error.absolute_path)
