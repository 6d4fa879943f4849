"""Create a golden case from a record on the real broker with one command."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.servers.broker import Broker
from tests.translator.commands._bench import Bench, row
from tests.translator.dialects.case import CASES, outcome_of
from tests.translator.dialects.write_case import main
from translator.errors import Unmaskable

METADATA = CASES / "qlik" / "refresh_with_metadata"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    for dialect in ("canal", "qlik"):
        (tmp_path / "cases" / dialect).mkdir(parents=True)
    return tmp_path / "cases"


@pytest.fixture
def qlik(broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    """A source that has learned the metadata of a case, and whose raw topic has its row."""
    bench = Bench(broker.bootstrap, tmp_path)
    name = {"name": "shop", "dialect": "qlik", "topics": [bench.raw]}
    bench.config.write_text(json.dumps({**bench.document, "sources": [name]}))
    bench.feed([path.read_bytes() for path in (*METADATA.glob("metadata*"), *METADATA.glob("message.*"))])
    ran = bench.run("learn")
    assert 0 == ran.returncode, ran.stderr
    yield bench
    bench.close()


def written(bench: Bench, cases: Path, offset: int) -> Path:
    return main(["-c", str(bench.config), bench.raw, "0", str(offset), "a_case", "Rows of a shop."], cases)


def test_a_case(shop: Bench, cases: Path) -> None:
    """The case reproduces the result and contains none of the values."""
    shop.feed([row(471199)], key=b'{"id":"471199"}')
    folder = written(shop, cases, 0)
    assert folder == cases / "canal" / "a_case"
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert {"message.json", "key.txt", "options.json", "about.md", "expected.json"} == texts.keys()
    assert {"profile": "oss"} == json.loads(texts["options.json"])
    assert "Rows of a shop.\n" == texts["about.md"]
    assert "471199" not in "".join(texts.values())
    assert json.loads(texts["expected.json"]) == outcome_of(folder)
    assert ["c", "c"] == [change["op"] for change in outcome_of(folder)]


def test_a_case_with_its_metadata(qlik: Bench, cases: Path) -> None:
    """The case contains the document with which the record was read."""
    folder = written(qlik, cases, 1)
    (change,) = outcome_of(folder)
    (original,) = outcome_of(METADATA)
    assert original["schema"]["columns"] == change["schema"]["columns"]
    assert original["after"].keys() == change["after"].keys()
    assert original["after"] != change["after"]


def test_what_has_no_copy(shop: Bench, cases: Path) -> None:
    """Without a masked copy, nothing is written."""
    shop.feed([b'{"data": [{"name": "Jane"'])
    with pytest.raises(Unmaskable, match="it is not JSON: the text ends inside a value"):
        written(shop, cases, 0)
    assert [] == list(cases.glob("*/*"))
