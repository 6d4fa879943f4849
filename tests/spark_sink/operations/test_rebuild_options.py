"""The options of `spark-sink rebuild` on the command line, and the commands on its page."""

from __future__ import annotations

import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dev.servers.broker import Broker
from spark_sink.commands import cli
from spark_sink.errors import ConfigError, FatalError
from spark_sink.operations.rebuild import OffsetRange
from spark_sink.operations.rebuild_options import options_for_copy, options_for_table, parse_options
from spark_sink.schema.table_spec import Mode
from tests.repository.pages import page
from tests.spark_sink.changes import change
from tests.spark_sink.lake import Lake, Topic
from tests.spark_sink.operations.rebuilt import (
    COPY,
    FIRST,
    ITEM,
    ORDERS,
    WIDER,
    filled,
    lake_without,
    random_events,
    values,
)
from tests.spark_sink.sink_process import PATIENCE_SECONDS, Sink, wait


def test_options(lake: Lake) -> None:
    """Batches become offsets when the command is queued. What cannot be exact is rejected."""
    filled(lake)
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
    topic, events = Topic(lake), [*random_events(0, 1400)]
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
    before = values(lake)

    def rebuilt(command: str) -> None:
        ended = run(*shlex.split(command))
        assert (0, True) == (ended.exit_code, "events read from the topic" in ended.output), ended.output

    without = values(lake_without(lake, tmp_path / "a", Mode.MIRROR, batches, [(1200, 1299)]))
    rebuilt(copy_without)
    assert (without, before) == (values(lake, "restored.orders"), values(lake))
    rebuilt(ranges)
    other = lake_without(lake, tmp_path / "b", Mode.MIRROR, batches[:13], [(1200, 1249), (1260, 1260)])
    assert values(other) == values(lake, "restored.orders")
    rebuilt(in_place)
    assert without == values(lake) != before
    rebuilt(as_of)
    rebuilt(at_noon)
    then = values(lake, version=rows[11].versions[ORDERS])
    assert then == values(lake, "restored.orders_11") == values(lake, "restored.orders_noon")
    assert [] == lake.parked()


def test_the_command_line_rejects(lake: Lake, tmp_path: Path) -> None:
    """Nothing is queued for options that cannot be right."""
    filled(lake)
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


@pytest.mark.integration
def test_a_running_sink(broker: Broker, tmp_path: Path) -> None:
    """A command is queued while the sink is down, and executed from the real topic while the live table continues."""
    sink = Sink(broker, tmp_path, "copied")
    bad = [change("c", {"id": id}, {"name": "bad"}, pos=id, schema=FIRST) for id in (11, 12)]
    good = [change("c", {"id": id}, {"name": "good"}, pos=id, schema=FIRST) for id in range(10)]
    sink.send([FIRST], [*good, *bad])
    assert 0 == sink.start("--available-now").wait(PATIENCE_SECONDS), sink.text()[-3000:]
    options = ["--without", "0:10-11", "--into", COPY, "-c", str(sink.config)]
    queued = CliRunner().invoke(cli, ["rebuild", ORDERS, *options], env=sink.environment())
    assert "queued as" in queued.output, queued.exception
    sink.send([], [change("c", {"id": 13}, {"name": "later"}, pos=13, schema=FIRST)])
    service = sink.start()
    try:
        wait(lambda: (13, "later") in sink.rows() and len(sink.rows(COPY)) == 10, service)
    finally:
        service.kill()
        service.wait()
    assert {"good"} == {name for _, name in sink.rows(COPY)}
    assert 13 == len(sink.rows())
