"""The product as a user runs it: a real broker, a real translator process, a real sink, and processes that die.

Five shops make 21 000 changes in all, each captured by a different replication tool. The translator is killed twice and
the sink once. The expected tables come from the shops themselves (dev/demo/shop.py), which do not depend on the
product.
"""

import re
import subprocess
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dev.demo.bad_input import Bad, bad_input
from dev.demo.compare import differences
from dev.demo.next_steps import asking_the_broker, asking_the_lakehouse
from dev.demo.sources import SHOPS, ShopSource, interleaved, shop_sources
from dev.demo.writers import Raw
from dev.servers.broker import Broker
from dev.servers.stack import CANONICAL, DEAD_LETTERS, Account, Stack, wait_until
from tests.repository.pages import page

CHANGES = 4200
SEED = 20220320
KILL_TRANSLATOR_AFTER = 3000  # records that the process has accounted for
SECONDS = 900  # for each step: a timeout for hanging tests, not a measurement

Coordinates = tuple[str, int, int]


@dataclass
class Run:
    """The output of one run."""

    directory: Path
    sources: list[ShopSource]
    fed: dict[Coordinates, Raw]
    bad: dict[Coordinates, Bad]
    account: Account = field(default_factory=dict)
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    dead_letters: list[Any] = field(default_factory=list)
    tables: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    exits: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def run(module_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Make one run with its kills. All tests below check its output."""
    sources = shop_sources(SEED)
    directory = tmp_path_factory.mktemp("end-to-end")
    stack = Stack(module_broker.bootstrap, directory, [source.settings for source in sources], max_offsets=8000)
    stack.create_raw_topics()
    messages = _messages(sources)
    result = Run(directory, sources, _placed(messages), {})
    bad = {id(entry.message): entry for entry in BAD}
    result.bad = {place: bad[id(message)] for place, message in result.fed.items() if id(message) in bad}
    try:
        _drive(stack, result, messages)
        _look(stack, result)
        for source in sources:
            source.write_rows(directory / SHOPS)
        result.exits = {name: stack.stop(name) for name in ("translator", "spark-sink")}
    finally:
        stack.close()
    return result


BAD = bad_input()


def _messages(sources: list[ShopSource]) -> list[Raw]:
    """Return the messages. Bad input comes early, so that the stream has to survive it."""
    good = list(interleaved([source.messages(CHANGES, grow=True) for source in sources]))
    middle = len(good) // 3
    return [*good[:middle], *(bad.message for bad in BAD), *good[middle:]]


def _placed(messages: list[Raw]) -> dict[Coordinates, Raw]:
    offsets: Counter[tuple[str, int]] = Counter()
    placed = {}
    for message in messages:
        where = (message.topic, message.partition)
        placed[*where, offsets[where]] = message
        offsets[where] += 1
    return placed


def _drive(stack: Stack, result: Run, messages: list[Raw]) -> None:
    """Kill the translator twice and the sink once while there is work, then process everything."""
    first = len(messages) - 2 * KILL_TRANSLATOR_AFTER
    stack.feed(messages[:first])
    stack.start("spark-sink")
    for begin in (first, first + KILL_TRANSLATOR_AFTER):
        stack.start("translator")
        wait_until("the translator works", SECONDS, lambda: _accounted(stack) >= KILL_TRANSLATOR_AFTER, stack)
        stack.kill("translator")
        # However far it got before we noticed, this many messages remain for the next process.
        stack.feed(messages[begin : begin + KILL_TRANSLATOR_AFTER])
    stack.start("translator")
    wait_until("the sink has written tables", SECONDS, lambda: bool(list(stack.warehouse.glob("*/*"))), stack)
    stack.kill("spark-sink")
    stack.start("spark-sink")
    wait_until("all offsets are committed", SECONDS, lambda: sum(stack.committed().values()) == len(result.fed), stack)
    wait_until("the tables are right", SECONDS, lambda: not any(_wrong(stack, result)), stack)


def _accounted(stack: Stack) -> int:
    return sum(counts["in"] for counts in stack.account().values())


def _wrong(stack: Stack, result: Run) -> Iterator[str]:
    for source in result.sources:
        yield from source.wrong(stack.rows)


def _look(stack: Stack, result: Run) -> None:
    wait_until("the translator answers", SECONDS, lambda: bool(stack.account()), stack)
    result.account = stack.account()
    result.committed = stack.committed()
    result.events = stack.records(CANONICAL)
    result.dead_letters = stack.records(DEAD_LETTERS)
    for source in result.sources:
        for name in source.shop.rows:
            result.tables[source.prefix, name] = stack.rows(f"{source.prefix}.{name}")


def headers(record: Any) -> dict[str, bytes]:
    return dict(record.headers() or ())


def test_at_least_twenty_thousand_messages_were_fed(run: Run) -> None:
    """The run has its intended size, and every source took part."""
    assert len(run.fed) >= 20_000
    assert {"raw.qlik", "raw.dts", "raw.shareplex", "raw.canal", "raw.legacy"} <= {place[0] for place in run.fed}


@pytest.mark.parametrize("source", ["qlik", "dts", "shareplex", "canal", "legacy"])
def test_every_cell_of_every_table_is_right(run: Run, source: str) -> None:
    """Each table has exactly the rows of the shop, and every cell matches."""
    (found,) = [candidate for candidate in run.sources if candidate.name == source]
    for name, rows in found.shop.rows.items():
        assert rows, "a table that ends empty shows nothing"
        assert [] == differences(found.shop.shape(name), rows.values(), run.tables[found.prefix, name])


def test_nothing_is_lost(run: Run) -> None:
    """Every raw record produced events or a dead letter, or was correctly skipped or learned."""
    events = {_origin_of_event(record) for record in run.events}
    dead = {_origin_of_dead_letter(record) for record in run.dead_letters}
    silent = {place for place, bad in run.bad.items() if bad.code is None}
    learned = {place for place in run.fed if place[0] == "raw.qlik.metadata"}
    assert set() == run.fed.keys() - events - dead - silent - learned
    assert set() == (events | dead) - run.fed.keys(), "nothing is invented"
    assert set() == events & dead, "a record has one fate"


def test_duplicates_have_the_same_bytes(run: Run) -> None:
    """Duplicates from a killed translator match byte for byte: key, value, headers and partition."""
    seen: dict[bytes, set[Any]] = defaultdict(set)
    for record in run.events:
        written = (record.partition(), record.key(), record.value(), tuple(record.headers() or ()))
        seen[headers(record)["cdc-id"]].add(written)
    assert all(len(versions) == 1 for versions in seen.values())


def test_order_is_kept_per_raw_partition(run: Run) -> None:
    """The first occurrences of a raw partition's events are in one canonical partition, in raw order."""
    order: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    partitions: dict[tuple[str, int], set[int]] = defaultdict(set)
    seen = set()
    for record in run.events:
        identity = headers(record)["cdc-id"]
        _, topic, partition, offset, n = identity.decode().split("/")
        partitions[topic, int(partition)].add(record.partition())
        if identity not in seen:
            seen.add(identity)
            order[topic, int(partition)].append((int(offset), int(n)))
    assert all(len(found) == 1 for found in partitions.values())
    assert all(found == sorted(found) for found in order.values())


def test_the_account_holds_per_partition(run: Run) -> None:
    """For each partition, the product's counters satisfy: records in = translated + dead + skipped + learned."""
    assert run.account
    for where, counts in run.account.items():
        accounted = counts["translated"] + counts["dead"] + counts["skipped"] + counts["learned"]
        assert counts["in"] == accounted, where


def test_everything_is_committed(run: Run) -> None:
    """The committed offset of every raw partition is its end offset."""
    fed = Counter(place[:2] for place in run.fed)
    assert fed == Counter({where: offset for where, offset in run.committed.items() if offset})


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)
def test_bad_input_is_skipped_or_kept_with_a_reason(run: Run, bad: Bad) -> None:
    """A dead letter has the original bytes, a code, and a message with the place, the value and what was allowed."""
    ((place, _),) = [item for item in run.bad.items() if item[1] == bad]
    letters = [record for record in run.dead_letters if _origin_of_dead_letter(record) == place]
    if bad.code is None:
        assert [] == letters
        return
    letter = letters[0]
    found = headers(letter)
    assert (bad.message.key, bad.message.value) == (letter.key(), letter.value())
    assert bad.code == found["cdc-error-code"].decode()
    topic, partition, offset = place
    assert f"(topic {topic}, partition {partition}, offset {offset})" in found["cdc-error-message"].decode()


def test_both_end_in_order(run: Run) -> None:
    """SIGTERM ends both processes with exit code 0."""
    assert {"translator": 0, "spark-sink": 0} == run.exits


def _origin_of_event(record: Any) -> Coordinates:
    _, topic, partition, offset, _ = headers(record)["cdc-id"].decode().split("/")
    return topic, int(partition), int(offset)


def _origin_of_dead_letter(record: Any) -> Coordinates:
    found = headers(record)
    return (
        found["cdc-origin-topic"].decode(),
        int(found["cdc-origin-partition"]),
        int(found["cdc-origin-offset"]),
    )


def test_the_comparison_sees_what_differs() -> None:
    """The comparison finds a missing row, a surplus row and a wrong cell."""
    (source, *_) = shop_sources(SEED)
    for _ in source.messages(200, grow=True):
        pass
    shape = source.shop.shape("customers")
    rows = [dict(row) for row in source.shop.rows["customers"].values()]
    assert [] == differences(shape, rows, rows)
    assert 1 == len(differences(shape, rows, rows[1:]))
    assert 1 == len(differences(shape, rows[1:], rows))
    wrong = [dict(rows[0], name="somebody else"), *rows[1:]]
    assert 1 == len(differences(shape, rows, wrong))


def test_what_the_demo_tells_to_paste(run: Run) -> None:
    """Each command that the demo prints runs unchanged while the broker is up, and shows what the demo promises."""
    place = next(place for place in run.fed if place[0] == "raw.canal" and place not in run.bad)
    table = "canal_shop.orders"
    steps = [*asking_the_lakehouse(run.directory, table), *asking_the_broker(run.directory, *place, table)]
    shown = {
        step.shows: subprocess.run(
            step.command, shell=True, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        for step in steps
    }
    assert {} == {shows: (done.returncode, done.stderr) for shows, done in shown.items() if done.returncode}
    status, rows, view, verified, audit, letters, explained = (done.stdout for done in shown.values())
    assert "canal_shop.orders  version" in status
    assert "_cdc_commit_ts" in rows
    assert view.startswith('CREATE OR REPLACE VIEW "canal_shop_orders"')
    assert ": equal; " in verified
    assert "lost=0" in audit
    assert "MALFORMED_JSON" in letters
    assert '"op":' in explained


def test_the_page_that_answers_how_do_i_know(run: Run) -> None:
    """The commands on docs/sink/how-do-i-know.md show that a table is right, and find a cell that is wrong."""
    text = page("sink/how-do-i-know.md").replace("artifacts/demo", str(run.directory))
    text = text.replace(".venv/bin", str(Path(sys.executable).parent))
    commands = map(textwrap.dedent, re.findall(r"^ *```\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL))
    done = [
        subprocess.run(command, shell=True, capture_output=True, text=True, timeout=SECONDS, check=False)
        for command in commands
        if command != "make demo\n"
    ]
    assert [0, 0, 0, 0, 3, 0] == [one.returncode for one in done], done
    audit, verified, against_source, _, found, _ = (one.stdout for one in done)
    assert ("lost=0" in audit, "invented=0" in audit) == (True, True)
    for told in (verified, against_source):
        assert (": equal; rows compared: " in told, "not compared" in told) == (True, False), told
    (key,) = {line for line in found.splitlines() if line.startswith("  different: ")}
    assert (2, 2) == (found.count("NOT EQUAL; rows compared: "), found.count(key))
