"""The plug-ins under examples/plugins, installed as others would install them, and the round trip through Debezium."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdc_core.reader import Change, ChangeReader, DictStore, KnownSchemas, apply
from dev.demo.sources import ShopSource, shop_sources
from tests.cdc_core.reader.sources import translated
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.json import JsonCodec
from translator.dialects import MaskedValues, build, masked_copy, with_recognizer
from translator.message import Limits, Message, Setup
from translator.operations.recognition import recognise
from translator.translation.translate import Events, Translator

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples" / "plugins").iterdir())
SOURCES = {source.name: n for n, source in enumerate(shop_sources(0)) if source.name != "shareplex"}
"""The shops whose changes fit into the projection. SharePlex sends only the changed columns of a row, and Debezium's
format cannot express a change of such a row's key.
"""


def install(example: Path, folder: Path) -> list[str]:
    """Write the metadata that pip would write, and return the paths to import from."""
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    text = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(text)
    ((name, value),) = project["entry-points"]["cdc_translator.dialects"].items()
    (info / "entry_points.txt").write_text(f"[cdc_translator.dialects]\n{name} = {value}\n")
    return [str(folder), str(example)]


@pytest.fixture
def debezium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in install(ROOT / "examples" / "plugins" / "debezium_json", tmp_path):
        monkeypatch.syspath_prepend(path)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_the_tests_of_an_example(example: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([*install(example, tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(example), str(example)]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_an_example_imports_only_the_interface(example: Path) -> None:
    """A plug-in needs no other module of the translator."""
    code = "".join(path.read_text() for path in example.glob("cdc_*/*.py"))
    imports = [line for line in code.splitlines() if line.startswith(("from translator", "import translator"))]
    assert {"from translator.dialect_api import ("} == set(imports)


def projected(source: ShopSource, options: Options) -> Iterator[Message]:
    """Return a shop's changes as messages of a Debezium projection."""
    codec, offset = DebeziumCodec(options), 0
    for event, schema in translated(source, source.messages(300, grow=True)):
        for record in codec.encode(event, schema):
            yield Message("cdc.debezium", 0, offset, 0, record.key, record.value)
            offset += 1


def read_back(messages: Iterator[Message]) -> Iterator[Change]:
    """Return the changes that the plug-in and the translator make of the projection, without its types."""
    translator = Translator("again", build("debezium_json", Setup("again"), {}), Limits())
    reader, codec = ChangeReader(KnownSchemas()), JsonCodec()
    for message in messages:
        result = translator.translate(message)
        assert isinstance(result, Events), result
        for event in result.events:
            (record,) = codec.encode(replace(event, schema_id=None))
            yield reader.read(record.value or b"")


def rows(changes: Iterator[Change]) -> dict[str, dict[str, dict[str, object]]]:
    """Return the rows of each table by key, with values as text or numbers of JSON."""
    store = DictStore()
    apply(changes, store)
    return {table.table: {str(key): dict(row) for key, row in store.rows(table).items()} for table in store.tables()}


def direct(source: ShopSource) -> Iterator[Change]:
    """Return a shop's changes as they are in the canonical topic, without the types that Debezium does not have."""
    reader, codec = ChangeReader(KnownSchemas()), JsonCodec()
    for event, _ in translated(source, source.messages(300, grow=True)):
        if event.kind == "row":
            (record,) = codec.encode(replace(event, schema_id=None))
            yield reader.read(record.value or b"")


@pytest.mark.usefixtures("debezium")
@pytest.mark.parametrize("schema_block", [False, True], ids=["bare", "with schemas"])
@pytest.mark.parametrize("number", SOURCES.values(), ids=SOURCES.keys())
def test_our_projection_read_back(number: int, schema_block: bool) -> None:
    """The rows after the round trip are those of the canonical topic."""
    options = Options(schema_block=schema_block)
    found = rows(read_back(projected(shop_sources(7)[number], options)))
    assert found == rows(direct(shop_sources(7)[number]))
    assert sum(map(len, found.values())) > 20


@pytest.mark.usefixtures("debezium")
def test_init_recognizes_the_projection() -> None:
    messages = list(projected(shop_sources(7)[0], Options()))[:50]
    warnings: list[str] = []
    (finding,) = recognise({"raw": messages}, with_recognizer(warnings.append))
    assert ("debezium_json", "certain", []) == (finding.dialect, finding.certainty, warnings)


@pytest.mark.usefixtures("debezium")
def test_masked_copies() -> None:
    dialect = build("debezium_json", Setup("s"), {})
    value = b'{"op": "c", "after": {"card": "4111-1111"}, "source": {"table": "t4111"}}'
    copy = masked_copy(dialect, Message("t", 0, 0, 0, b'{"card": "4111-1111"}', value), MaskedValues(b"k"))
    assert b"4111-1111" not in (copy.value or b"") + (copy.key or b"")
    assert b"t4111" in (copy.value or b"")


@pytest.mark.usefixtures("debezium")
@pytest.mark.parametrize("placeholder", ["__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="])
def test_a_placeholder_in_a_masked_copy(placeholder: str) -> None:
    """It is not a value, and without it the copy would be translated differently."""
    dialect = build("debezium_json", Setup("s"), {})
    value = b'{"after": {"card": "4111-1111", "photo": "%s"}}' % placeholder.encode()
    copy = masked_copy(dialect, Message("t", 0, 0, 0, None, value), MaskedValues(b"k"))
    assert (True, False) == (placeholder.encode() in (copy.value or b""), b"4111-1111" in (copy.value or b""))
