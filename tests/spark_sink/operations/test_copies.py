"""`spark-sink rebuild` with `--into`, `--as-of` and `--without`: earlier states, and states without some events."""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.compute as pc
import pytest
import yaml
from click.testing import CliRunner

from cdc_core.envelope import ChangeEvent
from spark_sink.commands import cli
from spark_sink.config.table_rules import TableRules
from spark_sink.control_tables.requests import Request, State
from spark_sink.errors import ConfigError, FatalError
from spark_sink.operations import rebuild as rebuild_module
from spark_sink.operations.rebuild import OffsetRange
from spark_sink.operations.rebuild_options import options_for_copy, options_for_table, parse_options
from spark_sink.schema.table_spec import Format, Mode
from tests.repository.pages import page
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake, MergingLake, SparkLake, Topic

ORDERS, ITEMS, COPY = "shop_sales.orders", "shop_sales.items", "restored.orders_monday"
FIRST = schema_of({"id": "int64", "name": "string"})
WIDER = schema_of({"id": "int64", "name": "string", "more": "int32"})
ITEM = schema_of({"id": "int64"}, table="items")


def _events(seed: int, count: int = 40) -> Sequence[ChangeEvent]:
    """Return events for two tables. The first one gets another column in mid-stream, and is truncated once."""
    chance = random.Random(seed)
    found: list[ChangeEvent] = []
    for pos in range(1, count + 1):
        schema, id = (FIRST if pos < count / 2 else WIDER), chance.randrange(6)
        after = {"name": f"name {pos}"} | ({"more": pos} if schema is WIDER else {})
        if pos == count * 3 // 4:
            found.append(change("t", None, pos=pos))
        elif chance.random() < 0.2:
            found.append(change("c", {"id": pos}, {}, pos=pos, schema=ITEM, table="items"))
        elif chance.random() < 0.25:
            found.append(change("d", {"id": id}, pos=pos, schema=schema))
        elif chance.random() < 0.15:
            moved = {"id": (id + 1) % 6}
            found.append(change("u", moved, after, pos=pos, schema=schema, key_old={"id": id}))
        else:
            op, full = chance.choice([("c", True), ("u", True), ("u", False)])
            found.append(change(op, {"id": id}, after, pos=pos, schema=schema, full=full))
    return found


def _lake(lake: Lake, mode: Mode = Mode.MIRROR, seed: int = 0) -> tuple[Topic, list[Sequence[ChangeEvent]]]:
    """Apply random events in batches of ten."""
    for schema in (FIRST, WIDER, ITEM):
        lake.announce(schema)
    lake.use(TableRules(modes={ORDERS: mode}))
    topic, events = Topic(lake), _events(seed)
    batches = [events[n : n + 10] for n in range(0, len(events), 10)]
    for number, batch in enumerate(batches):
        topic.apply(number, batch)
    return topic, batches


def _without(
    lake: Lake, folder: Path, mode: Mode, batches: Sequence[Sequence[ChangeEvent]], ranges: Sequence[tuple[int, int]]
) -> Lake:
    """Return another lake, whose batches lacked the records in these ranges of offsets."""
    other = lake.beside(folder)
    for schema in (FIRST, WIDER, ITEM):
        other.announce(schema)
    other.use(TableRules(modes={ORDERS: mode}))
    first = 0
    for number, batch in enumerate(batches):
        records = other.records(batch, first)
        for begin, last in ranges:
            offsets = records.column("offset")
            records = records.filter(pc.or_(pc.less(offsets, begin), pc.greater(offsets, last)))
        other.applier(records, number)
        first += len(batch)
    return other


def _values(lake: Lake, table: str = ORDERS, version: int | None = None) -> list[dict[str, Any]]:
    """Return all rows with their state, except the write time and NULLs."""
    rows = lake.stored(table, version).to_pylist()
    left_out = "_cdc_updated_at"
    plain = ({name: v for name, v in row.items() if v is not None and name != left_out} for row in rows)
    return sorted(plain, key=str)


def _copy(lake: Lake, as_of: str | None = None, *without: str, into: str = COPY) -> Request:
    """Execute the command, in as many rounds as it needs."""
    options = options_for_copy(lake.control.batches, lake.topic_name, ORDERS, as_of, without)
    return _run(lake, "rebuild-into", into, options.text())


def _in_place(lake: Lake, *without: str) -> Request:
    options = options_for_table(lake.control.batches, without)
    return _run(lake, "rebuild", ORDERS, None if options is None else options.text())


def _run(lake: Lake, command: str, target: str, argument: str | None) -> Request:
    id = lake.control.requests.ask(command, target, argument)
    requests = lake.requests()
    while requests.run():
        pass
    return next(request for request in lake.control.requests.requests() if request.id == id)


@pytest.mark.parametrize("mode", Mode)
def test_the_table_after_each_batch(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """The copy equals the table's version after the batch. The table, the other table and the parked tables do not
    change.
    """
    lake = lake_of_format
    monkeypatch.setattr(rebuild_module, "SLICE", 7)
    _lake(lake, mode)
    before, versions = _values(lake), (lake.version(), lake.version(ITEMS))
    rows = {row.batch: row for row in lake.control.batches.rows() if row.batch is not None}
    for number in (0, 2):
        asked = _copy(lake, str(number))
        assert (State.DONE, None) == (asked.state, asked.error)
        assert _values(lake, version=rows[number].versions[ORDERS]) == _values(lake, COPY)
    # The end of a batch as a time.
    _copy(lake, rows[1].ended_at.isoformat())
    assert _values(lake, version=rows[1].versions[ORDERS]) == _values(lake, COPY)
    _copy(lake)
    assert before == _values(lake) == _values(lake, COPY)
    assert (versions, []) == ((lake.version(), lake.version(ITEMS)), lake.parked())
    assert {ORDERS, ITEMS} == lake.control.batches.tables()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", Mode)
def test_without_some_events(
    lake_of_format: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, seed: int
) -> None:
    """The result equals a table whose batches lacked these events, as a copy and in place, even with later events."""
    lake = lake_of_format
    if isinstance(lake, MergingLake) and seed:
        pytest.skip("one seed shows what differs between formats")
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    topic, batches = _lake(lake, mode, seed)
    live, items = _values(lake), _values(lake, ITEMS)
    options = "0:3", "0:5-8", "batch:2"
    other = _without(lake, tmp_path / "beside", mode, batches, [(3, 3), (5, 8), (20, 29)])
    assert State.DONE == _copy(lake, None, *options).state
    assert _values(other) == _values(lake, COPY) != live
    assert live == _values(lake)
    assert State.DONE == _in_place(lake, *options).state
    assert (_values(other), []) == (_values(lake), lake.parked())
    later = [change("u", {"id": 1}, {"name": "later", "more": 1}, pos=99, schema=WIDER)]
    topic.apply(4, later)
    other.applier(other.records(later, 40), 4)
    assert _values(other) == _values(lake)
    assert items == _values(lake, ITEMS)
    assert State.DONE == _in_place(lake).state
    assert live != _values(lake)  # the later event


@pytest.mark.parametrize("mode", Mode)
def test_killed_after_each_slice(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """Other processes continue, while events arrive. Nothing is missing from the copy, and nothing is duplicated. The
    later events are not in it.
    """
    lake = lake_of_format
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    topic, _ = _lake(lake, mode)
    expected = _values(lake)
    options = options_for_copy(lake.control.batches, lake.topic_name, ORDERS, None, ())
    lake.control.requests.ask("rebuild-into", COPY, options.text())
    batch = 4
    while (requests := lake.requests()).run():
        assert requests.run() or batch > 5
        lake.use(lake.rules)  # another process, which repeats the last slice
        lake.topic = topic
        topic.apply(batch, [change("c", {"id": 100 + batch}, {"name": "x"}, pos=100 + batch, schema=FIRST)])
        assert [] == lake.parked()
        batch += 1
    (request,) = lake.control.requests.requests()
    assert (State.DONE, expected) == (request.state, _values(lake, COPY))
    assert expected != _values(lake)
    assert batch > 6


def test_killed_in_the_middle_of_a_slice(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends between the commit of a slice and the command's next row."""
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    topic, _ = _lake(lake, Mode.CHANGELOG)
    options = options_for_copy(lake.control.batches, lake.topic_name, ORDERS, None, ())
    lake.control.requests.ask("rebuild-into", COPY, options.text())

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        requests = lake.requests()
        assert requests.run()  # a new process repeats the last slice
        monkeypatch.setattr(requests.control_table, "answer", killed)
        with pytest.raises(KeyboardInterrupt):
            requests.run()
        lake.use(lake.rules)
        lake.topic = topic
    requests = lake.requests()
    while requests.run():
        pass
    assert _values(lake) == _values(lake, COPY)


def test_a_failed_copy_is_replaced(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that failed, or an earlier one, is replaced by the next command with the same name."""
    topic, _ = _lake(lake)
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    read = topic.read

    def unavailable(begin: Any, end: Any) -> Any:
        if begin[0] >= 18:
            raise OSError("the broker does not respond")
        return read(begin, end)

    monkeypatch.setattr(topic, "read", unavailable)
    assert State.FAILED == _copy(lake).state
    assert _values(lake) != _values(lake, COPY)
    monkeypatch.setattr(topic, "read", read)
    assert State.DONE == _copy(lake).state
    assert _values(lake) == _values(lake, COPY)
    version = lake.version(COPY)
    assert State.DONE == _copy(lake, "1").state
    assert _values(lake) == _values(lake, COPY, version)


def test_waiting_events_that_are_left_out(lake_of_format: Lake, tmp_path: Path) -> None:
    """A bad load waits because its table was parked. A rebuild without it applies only the events after it. A copy
    includes waiting events.
    """
    lake = lake_of_format
    topic, batches = _lake(lake)
    lake.command("park")
    bad = [change("c", {"id": id}, {"name": "bad"}, pos=50 + id, schema=FIRST) for id in range(5)]
    good = [change("c", {"id": 9}, {"name": "good"}, pos=60, schema=FIRST)]
    topic.apply(4, bad)
    topic.apply(5, good)
    assert State.DONE == _copy(lake).state
    assert {"good", "bad"} <= {row["name"] for row in _values(lake, COPY)}
    asked = _in_place(lake, "batch:4")
    assert (State.DONE, None, []) == (asked.state, asked.error, lake.parked())
    other = _without(lake, tmp_path / "beside", Mode.MIRROR, [*batches, bad, good], [(40, 44)])
    assert _values(other) == _values(lake)


def test_a_failed_rebuild_starts_over_with_other_options(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, _ = _lake(lake, Mode.CHANGELOG)
    expected = _values(lake)
    monkeypatch.setattr(rebuild_module, "SLICE", 9)
    read = topic.read
    monkeypatch.setattr(topic, "read", lambda begin, end: read(begin, end) if begin[0] < 18 else 1 / 0)
    assert State.FAILED == _in_place(lake, "0:0-12").state
    monkeypatch.setattr(topic, "read", read)
    assert State.DONE == _in_place(lake).state
    assert (expected, []) == (_values(lake), lake.parked())


def test_names_that_are_taken(lake_of_format: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy replaces neither a table of the sink nor a copy of another table, whatever the case of its name."""
    lake = lake_of_format
    _lake(lake)
    before = _values(lake), _values(lake, ITEMS)
    for name in (ORDERS, ITEMS, "shop_sales.Items"):
        asked = _copy(lake, into=name)
        assert (State.FAILED, True) == (asked.state, "is not an earlier copy of shop_sales.orders" in str(asked.error))
    assert before == (_values(lake), _values(lake, ITEMS))
    options = options_for_copy(lake.control.batches, lake.topic_name, ITEMS, None, ())
    assert State.DONE == _run(lake, "rebuild-into", COPY, options.text()).state
    assert "is not an earlier copy of" in str(_copy(lake).error)
    assert "cannot be the name of a copy" in str(_copy(lake, into="_cdc.parked").error)
    assert "cannot be the name of a copy" in str(_copy(lake, into="../orders").error)
    gone = options_for_copy(lake.control.batches, lake.topic_name, "shop_sales.gone", None, ())
    assert "table 'shop_sales.gone' does not exist" in str(_run(lake, "rebuild-into", "x", gone.text()).error)


def test_a_copy_gets_no_events(lake_of_format: Lake) -> None:
    """Even if the configuration gives its name to the source table, events wait until the copy is rebuilt."""
    lake = lake_of_format
    topic, _ = _lake(lake)
    assert State.DONE == _copy(lake, "1").state
    copied = _values(lake, COPY)
    assert "is a copy" in str(lake.command("sweep", COPY, "0001").error)
    lake.use(lake.rules, {"shop/sales//orders": COPY})
    topic.apply(4, [change("c", {"id": 77}, {"name": "later"}, pos=99, schema=FIRST)])
    assert [("TABLE_REFUSED", 40)] == lake.parked()
    assert copied == _values(lake, COPY)
    (cause,) = lake.control.held().values()
    assert "run `spark-sink rebuild restored.orders_monday`" in cause.detail
    asked = _run(lake, "rebuild", COPY, None)
    assert (State.DONE, []) == (asked.state, lake.parked())
    assert "later" in {row["name"] for row in _values(lake, COPY)}


def test_a_copy_of_the_other_format_and_of_a_declared_key(merging_lake: MergingLake) -> None:
    """The mode and the key are those of the table, and the format is the configured one for the copy's name."""
    lake = merging_lake
    for schema in (FIRST, WIDER, ITEM):
        lake.announce(schema)
    lake.formats = {"restored.*": Format.ICEBERG}
    lake.use(TableRules(modes={ORDERS: Mode.HISTORY, "restored.*": Mode.CHANGELOG}, keys={ORDERS: ("name",)}))
    topic = Topic(lake)
    topic.apply(0, [change("c", {"id": n}, {"name": f"n{n}"}, pos=n + 1, schema=FIRST) for n in range(3)])
    asked = _copy(lake)
    assert (State.DONE, None) == (asked.state, asked.error)
    copy = lake.tables.open(COPY)
    assert copy is not None
    assert (Format.ICEBERG, Mode.HISTORY, ("name",)) == (lake.tables.format(COPY), copy.shape.mode, copy.shape.key)
    assert _values(lake) == _values(lake, COPY)


def test_a_shared_table(lake: Lake) -> None:
    lake.announce(FIRST)
    other = "other/sales//orders"
    rules = TableRules(shared={ORDERS: ("shop/sales//orders", other)})
    lake.use(rules, {other: ORDERS})
    topic = Topic(lake)
    topic.apply(
        0, [change("c", {"id": 1}, {"name": "a"}, pos=1), change("c", {"id": 1}, {"name": "b"}, pos=1, source="other")]
    )
    topic.apply(1, [change("d", {"id": 1}, pos=2)])
    assert State.DONE == _copy(lake, "0").state
    assert ["a", "b"] == sorted(row["name"] for row in _values(lake, COPY))


def test_a_source_table_with_the_same_name(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy contains the events of the table's source, even if another source comes first."""
    monkeypatch.setattr(rebuild_module, "SLICE", 1)
    topic = Topic(lake)
    topic.apply(0, [change("c", {"id": 1}, {"name": "a"}, pos=1)])
    topic.apply(1, [change("c", {"id": 2}, {"name": "other"}, pos=2, table="ORDERS")])
    topic.apply(2, [change("c", {"id": 3}, {"name": "b"}, pos=3)])
    assert [("TABLE_CLASH", 1)] == lake.parked()
    assert State.DONE == _copy(lake, None, "0:0").state
    assert ["b"] == [row["name"] for row in _values(lake, COPY)]


def test_on_spark(spark_lake: SparkLake) -> None:
    """Spark's workers leave out records, too."""
    _, batches = _lake(spark_lake)
    live = _values(spark_lake)
    assert State.DONE == _copy(spark_lake, "1", "0:0-4").state
    copied = {row["_cdc_pos"] for row in _values(spark_lake, COPY)}
    positions = [event.pos for batch in batches for event in batch]
    assert copied <= set(positions[5:20])
    assert copied
    assert live == _values(spark_lake)


def test_no_events_until_then(lake: Lake) -> None:
    _, batches = _lake(lake)
    assert {"items", "orders"} >= {event.table for event in batches[0]}
    asked = _copy(lake, None, "0:0-39")
    assert "the topic contains no such events for shop_sales.orders" in str(asked.error)
    assert lake.tables.open(COPY) is None


def test_a_topic_without_its_beginning(lake: Lake) -> None:
    topic, _ = _lake(lake)
    topic.first = 3
    asked = _copy(lake)
    assert "THE TOPIC HAS BEEN DELETED (first offsets by partition: 0: 3)" in str(asked.result)


def test_an_event_that_the_copy_refuses(lake: Lake) -> None:
    """The table itself is not parked."""
    _lake(lake)
    lake.announce(schema_of({"id": "int64", "name": "string"}, key=("id", "name")))
    asked = _copy(lake)
    assert (State.FAILED, True) == (asked.state, f"{COPY} is incomplete: the key changed" in str(asked.error))
    assert [] == lake.parked()


def test_options(lake: Lake) -> None:
    """Batches become offsets when the command is queued. What cannot be exact is rejected."""
    _lake(lake)
    batches, name = lake.control.batches, lake.topic_name
    found = options_for_copy(batches, name, ORDERS, "1", ["batch:0", "0:12-14"])
    assert ({0: 20}, (OffsetRange(0, 0, 9), OffsetRange(0, 12, 14))) == (found.ends, found.without)
    assert parse_options(found.text()) == found
    assert options_for_table(batches, []) is None
    assert {0: 40} == options_for_copy(batches, name, ORDERS, datetime.now(UTC).isoformat(), []).ends
    for without, why in [
        ("0:40", "has not read all of 0:40 yet"),
        ("0:5-40", "offset after the last record by partition: 0: 40"),
        ("1:0", "has not read all of 1:0 yet"),
        ("0:5-4", "ends before it begins"),
        ("0", "is not PARTITION:OFFSET"),
        ("shop/raw/0/1/0", "is not PARTITION:OFFSET"),
    ]:
        with pytest.raises(ConfigError, match=why):
            options_for_table(batches, [without])
    with pytest.raises(FatalError, match="batch 7 of topic canonical does not exist; existing batches: 0 to 3"):
        options_for_table(batches, ["batch:7"])
    for as_of, why in [("2026-01-31", "is not a batch number or a time"), ("9999-01-01T00:00:00Z", "is in the future")]:
        with pytest.raises(ConfigError, match=why):
            options_for_copy(batches, name, ORDERS, as_of, [])
    long_ago = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    with pytest.raises(FatalError, match="no recorded batch of topic canonical had ended"):
        options_for_copy(batches, name, ORDERS, long_ago, [])
    with pytest.raises(FatalError, match="checkpoint-1 has no batch 9"):
        options_for_copy(batches, name, ORDERS, "9", [])
    with pytest.raises(FatalError, match="the command's argument is not valid"):
        parse_options('{"id": "x", "unknown": 1}')


class CommandLine:
    """The command line, next to a sink that executes its commands."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self._lake = lake
        self._config = folder / "sink.yaml"
        settings = {
            "pipeline": "test",
            "kafka": {"bootstrap_servers": "unused:9092"},
            "input": {"topic": lake.topic_name},
            "tables": {"warehouse": str(lake.warehouse)},
            "checkpoint": str(folder / "checkpoint"),
        }
        self._config.write_text(yaml.safe_dump(settings))

    def __call__(self, *arguments: str) -> Any:
        """Return the result of a command, and execute what it queues."""
        requests, ended = self._lake.requests(), Event()

        def execute() -> None:
            while not ended.is_set():
                requests.run()
                ended.wait(0.01)

        with ThreadPoolExecutor(1) as pool:
            executing = pool.submit(execute)
            try:
                return CliRunner().invoke(cli, [str(self._config) if one == "sink.yaml" else one for one in arguments])
            finally:
                ended.set()
                executing.result()


def test_the_commands_on_the_page(lake: Lake, tmp_path: Path) -> None:
    """Each command on docs/sink/earlier-states.md does what the page says."""
    for schema in (FIRST, WIDER, ITEM):
        lake.announce(schema)
    topic, events = Topic(lake), [*_events(0, 1400)]
    for offset in (1210, 1255):  # rows that only the bad load has
        events[offset] = change("c", {"id": offset}, {"name": "bad"}, pos=offset + 1, schema=WIDER)
    batches = [events[n : n + 100] for n in range(0, 1400, 100)]
    for number, batch in enumerate(batches):
        topic.apply(number, batch)
    rows = {row.batch: row for row in lake.control.batches.rows()}
    noon = "2026-01-31T12:04:00+00:00"
    text = page("sink/earlier-states.md").replace(noon, rows[11].ended_at.isoformat())
    listed, *commands = re.findall(r"^ *(?:\$ )?spark-sink (.+ -c sink\.yaml.*)$", text, re.MULTILINE)
    run = CommandLine(lake, tmp_path)
    assert ["offsets 0: 1300 to 1400", "offsets 0: 1200 to 1300"] == re.findall(
        r"offsets [\d: ]+to \d+", run(*listed.split()).output
    )
    copy_without, in_place, as_of, at_noon, ranges = commands
    before = _values(lake)

    def rebuilt(command: str) -> None:
        ended = run(*shlex.split(command))
        assert (0, True) == (ended.exit_code, "events read from the topic" in ended.output), ended.output

    without = _values(_without(lake, tmp_path / "a", Mode.MIRROR, batches, [(1200, 1299)]))
    rebuilt(copy_without)
    assert (without, before) == (_values(lake, "restored.orders"), _values(lake))
    rebuilt(ranges)
    other = _without(lake, tmp_path / "b", Mode.MIRROR, batches[:13], [(1200, 1249), (1260, 1260)])
    assert _values(other) == _values(lake, "restored.orders")
    rebuilt(in_place)
    assert without == _values(lake) != before
    rebuilt(as_of)
    rebuilt(at_noon)
    then = _values(lake, version=rows[11].versions[ORDERS])
    assert then == _values(lake, "restored.orders_11") == _values(lake, "restored.orders_noon")
    assert [] == lake.parked()


def test_the_command_line_rejects(lake: Lake, tmp_path: Path) -> None:
    """Nothing is queued for options that cannot be right."""
    _lake(lake)
    run = CommandLine(lake, tmp_path)
    for options, why in [
        (["--as-of", "1"], "--as-of: a table that continues would lack the events after that batch; add --into NAME"),
        (["--into", "a/b"], "--into: a table name can contain letters, digits"),
        (["--without", "0:40"], "has not read all of 0:40"),
        (["--into", "x", "--as-of", "yesterday"], "'yesterday' is not a batch number or a time"),
    ]:
        ended = run("rebuild", ORDERS, *options, "-c", "sink.yaml")
        assert (ConfigError, True) == (type(ended.exception), why in str(ended.exception)), ended.exception
    ended = run("rebuild", "shop_sales.order", "--into", "x", "-c", "sink.yaml")
    assert "did you mean shop_sales.orders?" in str(ended.exception)
    assert [] == lake.control.requests.requests()
