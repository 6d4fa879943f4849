"""The plug-in in docs/dialects/your-own.md works exactly as printed."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.repository.pages import blocks, page
from tests.translator.plugins.installed import install
from translator.message import Message
from translator.operations.file_translator import of_dialect

PAGE = page("dialects/your-own.md")


def test_the_plugin_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks(PAGE, "python")
    project = tomllib.loads(blocks(PAGE, "toml")[0])["project"]
    assert {"cdc_translator.dialects": {"pairs": "cdc_pairs:PLUGIN"}} == project["entry-points"]
    install(tmp_path, monkeypatch, distribution=project["name"], code=code)
    translator = of_dialect("pairs", {}, "s", [], lambda text: None)
    value = b'{"table": "orders", "row": {"id": 7}}'
    (record,) = translator.translate(Message("raw", 0, 0, 0, None, value)).canonical
    event = json.loads(record.value or b"")
    assert ("c", "orders", {"id": 7}) == (event["op"], event["table"], event["key"])
