"""`translator check --connect` on a real broker prints a line per answer and writes nothing."""

import json
from pathlib import Path

import yaml

from tests.translator.commands import _program
from tests.translator.commands._bench import Bench, row


def lines(shop: Bench, *arguments: str) -> tuple[int, list[str]]:
    ran = shop.run("check", "--connect", *arguments)
    return ran.returncode, [line for line in ran.stdout.splitlines() if line[:5].strip() in ("ok", "note", "WRONG")]


def changed(shop: Bench, **settings: object) -> None:
    shop.document.update(settings)
    shop.config.write_text(yaml.safe_dump(shop.document))


def test_all_is_well(shop: Bench) -> None:
    """The answers have the names of what was checked, and the reason if a record would become a dead letter."""
    shop.feed([row(1), row(2), b"{]", None])
    shop.create(f"{shop.name}-new", 3)
    shop.create(f"{shop.name}-t.shop.orders", 2)
    by_table = {"topic": f"{shop.name}-t.{{table}}", "codec": "json"}
    changed(shop, output={"topic": f"{shop.name}-new"}, projections=[by_table])
    code, told = lines(shop)
    assert 0 == code
    assert ["ok     brokers", f"ok     group {shop.name}"] == [line.partition(":")[0] for line in told[:2]]
    assert "ok     source shop: it has 2 partitions, so up to 2 processes of the group can share it" in told
    assert f"ok     topic {shop.name}-new: it has 3 partitions, and this user is allowed to write" in told
    assert f"ok     topic {shop.name}-t.shop.orders: it has 2 partitions, and this user is allowed to write" in told
    assert f"ok     topic {shop.raw}: 4 records: 2 translated, 0 learned, 1 skipped (without a value)" in told
    (dead,) = [line for line in told if "dead letter" in line]
    assert dead.startswith(f"note   topic {shop.raw}: 1 dead letter MALFORMED_JSON: canal: not JSON")
    assert [] == shop.read(f"{shop.name}-new")
    parts = json.loads(shop.run("check", "--connect", "--json").stdout)
    assert ["shop"] == parts["sources"]
    assert {f"{shop.name}-new": "avro", f"{shop.name}-t.{{table}}": "json"} == parts["writes"]
    assert told == [f"{answer['state']:<5}  {answer['subject']}: {answer['text']}" for answer in parts["answers"]]
    assert f"{shop.name}-new.dlq" not in shop.admin.list_topics(timeout=20).topics


def test_everything_that_is_wrong_at_once(shop: Bench) -> None:
    shop.create(f"{shop.name}-compacted", 1, cleanup_policy="compact")
    shop.create(f"{shop.name}-brief", 1, retention_ms="3600000")
    shop.create(f"{shop.name}-new.metadata", 1)
    source = {
        "name": "other",
        "dialect": "canal",
        "options": {"profile": "oss"},
        "topics": [f"{shop.name}-{name}" for name in ("compacted", "brief", "gone", "lost", "never*")],
    }
    changed(shop, sources=[*shop.document["sources"], source], output={"topic": f"{shop.name}-new"})
    code, told = lines(shop)
    assert 1 == code
    expected = [
        f"WRONG  source other: topic {shop.name}-gone does not exist or is not visible to this user",
        f"WRONG  source other: topic {shop.name}-lost does not exist or is not visible to this user",
        f"note   source other: no topic matches {shop.name}-never* yet",
        f"note   source other: topic {shop.name}-compacted is compacted, so Kafka may delete messages that have "
        "not been read yet",
        f"note   source other: topic {shop.name}-brief retains messages for only 1 hours (retention.ms), so "
        "messages are lost in a longer outage",
        f"WRONG  topic {shop.name}-new.metadata: cleanup.policy is delete, which would delete state; set it to compact",
        f"ok     topic {shop.name}-new: it does not exist yet; `run` will create it",
        f"note   topic {shop.name}-brief: it is empty, so there was nothing to test",
    ]
    assert [] == [line for line in expected if line not in told]
    changed(shop, topics={"create": False})
    missing = "it does not exist, and topics.create is false; create the topic, or set topics.create: true"
    assert f"WRONG  topic {shop.name}-new: {missing}" in lines(shop)[1]


def test_nobody_answers(shop: Bench, free_port: int) -> None:
    changed(shop, kafka={"bootstrap_servers": f"127.0.0.1:{free_port}"}, timing={"broker_wait": 0})
    code, told = lines(shop)
    assert (1, 1) == (code, len(told))
    assert told[0].startswith("WRONG  brokers: ")


def test_a_registry_that_is_away(shop: Bench, free_port: int) -> None:
    registry = {"url": f"http://127.0.0.1:{free_port}"}
    changed(shop, registry=registry, timing={"broker_wait": 10}, output={"topic": f"{shop.name}-new"})
    code, told = lines(shop)
    assert 1 == code
    (wrong,) = [line for line in told if line.startswith("WRONG")]
    assert wrong.startswith("WRONG  registry: ")


def test_a_topic_of_another_product_is_wrong(shop: Bench) -> None:
    """If no sampled record can be read, the exit code is 1, and the line says which product wrote them."""
    shop.feed([row(1), row(2), row(3), None])
    source = {"name": "crm", "dialect": "shareplex", "topics": [shop.raw]}
    changed(shop, sources=[source], output={"topic": f"{shop.name}-new"})
    code, told = lines(shop)
    assert 1 == code
    text = f"none of 3 records of {shop.raw} is shareplex; they look like canal"
    assert [f"WRONG  source crm: {text}"] == [line for line in told if line.startswith("WRONG")]
    assert f"note   topic {shop.raw}: 4 records: 0 translated, 0 learned, 1 skipped (without a value)" in told


def test_a_topic_that_nothing_recognizes_is_wrong(shop: Bench) -> None:
    shop.feed([b"{]", b"nothing"])
    changed(shop, output={"topic": f"{shop.name}-new"})
    code, told = lines(shop)
    assert 1 == code
    assert f"WRONG  source shop: none of 2 records of {shop.raw} can be translated" in told


def test_records_that_need_a_registry_are_counted(shop: Bench) -> None:
    """The counts of a topic's lines add up to its records: a frame with a schema id is one of them."""
    framed = b"\0\0\0\0\x07\0"
    shop.feed([framed, b"{]"])
    source = {"name": "hr", "dialect": "qlik", "topics": [shop.raw]}
    changed(shop, sources=[source], output={"topic": f"{shop.name}-new"})
    code, told = lines(shop)
    assert 1 == code
    assert f"note   topic {shop.raw}: 2 records: 0 translated, 0 learned" in told
    needs = "1 need a schema from the schema registry, but the configuration has none; add a `registry` section"
    assert f"note   topic {shop.raw}: {needs}" in told
    assert [True] == [f"{shop.raw}: 1 dead letter" in line for line in told if "dead letter" in line]


def test_patterns_that_match_nothing_in_the_sample(shop: Bench) -> None:
    """A rule for a misspelled column is named, even if another rule removes the column that it means."""
    shop.feed([row(1)])
    rules = [
        {"column": "naem", "mask": "drop"},
        {"column": "NAME", "mask": "drop"},
        {"column": "n*", "type": "boolean", "mask": "drop"},
    ]
    include = [{"table": "*.t"}, {"source": "shop", "table": "*.tt"}]
    projection = {"topic": f"{shop.name}-p", "codec": "json", "include": include}
    changed(shop, masks={"rules": rules}, projections=[projection], output={"topic": f"{shop.name}-new"})
    code, told = lines(shop)
    assert 0 == code
    assert [
        "note   configuration: masks.rules[0] (column: naem) matched no column in the sample",
        "note   configuration: masks.rules[2] (column: n*, type: boolean) matched no column in the sample",
        "note   configuration: projections[0].include[1] (source: shop, table: *.tt) matched no table in the sample",
    ] == [line for line in told if "configuration" in line]


def test_settings_come_first(tmp_path: Path) -> None:
    """If the file is wrong, no server is contacted."""
    (tmp_path / "translator.yaml").write_text("kafka: {bootstrap_servers: 'nobody:1'}\nsources: []\n")
    ran = _program.run("check", "--connect", "-c", str(tmp_path / "translator.yaml"))
    assert (2, "") == (ran.returncode, ran.stdout)
