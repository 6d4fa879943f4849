"""One run of the whole workload, which all tests of this folder look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dev.jar_list import JarList
from dev.jars import JarsError
from dev.servers.broker import Broker
from dev.servers.canal import JARS
from dev.servers.mariadb import MISSING, MariaDb, is_installed
from tests.real_canal.comparison import Rows, Table, source_rows, tables_of
from tests.real_canal.pipeline import DEFAULT, HASHED, Pipeline

KEYS = {"keyed.uniques": ("n",)}


@dataclass(frozen=True, repr=False)  # pytest shows the arguments of a failed test, and these have 200 MB
class Run:
    """What is left of a run.

    Args:
        rows: the rows of each table at the source, by name.
        raw: the messages of each raw topic, with their partitions.
        counts: raw records per outcome, by tier.
        taken: records that the native path translated, by tier.
        canonical: the records of each tier's canonical topic: key, value and headers.
        warehouses, logs: the warehouse and the log of each tier's sink.
    """

    tables: Mapping[str, Table]
    rows: Mapping[str, Rows]
    raw: Mapping[str, Sequence[tuple[int, dict[str, Any]]]]
    counts: Mapping[str, Counter[str]]
    taken: Mapping[str, int]
    canonical: Mapping[str, Sequence[tuple[Any, bytes, Any]]]
    warehouses: Mapping[str, Path]
    logs: Mapping[str, str]


@pytest.fixture(scope="session")
def tools() -> None:
    """Canal and a database, or skip the tests."""
    need("a real Canal", JARS)


def need(what: str, jars: JarList) -> None:
    """Skip the tests if the database is not installed, or if the jars cannot be downloaded."""
    if not is_installed():
        pytest.skip(f"{what} on a real database: {MISSING}")
    try:
        jars.folder()
    except JarsError as error:
        pytest.skip(f"{what} on a real database: {error}")


@pytest.fixture(scope="session")
def run(tools: None, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The result of the workload. Canal is restarted once, killed once, and loses its database once."""
    with MariaDb() as database:
        pipeline = Pipeline(broker, database, tmp_path_factory.mktemp("real_canal"))
        try:
            return _result(pipeline)
        finally:
            pipeline.close()


def _result(pipeline: Pipeline) -> Run:
    pipeline.start_translators()
    _work(pipeline)
    counts = pipeline.count_outcomes()
    taken = {tier.name: tier.taken() for tier in pipeline.tiers}
    pipeline.stop_translators()
    pipeline.write_tables()
    tables = {table.name: table for table in tables_of(pipeline.database, KEYS)}
    return Run(
        tables,
        {name: source_rows(pipeline.database, table) for name, table in tables.items()},
        {topic: pipeline.raw(topic) for topic in (DEFAULT, HASHED)},
        counts,
        taken,
        {tier.name: tier.records() for tier in pipeline.tiers},
        {tier.name: tier.stack.warehouse for tier in pipeline.tiers},
        {tier.name: tier.stack.log("spark-sink").read_text(encoding="utf-8") for tier in pipeline.tiers},
    )


def _work(pipeline: Pipeline) -> None:
    database = pipeline.database
    with pipeline.canal as canal:
        pipeline.execute(1)
        canal.stop()
        canal.start()
        pipeline.execute(2)
        canal.kill()
        canal.start()
        pipeline.wait_for_mark()
        database.stop()
        database.start()
        pipeline.execute(3)
