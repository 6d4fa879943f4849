"""`spark-sink check --connect` answers every question, even if others fail."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_core.table_contract import document as contract_document
from cdc_core.table_id import TableId
from dev.jars import spark_jars
from dev.servers.broker import Broker, hold_port
from dev.servers.stack import wait_until
from spark_sink.commands import main
from spark_sink.config.settings import Settings, Spark
from spark_sink.control_tables.batches import ControlTables
from spark_sink.errors import ConfigError
from spark_sink.operations.checks import Question, answers, questions
from spark_sink.schema.evolution import TableColumn, TableShape
from spark_sink.spark import session as spark_session
from spark_sink.tables.iceberg import served_catalog
from tests.spark_sink.changes import announced, schema_of
from tests.spark_sink.local import local_ddl
from tests.spark_sink.records import report

NAME = "s_d.t"


class Asked:
    """The command with a configuration."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys

    def __call__(self, settings: Mapping[str, Any], *options: str) -> tuple[int, dict[str, str], str]:
        """Return the exit code, the answers by subject, and the messages about them."""
        config = self.folder / "sink.yaml"
        config.write_text(yaml.safe_dump(dict(settings)))
        self._monkeypatch.setattr(sys, "argv", ["spark-sink", "check", "-c", str(config), *options])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        lines = [line.split(None, 1) for line in said.out.splitlines()]
        return int(ended.value.code or 0), {rest.partition(": ")[0]: f"{ok} {rest}" for ok, rest in lines}, said.err


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    # A JVM is started where the test is about it.
    monkeypatch.setattr(spark_session, "check_java", lambda settings, store, iceberg: None)
    return Asked(tmp_path, monkeypatch, capsys)


def _settings(folder: Path, bootstrap: str, topic: str = "cdc.canonical", **tables: Any) -> dict[str, Any]:
    return {
        "pipeline": "p",
        "kafka": {"bootstrap_servers": bootstrap},
        "input": {"topic": topic},
        "tables": {"warehouse": str(folder / "warehouse"), **tables},
        "checkpoint": str(folder / "checkpoint"),
    }


def test_a_layout_that_differs(tmp_path: Path) -> None:
    """A table that does not have its configured layout is a note, and a table without an entry is not compared."""
    warehouse = str(tmp_path / "warehouse")
    columns = (TableColumn("id", "bigint"), TableColumn("n", "int"))
    for name in (NAME, "s_d.other"):
        local_ddl(warehouse).create(name, TableShape(TableId("s", "d", None, name[4:]), columns, ("id",)))
    control = ControlTables(warehouse, "p", "one", "cdc.canonical")
    control.create()
    control.batches.write(0, [msgspec.structs.replace(report(name), version=0) for name in (NAME, "s_d.other")])

    def answer(layout: dict[str, Any]) -> tuple[str, str]:
        settings = Settings.model_validate(_settings(tmp_path, "nobody:1", layout=layout))
        asked = [one for one in questions(settings, lambda: None) if one.subject in ("tables", "layouts")]
        return [*answers(asked)][-1][1:]

    assert ("ok", "all as configured") == answer({})
    assert ("ok", "all as configured") == answer({NAME: {}})
    state, text = answer({NAME: {"partition": ["n"], "file_megabytes": 8}})
    assert "note" == state
    differing = "partition: not set, configured: n, file_megabytes: not set, configured: 8"
    assert text.startswith(f"not as configured in tables.layout: {NAME} ({differing}). `spark-sink relayout`")


def test_readers(asked: Asked) -> None:
    """Without --connect, only the tables are read. What a reader cannot read is a note with the table's name."""
    warehouse = str(asked.folder / "warehouse")
    for name, sql in ((NAME, "timestamp_ntz"), ("s_d.other", "int")):
        columns = (TableColumn("id", "bigint"), TableColumn("n", sql))
        local_ddl(warehouse).create(name, TableShape(TableId("s", "d", None, name[4:]), columns, ("id",)))
    control = ControlTables(warehouse, "p", "one", "cdc.canonical")
    control.create()
    control.batches.write(0, [msgspec.structs.replace(report(name), version=0) for name in (NAME, "s_d.other")])
    code, lines, said = asked(_settings(asked.folder, "nobody:1"), "--readers", "duckdb, snowflake")
    assert (0, "") == (code, said)
    assert ["settings", "reader duckdb", "reader snowflake"] == list(lines)
    assert "ok reader duckdb: reads the features of all 2 tables" == lines["reader duckdb"]
    unknown = f"note reader snowflake: not known whether it reads timestampNtz (no rule) of {NAME}."
    assert lines["reader snowflake"].startswith(unknown)
    code, _, said = asked(_settings(asked.folder, "nobody:1"), "--readers", "trini")
    assert 2 == code
    assert "did you mean trino?" in said


def test_a_catalog_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable catalog is reported with its address and without its token."""
    monkeypatch.setattr(served_catalog, "_RETRIES", 0)
    with hold_port() as held:
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        catalog = {"type": "rest", "uri": url, "properties": {"token": "hidden"}}
        settings = Settings.model_validate(_settings(tmp_path, "nobody:1", iceberg_catalog=catalog))
        asked = [one for one in questions(settings, lambda: None) if one.subject == "tables.iceberg_catalog"]
        (answer,) = answers(asked)
    assert "WRONG" == answer.state
    assert answer.text.startswith(
        f"a request to the Iceberg catalog ({url}) failed: ConnectionError: HTTPConnectionPool(host='127"
    )
    assert "hidden" not in answer.text


def test_settings_alone(asked: Asked) -> None:
    """Without `--connect`, no server is contacted. A mistake is reported as in every command."""
    settings = _settings(asked.folder, "nobody:1")
    code, lines, _ = asked(settings)
    assert (0, {"settings"}) == (code, lines.keys())
    code, lines, said = asked({**settings, "chekpoint": "c"})
    assert (2, {}) == (code, lines)
    assert "checkpoint" in said


def test_all_is_well(asked: Asked, broker: Broker) -> None:
    """All answers are good, before and after the first run."""
    topic = "checked.well"
    _create(broker, topic, 3)
    _create(broker, f"{topic}.schemas", 1)
    settings = _settings(asked.folder, broker.bootstrap, topic)
    code, lines, said = asked(settings, "--connect")
    assert (0, "") == (code, said)
    assert all(line.startswith("ok ") for line in lines.values())
    assert "does not exist yet but can be created" in lines["checkpoint"]
    assert "3 partition(s)" in lines[f"topic {topic}"]
    _written(asked.folder)
    code, lines, _ = asked(settings, "--connect")
    assert 0 == code
    assert "1 of this pipeline" in lines["tables"]
    assert "is writable" in lines["tables.warehouse"]
    assert [] == list((asked.folder / "warehouse").glob("_cdc_check*"))


MISSED = {
    "topic cdc.canonical": "brokers",
    "topic cdc.canonical.schemas": "brokers",
    "patterns": "topic cdc.canonical.schemas",
}
"""The checks that are skipped without a broker, and what each depends on."""


def test_everything_is_wrong(asked: Asked) -> None:
    """Each question has an answer with advice, including the last one. Without a broker, its questions are skipped."""
    _written(asked.folder)
    (asked.folder / "checkpoint").write_text("a file where a folder is to be")
    with hold_port() as port:
        bootstrap = f"127.0.0.1:{port.getsockname()[1]}"
        settings = _settings(asked.folder, bootstrap, modes={NAME: "history"})
        settings["spark"] = {"jars": ["/nowhere/*.jar"]}
        code, lines, said = asked(settings, "--connect")
    assert 1 == code
    assert "6 of 9 checks failed" in said
    wrong = {subject: line for subject, line in lines.items() if line.startswith("WRONG")}
    assert ["brokers", *MISSED, "checkpoint", "tables"] == list(wrong)
    assert "no broker responded within 5 s" in wrong["brokers"]
    for subject, needs in MISSED.items():
        assert wrong[subject].endswith(f"not checked because it depends on a failed check: {needs}")
    assert "check the folder" in wrong["checkpoint"]
    assert "tables do not match the configuration" in wrong["tables"]


def test_topics_that_are_not_right(asked: Asked, broker: Broker) -> None:
    """A missing topic and a schemas topic with several partitions are reported."""
    _create(broker, "checked.two.schemas", 2)
    code, lines, _ = asked(_settings(asked.folder, broker.bootstrap, "checked.two"), "--connect")
    assert 1 == code
    assert "the topic does not exist or is not visible" in lines["topic checked.two"]
    assert "it has 2 partitions" in lines["topic checked.two.schemas"]


def test_patterns(asked: Asked, broker: Broker) -> None:
    """Patterns are compared with the announced tables. One that matches none is a note, and the check passes."""
    topic = "checked.patterns"
    _create(broker, topic, 1)
    _create(broker, f"{topic}.schemas", 1)
    settings = _settings(asked.folder, broker.bootstrap, topic, name="{db}.{table}", modes={"sales.ordrs": "history"})
    code, lines, _ = asked(settings, "--connect")
    assert (0, "ok patterns: no table has been announced yet") == (code, lines["patterns"])
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(f"{topic}.schemas", announced(schema_of({"id": "int64"})))
    assert 0 == producer.flush(180)
    code, lines, _ = asked(settings, "--connect")
    said = "note patterns: no table matches tables.modes: sales.ordrs; check the spelling"
    assert (0, said) == (code, lines["patterns"])
    settings["tables"]["modes"] = {"sales.orders": "history"}
    code, lines, _ = asked(settings, "--connect")
    assert (0, "ok patterns: 1 table announced, and every pattern matches at least one") == (code, lines["patterns"])


def test_contracts(tmp_path: Path) -> None:
    """The contracts are read as `run` reads them. Without the setting, nothing is asked about them."""
    document = _settings(tmp_path, "127.0.0.1:1", contract=str(tmp_path / "contracts"))
    settings = Settings.model_validate(document)

    def asked_for_contracts() -> list[Question]:
        return [one for one in questions(settings, lambda: None) if one.subject == "contracts"]

    (tmp_path / "contracts").mkdir()
    (answer,) = answers(asked_for_contracts())
    assert ("WRONG", True) == (answer.state, "contains no contracts" in answer.text)
    (tmp_path / "contracts" / "orders.yaml").write_text(contract_document(schema_of({"id": "int64"})))
    assert [("contracts", "ok", "1 read")] == list(answers(asked_for_contracts()))
    settings = Settings.model_validate(_settings(tmp_path, "127.0.0.1:1"))
    assert [] == asked_for_contracts()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConfigError("what, and what to do"), "what, and what to do"),
        (PermissionError(13, "denied", "/lake"), "PermissionError: [Errno 13] denied: '/lake'; do this"),
        (KafkaException(KafkaError(KafkaError._TRANSPORT, "away")), "away; do this"),
        (ValueError("one line\nand another"), "ValueError: one line; do this"),
        (
            OSError("S3 error\n  \x1b[31m↳\x1b[0m GET http://store/lake\n   \x1b[31m↳\x1b[0m no route\n"),
            "OSError: S3 error: no route; do this",
        ),
        (
            OSError(
                "S3 error\n  ↳ 403 Forbidden\n   ↳ <?xml?>\n<Error><Code>Refused</Code><Message>Not you.</Message>"
                "<AWSAccessKeyId>our key</AWSAccessKeyId></Error>\n"
            ),
            "OSError: S3 error: Refused: Not you; do this",
        ),
    ],
)
def test_foreign_errors_are_answers(error: Exception, told: str) -> None:
    """Errors of libraries become answers with advice, and the next question is asked."""

    def fail() -> str:
        raise error

    first, second = answers([Question("a", fail, "do this"), Question("b", lambda: "fine", "")])
    assert ("a", "WRONG", told) == first
    assert ("b", "ok", "fine") == second


def test_java() -> None:
    """A JVM starts with the configured jars and ends. Missing jars are reported."""
    spark_session.check_java(Spark(jars=tuple(map(str, spark_jars()))), {}, iceberg=True)
    with pytest.raises(ConfigError, match="no file matches"):
        spark_session.check_java(Spark(jars=("/nowhere/*.jar",)), {})


def _create(broker: Broker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(30)
    # It is created before the broker that is asked next knows about it.
    known = admin.list_topics
    wait_until(f"{topic} is known", 180, lambda: partitions == len(known(topic, timeout=30).topics[topic].partitions))


def _written(folder: Path) -> None:
    """Write one table with the pipeline."""
    warehouse = str(folder / "warehouse")
    shape = TableShape(TableId("s", "d", None, "t"), (TableColumn("id", "bigint"),), ("id",))
    local_ddl(warehouse).create(NAME, shape)
    control = ControlTables(warehouse, "p", "one", "cdc.canonical")
    control.create()
    control.batches.write(0, [msgspec.structs.replace(report(NAME), version=0)])
