"""Each projection gets its selected tables and the canonical topic gets all, on both paths."""

import asyncio
import json
from typing import Any

import pytest

from bench.steps.shop_updates import feed
from tests.translator.native import needs_extension
from tests.translator.native.test_pipeline import Run, values
from tests.translator.service._pipeline import CANAL_ROW, PARTITION, PROJECTED, Bench, record
from translator.codecs import Codec
from translator.codecs.avro import AvroCodec
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.filtered import FilteredCodec
from translator.codecs.json import JsonCodec
from translator.codecs.upsert import UpsertCodec
from translator.config.settings import Settings
from translator.config.table_filter import TableChoice, TableFilter
from translator.dialects import build
from translator.message import Limits, Message, Setup
from translator.resolution.builders import build_codecs
from translator.resolution.resolve import EventOutput, OutputTopic
from translator.translation.native_path import NativePath, native_path
from translator.translation.translate import Encoder, Events, Translator

ORDERS = TableFilter([TableChoice(table="shop.orders")])
OTHERS = TableFilter(exclude=[TableChoice("src", "shop.orders")])


def of(table: str, **changed: Any) -> dict[str, Any]:
    return {**CANAL_ROW, "table": table, **changed}


def test_each_gets_its_tables() -> None:
    """Rows are in order, and a message of several tables is split by table. The canonical topic is complete."""
    bench = Bench(
        "canal",
        {"orders": FilteredCodec(JsonCodec(), ORDERS), "others": FilteredCodec(DebeziumCodec(), OTHERS)},
        options={"profile": "oss", "newline_batches": True},
    )
    both = b"\n".join(json.dumps(of(table)).encode() for table in ("items", "orders"))
    batch = [record(0, of("orders")), record(1, of("items")), record(2, of("orders"))]
    batch.append(type(batch[0])(3, both))
    asyncio.run(bench.run(batch))
    canonical = [json.loads(stored.value())["id"] for stored in bench.read("out", PARTITION)]
    orders = [json.loads(stored.value())["id"] for stored in bench.projected("orders", PROJECTED)]
    others = [dict(stored.headers())["cdc-id"].decode() for stored in bench.projected("others", PROJECTED)]
    assert [f"src/raw/3/{n}" for n in ("0/0", "1/0", "2/0", "3/0", "3/1")] == canonical
    assert [f"src/raw/3/{n}" for n in ("0/0", "2/0", "3/1")] == orders
    assert [f"src/raw/3/{n}" for n in ("1/0", "3/0")] == others
    assert [] == bench.read("out.dlq", PARTITION)


def test_what_a_projection_does_not_get_it_cannot_refuse() -> None:
    """A projection causes no dead letters for tables that it does not get."""
    refusing = DebeziumCodec(Options(missing_before=("fail",)))
    bench = Bench("canal", {"p": FilteredCodec(refusing, OTHERS)}, options={"profile": "oss"})
    update = of("orders", type="UPDATE", old=[{"name": "b"}], pkNames=None)
    asyncio.run(bench.run([record(0, of("orders", type="DELETE", pkNames=None)), record(1, update)]))
    assert [] == bench.read("out.dlq", PARTITION)
    assert 2 == len(bench.read("out", PARTITION))


@needs_extension
@pytest.mark.parametrize(
    "codec",
    [
        DebeziumCodec(Options(tombstones=True)),
        DebeziumCodec(Options(schema_block=True)),
        JsonCodec(),
        AvroCodec(),
        UpsertCodec(),
    ],
    ids=["debezium", "debezium with schema", "json", "avro", "upsert"],
)
@pytest.mark.usefixtures("short_runs")
def test_both_ways_leave_the_same_behind(codec: Codec) -> None:
    """A projection with or without the table does not keep the native path from handling its messages."""
    projections = tuple(
        EventOutput(FilteredCodec(codec, TableFilter(*choice)), OutputTopic(name, 3, 1_000_000))
        for name, choice in {
            "with": ([TableChoice(table="*")], []),
            "without": ([], [TableChoice(table="*")]),
            "elsewhere": ([TableChoice("another", "*")], []),
        }.items()
    )
    runs = [Run(native=native, projections=projections) for native in (True, False)]
    for run in runs:
        run.of(values(60))
    native, plain = runs
    assert native.left == plain.left
    assert native.taken > 20  # the first run announces the schema
    written = {name: sum(len(native.delivery.written(name, n)) for n in range(3)) for name in ("with", "without")}
    assert written["with"] >= 60
    assert 0 == written["without"]


@needs_extension
def test_a_table_that_the_canonical_topic_does_not_get_goes_the_plain_way() -> None:
    """All others take the native path, with the same bytes."""
    dialect, messages = feed("canal", 8, 40)
    translator = Translator("src", dialect, Limits())

    def taken(codec: Encoder) -> list[Any]:
        path = native_path(translator, [(codec, 1_000_000)])
        assert isinstance(path, NativePath)
        return [one if isinstance(one, str) else one.outputs for one in path.take(messages)]

    elsewhere = TableFilter(exclude=[TableChoice(table="another.*")])
    assert taken(AvroCodec()) == taken(FilteredCodec(AvroCodec(), elsewhere))
    nothing = TableFilter(exclude=[TableChoice(table="*")])
    assert {"layout"} == set(taken(FilteredCodec(AvroCodec(), nothing)))


def test_the_settings_choose() -> None:
    """A projection without a selection gets everything."""
    kafka = {"bootstrap_servers": "none:1"}
    sources = [{"name": "src", "dialect": "canal", "topics": ["raw"]}]
    projections = [
        {"topic": "p1", "codec": "json", "include": [{"table": "shop.o*"}], "exclude": [{"table": "*_old"}]},
        {"topic": "p2", "codec": "json"},
    ]
    document = {"kafka": kafka, "sources": sources, "projections": projections}
    settings = Settings.model_validate(document)
    narrow = Settings.model_validate({**document, "output": {"exclude": [{"table": "shop.orders"}]}})
    codecs = {**build_codecs(settings), "narrow": build_codecs(narrow)["cdc.canonical"]}
    translator = Translator("src", build("canal", Setup("src"), {"profile": "oss"}), Limits())
    for table, expected in (("orders", 1), ("items", 0), ("orders_old", 0)):
        message = Message("raw", 0, 0, 0, None, json.dumps(of(table)).encode())
        events = translator.translate(message)
        assert isinstance(events, Events)
        found = {topic: translator.encode(codec, message, events) for topic, codec in codecs.items()}
        counts = {topic: len(records) for topic, records in found.items() if isinstance(records, list)}
        assert {"cdc.canonical": 1, "p1": expected, "p2": 1, "narrow": int(table != "orders")} == counts
