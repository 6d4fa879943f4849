"""The native path in the pipeline: a batch has the same result with and without it."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bench.steps.shop_updates import feed
from dev.demo.writers.canal import DTS_FULL, DTS_LEGACY
from tests.translator.dialects.canal.history import History, messages, sent
from tests.translator.native import needs_extension, qlik_mutants
from tests.translator.native.canal_mutants import mutants
from tests.translator.native.test_equality import ROOMY, opened_path
from tests.translator.service._pipeline import Record
from translator._native.layout import NativeReader, TakenMessage
from translator.codecs import Codec
from translator.codecs.avro import AvroCodec
from translator.codecs.debezium import DebeziumCodec, Options
from translator.codecs.json import JsonCodec
from translator.codecs.upsert import UpsertCodec
from translator.config.settings import Kafka, Output, Settings, Source
from translator.dialects import build
from translator.dialects.canal.native_rows import CanalNativeRows
from translator.errors import ErrorCode
from translator.kafka.partitioner import output_partition
from translator.message import Limits, Message, Setup
from translator.resolution.resolve import NATIVE_RUN_BYTES, EventOutput, Outputs, OutputTopic
from translator.service import assembly
from translator.service.assembly import build_native_paths
from translator.service.delivery.memory import InMemoryDelivery
from translator.service.metadata_wait import MetadataWaiter
from translator.service.metrics import BatchAccount, Metrics
from translator.service.pipeline import Pipeline, Route, Target
from translator.state.contradiction_marks import Contradictions
from translator.translation import native_path as module
from translator.translation.metadata_catalog import MetadataCatalog
from translator.translation.native_path import NativePath, PathDifference, PathOutput, native_path
from translator.translation.translate import Translator

pytestmark = needs_extension

CANONICAL = EventOutput(AvroCodec(), OutputTopic("out", 4, ROOMY))
PLACE = output_partition("raw", 0, 4)
"""The partition of the canonical topic."""
DROPPING = DebeziumCodec(Options(missing_before=("drop_event",), tombstones=True))
PROJECTIONS = (
    EventOutput(DebeziumCodec(), OutputTopic("debezium", 3, ROOMY)),
    EventOutput(DROPPING, OutputTopic("small", 5, 1_500)),
)
"""The second topic has no room for half of the records."""
MORE = (
    EventOutput(JsonCodec(), OutputTopic("json", 3, ROOMY)),
    PROJECTIONS[0],
    EventOutput(UpsertCodec(), OutputTopic("rows", 5, 900)),
)
"""The last topic has no room for some of the records."""
SCHEMAS, METADATA, LETTERS = (OutputTopic(name, 1, ROOMY) for name in ("schemas", "metadata", "letters"))


class Run:
    """A pipeline with a delivery in memory, and all of its output."""

    def __init__(
        self,
        *,
        native: bool,
        dialect: str = "canal",
        holds: Iterable[ErrorCode] = (),
        holds_contradictions: bool = False,
        projections: tuple[EventOutput, ...] = (),
        **options: Any,
    ) -> None:
        catalog = MetadataCatalog()
        setup = Setup("src", lookup=catalog.lookup("src"))
        self.translator = Translator("src", build(dialect, setup, options), Limits())
        self.outputs = Outputs((CANONICAL, *projections), SCHEMAS, METADATA)
        path = native_path(self.translator, [(output.codec, output.to.max_bytes) for output in self.outputs.events])
        assert isinstance(path, NativePath)
        self.path = path
        self.accounts: list[BatchAccount] = []
        self.topics = (*(output.to for output in self.outputs.events), SCHEMAS, METADATA, LETTERS)
        self.delivery = InMemoryDelivery(self.accounts.append, {to.topic: to.partitions for to in self.topics})
        self.pipeline = Pipeline(
            {"raw": Route(self.translator, "topic-id")},
            Target(self.outputs, LETTERS, "0", holds=frozenset(holds), holds_contradictions=holds_contradictions),
            catalog,
            self.delivery,
            Contradictions([Source(name="src", dialect=dialect, topics=("raw",), options=options)]),
            MetadataWaiter(catalog, 1.0, None, print),
            native={"src": path} if native else None,
        )

    def of(self, values: Sequence[bytes | None], first: int = 0) -> None:
        """Process a batch of these values."""
        records = [Record(first + n, value) for n, value in enumerate(values)]

        async def through() -> None:
            assert await self.pipeline.process("raw", 0, records, lambda: None)
            self.delivery.reap()

        asyncio.run(through())

    @property
    def left(self) -> object:
        """Return what was written, and the accounts without the native path's share and the times."""
        written = {to: [self.delivery.written(to.topic, n) for n in range(to.partitions)] for to in self.topics}
        return written, [
            replace(account, native=type(account.native)(), begun=0.0, sent=0.0) for account in self.accounts
        ]

    @property
    def taken(self) -> int:
        return sum(account.native["taken"] for account in self.accounts)


def values(count: int) -> list[bytes]:
    return [message.value or b"" for message in feed("canal", 8, count).messages]


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("projections", [(), PROJECTIONS, MORE], ids=["canonical", "debezium", "json and upsert"])
@pytest.mark.parametrize("holds", [(), tuple(ErrorCode)], ids=["dead letters", "holds"])
@pytest.mark.parametrize("seed", range(6))
def test_batches_leave_the_same_behind(
    seed: int, holds: tuple[ErrorCode, ...], projections: tuple[EventOutput, ...]
) -> None:
    """Common and damaged messages, tombstones and statements give the same result over several batches."""
    chance = Random(seed)
    common = values(40)
    ddl = json.dumps({"type": "ALTER", "isDdl": True, "database": "shop", "table": "orders", "sql": "alter table x"})
    damaged = [*islice(mutants(chance, common), 40)]
    batches = [
        [chance.choice((*common, *common, chance.choice(damaged), None, ddl.encode())) for _ in range(70)]
        for _ in range(3)
    ]
    runs = [Run(native=native, holds=holds, projections=projections) for native in (True, False)]
    for number, batch in enumerate(batches):
        for run in runs:
            run.of(batch, first=number * 100)
    native, plain = runs
    assert native.left == plain.left
    assert native.taken > 0 or holds  # which can hold the table from the first message on
    assert plain.taken == 0


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("seed", range(6))
def test_metadata_come_and_change_between_the_rows(seed: int) -> None:
    """A row is read with the metadata learned before it, anywhere in a run."""
    chance = Random(seed)
    learned = [*qlik_mutants.metadata()]

    def next_value() -> bytes:
        if chance.random() < 0.9:
            value = qlik_mutants.spelled(chance, qlik_mutants.common(chance))
            return value.replace(qlik_mutants.UNKNOWN_ID.encode(), qlik_mutants.IDS[0].encode())
        body = chance.choice(learned)
        column = chance.choice(["name", "price", "raw", "any"])
        body["message"]["tableStructure"]["tableColumns"][column]["type"] = chance.choice(["STRING", "BYTES", "CLOB"])
        body["message"]["lineage"]["tableVersion"] += chance.choice((-1, 1, 1))
        return json.dumps(body).encode()

    batches = [[json.dumps(body).encode() for body in learned], *([next_value() for _ in range(70)] for _ in range(3))]
    runs = [Run(native=native, dialect="qlik", topics="SHOP.ORDERS") for native in (True, False)]
    for number, batch in enumerate(batches):
        for run in runs:
            run.of(batch, first=number * 100)
    native, plain = runs
    assert native.left == plain.left
    assert native.taken > 0
    assert plain.taken == 0


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("wrong_at", [0, 1, 40, 70])
def test_what_stands_before_a_contradiction_is_written(wrong_at: int) -> None:
    """This holds anywhere in a run, and both paths leave the mark for other processes."""
    history = History()
    history.new(1, 0)
    for value in range(1, 80):
        history.update(1, a=value)
    forms = [DTS_LEGACY if n > wrong_at else DTS_FULL for n in range(len(history.changes))]
    topic = messages(sent(zip(history.changes, forms, [None] * len(forms), strict=True)))
    left = []
    for native in (True, False):
        run = Run(native=native, profile="dts")
        run.of([message.value for message in topic])
        left.append((run.left, run.pipeline.stopped))
    assert left[0] == left[1]
    assert len(run.delivery.written("out", PLACE)) > wrong_at
    assert len(run.delivery.written("metadata", 0)) == 2


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("wrong_at", [0, 1, 40, 70])
def test_a_contradiction_holds_its_partition_where_the_operator_wants_it(wrong_at: int) -> None:
    """Anywhere in a run, earlier messages are written, and it and later ones become dead letters."""
    history = History()
    history.new(1, 0)
    for value in range(1, 80):
        history.update(1, a=value)
    forms = [DTS_LEGACY if n > wrong_at else DTS_FULL for n in range(len(history.changes))]
    topic = messages(sent(zip(history.changes, forms, [None] * len(forms), strict=True)))
    left = []
    for native in (True, False):
        run = Run(native=native, profile="dts", holds_contradictions=True)
        run.of([message.value for message in topic])
        run.of(values(3), first=len(topic))
        left.append(run.left)
        codes = [dict(letter.headers)["cdc-error-code"] for letter in run.delivery.written("letters", 0)]
        written = len(run.delivery.written("out", PLACE))
        assert wrong_at < written < len(topic)
        assert [b"CONTRADICTION", *[b"HELD"] * (len(codes) - 1)] == codes
        assert written + len(codes) == len(topic) + 3
        assert [] == run.delivery.written("metadata", 0)  # no mark that would stop the next start
    assert left[0] == left[1]


@pytest.mark.usefixtures("short_runs")
def test_the_first_messages_of_a_schema_go_the_plain_way_which_announces_it() -> None:
    run = Run(native=True)
    run.of(values(40))
    (account,) = run.accounts
    assert {"new schema": 32, "taken": 8} == dict(account.native)
    assert len(run.delivery.written("schemas", 0)) == 1


def test_a_run_of_large_messages_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The translated records of a run are in memory while the producer's queue is full."""
    body = json.loads(values(1)[0])
    large = [
        msgspec.json.encode(body | {"data": body["data"] * rows}) for rows in (1, 10, 40, 400, 1) for _ in range(70)
    ]
    native, plain = Run(native=True), Run(native=False)
    take, sizes = native.path.take, []

    def measured(messages: Sequence[Message]) -> Any:
        sizes.append([len(message.value or b"") for message in messages])
        return take(messages)

    monkeypatch.setattr(native.path, "take", measured)
    for run in (native, plain):
        run.of(large)
    assert native.left == plain.left
    assert max(sum(run[:-1]) for run in sizes) <= NATIVE_RUN_BYTES
    assert len(large) == sum(map(len, sizes))


def test_commit_times_need_not_rise() -> None:
    """The account has the commit time of each table's last message, and of the last message of all."""
    sent = [
        msgspec.json.encode(body | {"es": body["es"] + second * 1000, "table": f"orders_{number % 3}"})
        for number, second in enumerate(Random(3).sample(range(100), 40))
        for body in [json.loads(values(1)[0])]
    ]
    native, plain = Run(native=True), Run(native=False)
    for run in (native, plain):
        run.of(sent)  # announces the schemas
        run.of(sent, first=40)
    assert native.taken == len(sent)
    assert native.left == plain.left
    assert native.accounts[1].newest_us == json.loads(sent[-1])["es"] * 1000


def test_a_projection_gets_what_is_taken_in_its_own_partition() -> None:
    run = Run(native=True, projections=PROJECTIONS[:1])
    run.of(values(40))
    run.of(values(40), first=40)
    _, account = run.accounts
    assert (40, 40, 40) == (account.native["taken"], account.written["out"], account.written["debezium"])
    assert len(run.delivery.written("debezium", output_partition("raw", 0, 3))) == 80


@pytest.mark.parametrize("codec", [DebeziumCodec(), JsonCodec()], ids=["debezium", "json"])
def test_a_source_may_have_any_projection(codec: Codec) -> None:
    source = Source(name="src", dialect="canal", topics=("raw",))
    settings = Settings(kafka=Kafka(bootstrap_servers="none:1"), output=Output(topic="out"), sources=(source,))
    translators = {"src": Translator("src", build("canal", Setup("src"), {"profile": "oss"}), Limits())}
    beside = EventOutput(codec, PROJECTIONS[0].to)
    paths = build_native_paths(settings, translators, Outputs((CANONICAL, beside), SCHEMAS, METADATA), Metrics("0"))
    assert paths.keys() == {"src"}


def test_a_record_too_large_for_one_projection_is_left_to_the_plain_way() -> None:
    """As usual, it is a dead letter of that output only."""
    small = replace(PROJECTIONS[0].to, max_bytes=1_000)
    run = Run(native=True, projections=(EventOutput(DebeziumCodec(), small),))
    run.of(values(40))
    (account,) = run.accounts
    assert {"size": 40} == dict(account.native)
    assert (40, 0) == (account.written["out"], account.written["debezium"])
    assert account.refused == {("debezium", ErrorCode.TOO_LARGE): 40}


@pytest.mark.usefixtures("short_runs")
def test_what_is_taken_and_why_not_is_a_metric() -> None:
    run = Run(native=True)
    run.of([*values(40), None, b"{}"])
    metrics = Metrics("0")
    for account in run.accounts:
        metrics.account(account)
    text = metrics.exposition().decode()
    assert 'cdc_native_messages_total{outcome="taken",partition="0",source="src",topic="raw"} 8.0' in text
    assert 'outcome="spelling",partition="0",source="src",topic="raw"} 2.0' in text


def _natively(*codecs: Codec) -> list[PathOutput]:
    """Return outputs that the extension writes."""
    return [PathOutput(codec, ROOMY, is_native=True) for codec in codecs]


def test_a_difference_turns_the_native_path_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every n-th message takes both paths. Here the plain path differs, because its source has another name."""
    monkeypatch.setattr(module, "SELF_CHECK_EVERY", 4)
    given = feed("canal", 8, 6)
    _, path = opened_path(given.dialect)
    found: list[PathDifference] = []
    other = NativePath(Translator("other", given.dialect, Limits()), _natively(AvroCodec()), path._reader, found.append)
    assert not any(isinstance(taken, str) for taken in other.take(given.messages[:3]))
    assert ["difference", "difference"] == other.take(given.messages[3:5])
    assert ["difference"] == other.take(given.messages[5:])
    (difference,) = found
    at = given.messages[3]
    assert (at.topic, at.partition, at.offset) == (difference.topic, difference.partition, difference.offset)
    assert difference.native != difference.plain
    assert {64} == {len(difference.native), len(difference.plain)}


def test_a_difference_in_a_projection_alone_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SELF_CHECK_EVERY", 1)
    given = feed("canal", 8, 1)
    translator, path = opened_path(given.dialect, codecs=(AvroCodec(), DebeziumCodec()))
    other = NativePath(translator, _natively(AvroCodec(), DebeziumCodec(Options(schema_block=True))), path._reader)
    assert len(path.take(given.messages)) == 1
    assert ["difference"] == other.take(given.messages)


class _Wrong:
    """A reader with a bug: it takes the messages of another source."""

    def __init__(self, reader: NativeReader) -> None:
        self._reader = reader

    def take(self, topic: str, partition: int, topic_id: str, messages: Sequence[Message]) -> list[TakenMessage | str]:
        wrong = [replace(message, timestamp_ms=1) for message in messages]
        return self._reader.take(topic, partition, topic_id, wrong)


def test_after_a_difference_the_plain_result_is_written_and_the_service_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SELF_CHECK_EVERY", 1)
    metrics, logged = Metrics("0"), []
    monkeypatch.setattr(assembly.log, "error", lambda event, **fields: logged.append((event, fields)))
    runs = [Run(native=native) for native in (True, False)]
    given = values(80)
    path = runs[0].path
    path._reader = _Wrong(path._reader)
    path._report = partial(assembly._report_difference, metrics, "src")
    for run in runs:
        run.of(given[:40])
        run.of(given[40:], first=40)
    native, plain = runs
    assert native.left == plain.left
    assert native.taken == 0
    # The first messages of a schema take the plain path anyway. The first native one shows the difference.
    assert sum(account.native["difference"] for account in native.accounts) == 80
    ((event, fields),) = logged
    assert ("native path disabled", "src", "raw", 0) == (
        event,
        *(fields[name] for name in ("source", "topic", "offset")),
    )
    assert 'cdc_native_path_disabled{source="src"} 1.0' in metrics.exposition().decode()


def test_a_panic_goes_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout without operations, which no dialect produces, causes the panic."""
    whole = CanalNativeRows.layout
    monkeypatch.setattr(
        CanalNativeRows, "layout", lambda self, *spelling: replace(whole(self, *spelling), operations=())
    )
    given = feed("canal", 8, 2)
    _, path = opened_path(given.dialect)
    assert ["panic", "panic"] == path.take(given.messages)
