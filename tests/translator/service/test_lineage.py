"""The lineage of a service: the tables of each raw topic with their columns and masks."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from pydantic import SecretStr

from cdc_core.envelope import Column, TableSchema
from cdc_core.kafka_settings import Kafka
from cdc_core.lineage import Dataset, JobDatasets, Lineage, LineageReports
from translator.config.masks import MaskSettings, MasksSettings
from translator.config.projections import Projection
from translator.config.settings import Settings, Source
from translator.errors import ConfigError
from translator.message import Counted
from translator.service import lineage as lineage_module
from translator.service.lineage import ServiceLineage
from translator.service.metrics import BatchAccount

NAMESPACE = "kafka://b:9092"
OPTIONS = {"profile": "oss"}


class Kept(LineageReports):
    """Keeps what is reported."""

    def __init__(self, settings: Settings) -> None:
        assert settings.lineage is not None
        super().__init__(settings.lineage, settings.kafka, "program", lambda *_, **__: None, lambda: None)
        self.reported: list[str] = []
        self.described: dict[str, Callable[[], JobDatasets]] = {}

    def report(self, name: str, describe: Callable[[], JobDatasets | None], parent: str | None = None) -> None:
        self.reported.append(name)
        self.described[name] = describe


def _settings(**given: object) -> Settings:
    sources = [
        Source(name="s", dialect="canal", topics=("a", "b"), options=OPTIONS),
        Source(name="other", dialect="canal", topics=("c",), options=OPTIONS),
    ]
    base = {
        "group": "g",
        "kafka": Kafka(bootstrap_servers="b:9092,c:9092"),
        "sources": sources,
        "lineage": Lineage(to="file:///nowhere"),
    }
    return Settings.model_validate({**base, **given})


def _schema(table: str, *columns: Column, source: str = "s") -> bytes:
    return msgspec.json.encode(TableSchema.of(source, "shop", None, table, columns, "primary"))


def _batch(topic: str, *tables: str) -> BatchAccount:
    batch = BatchAccount("s", topic, 0)
    batch.changes.update(Counted("shop", None, table, "u") for table in tables)
    batch.changes[Counted(None, None, None, "tx")] += 1
    return batch


ID, NAME = Column("id", "int64", key=1, native="bigint"), Column("name", "string", native="varchar(9)")


@pytest.fixture
def kept() -> Kept:
    return Kept(_settings())


def test_one_job_per_raw_topic(kept: Kept) -> None:
    """A job has the tables that its topic contained, with the columns of the newest schema. It is reported once per
    change.
    """
    settings = _settings(projections=(Projection(topic="cdc.json", codec="json"),))
    lineage = ServiceLineage(settings, kept)
    lineage.announced(_schema("t", ID))
    for topic, source in (("a", "s"), ("b", "s"), ("c", "other")):
        lineage.topic_added(topic, source)
    assert ["g.a", "g.b", "g.c"] == kept.reported
    outputs = tuple(Dataset(NAMESPACE, topic) for topic in ("cdc.canonical", "cdc.json"))
    assert JobDatasets((Dataset(NAMESPACE, "a"),), outputs) == kept.described["g.a"]()
    lineage.acknowledged(_batch("a", "t", "u"))
    lineage.acknowledged(_batch("a", "u", "t"))
    lineage.acknowledged(_batch("unknown", "t"))
    lineage.announced(_schema("u", ID, NAME))
    lineage.announced(_schema("u", ID, source="other"))
    lineage.announced(b"not a schema")
    assert ["g.a", "g.a"] == kept.reported[3:]
    canonical, json = kept.described["g.a"]().outputs
    assert {"shop.t": ["id"], "shop.u": ["id", "name"]} == {
        table.name: [column.name for column in table.fields] for table in canonical.fields
    }
    assert ("int64", "string") == tuple(column.type for column in canonical.fields[1].fields)
    assert {"shop.t.id", "shop.u.id", "shop.u.name"} == canonical.sources.keys()
    (source,) = canonical.sources["shop.u.name"]
    assert (NAMESPACE, "a", "shop.u.name", None) == (source.namespace, source.dataset, source.field, source.mask)
    assert canonical.fields == json.fields
    assert () == kept.described["g.b"]().outputs[0].fields


def test_an_output_with_some_tables(kept: Kept) -> None:
    """A table that an output excludes is not reported as written there."""
    excluding = {"exclude": [{"table": "shop.secret"}]}
    projection = Projection.model_validate({"topic": "cdc.json", "codec": "json", **excluding})
    output = {"include": [{"source": "s", "table": "shop.s*"}]}
    lineage = ServiceLineage(_settings(projections=(projection,), output=output), kept)
    lineage.topic_added("a", "s")
    lineage.acknowledged(_batch("a", "t", "s", "secret"))
    for table in ("t", "s", "secret"):
        lineage.announced(_schema(table, ID))
    found = {
        written.name: ([table.name for table in written.fields], [*written.sources])
        for written in kept.described["g.a"]().outputs
    }
    assert found == {
        "cdc.canonical": (["shop.s", "shop.secret"], ["shop.s.id", "shop.secret.id"]),
        "cdc.json": (["shop.s", "shop.t"], ["shop.s.id", "shop.t.id"]),
    }


def test_masks(kept: Kept) -> None:
    """A masked column names its mask. The schemas topic has no dropped column, and the types after masking."""
    rules = (
        MaskSettings(mask="hash", column="name"),
        MaskSettings(mask="set_null", column="birth"),
        MaskSettings(mask="hash", type="decimal(*"),
    )
    masks = MasksSettings(key=SecretStr("k" * 32), rules=rules)
    lineage = ServiceLineage(_settings(masks=masks), kept)
    lineage.topic_added("a", "s")
    lineage.acknowledged(_batch("a", "t"))
    columns = (
        *(ID, Column("name", "string"), Column("birth", "date", nullable=True)),
        *(Column("price", "string"), Column("count", "int32"), Column("text", "string", native="text")),
    )
    lineage.announced(_schema("t", *columns))
    (canonical,) = kept.described["g.a"]().outputs
    found = {name.rpartition(".")[2]: source.mask for name, (source,) in canonical.sources.items()}
    assert {"name": "hash", "birth": "set_null", "price": "hash"} == {n: mask for n, mask in found.items() if mask}
    assert {"id", "count", "text"} == {name for name, mask in found.items() if mask is None}


def test_many_tables(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names come from messages, so their number is limited."""
    monkeypatch.setattr(lineage_module, "_TABLES", 2)
    lineage = ServiceLineage(_settings(), kept)
    lineage.topic_added("a", "s")
    for number in range(5):
        lineage.acknowledged(_batch("a", f"t{number}"))
    assert ["shop.t0", "shop.t1"] == [one.name for one in kept.described["g.a"]().outputs[0].fields]
    assert ["g.a"] * 3 == kept.reported


def test_many_columns(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that has enough columns lists only the names of its other tables."""
    monkeypatch.setattr(lineage_module, "_COLUMNS", 3)
    lineage = ServiceLineage(_settings(), kept)
    lineage.topic_added("a", "s")
    lineage.acknowledged(_batch("a", "t", "u", "v"))
    for table in ("t", "u", "v"):
        lineage.announced(_schema(table, ID, NAME))
    (canonical,) = kept.described["g.a"]().outputs
    assert [("shop.t", 2), ("shop.u", 0), ("shop.v", 0)] == [(one.name, len(one.fields)) for one in canonical.fields]
    assert ["shop.t.id", "shop.t.name"] == [*canonical.sources]


@pytest.mark.parametrize("topic", ["a", "cdc.canonical", "cdc.canonical.dlq"])
def test_a_topic_that_is_used(topic: str) -> None:
    with pytest.raises((ConfigError, ValueError), match="already an input or output"):
        _settings(lineage=Lineage(to=f"kafka:{topic}"))
