"""Run the whole product on this machine: a translator and a sink, as real processes with a broker and a folder.

The demo and the end-to-end tests use this stack. It can start, kill and query both programs, but does not use their
code.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import yaml
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from prometheus_client.parser import text_string_to_metric_families
from pyiceberg.table import StaticTable

from dev.demo.writers import PARTITIONS, Raw
from dev.jars import spark_jars
from dev.servers.broker import LOOPBACK, hold_port
from dev.servers.small_spark import SMALL_SPARK

CANONICAL = "cdc.canonical"
DEAD_LETTERS = f"{CANONICAL}.dlq"
STOP_SECONDS = 60.0
ANSWER_SECONDS = 120.0  # a timeout that a running broker exceeds only if it hangs

Account = dict[tuple[str, int], Counter[str]]
"""For each raw topic and partition, the number of records per counter: in, translated, dead, skipped and learned."""

_ACCOUNTS = {
    "cdc_records_in": "in",
    "cdc_records_translated": "translated",
    "cdc_records_dead": "dead",
    "cdc_records_skipped": "skipped",
    "cdc_records_learned": "learned",
}

_READER: dict[str, str | int | float | bool] = {
    "group.id": "unused",
    "enable.auto.commit": False,
    # The client reports the end of a partition, because transaction markers can follow the last record. The client
    # cannot report the end while the topic is written continuously.
    "enable.partition.eof": True,
    # The broker should not wait for more records at the end of a partition.
    "fetch.wait.max.ms": 10,
}

_NO_COORDINATOR_YET = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TIMED_OUT,
}


class StackError(Exception):
    """Raised if a part of the stack failed. The message has the path to the log of that part."""


class Stack:
    """One translator and one sink.

    Args:
        sources, projections: the sections with these names in the translator's configuration.
        max_offsets: limit for the sink's micro-batches.
    """

    def __init__(
        self,
        bootstrap: str,
        directory: Path,
        sources: Sequence[Mapping[str, Any]],
        max_offsets: int = 100_000,
        projections: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.warehouse = directory / "warehouse"
        # Without the reservation, another process could take the port before the first start or between two starts.
        self._port = hold_port()
        self.web_port: int = self._port.getsockname()[1]
        self._sources = sources
        self._projections = projections
        self._max_offsets = max_offsets
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        # Without this level, librdkafka would fill the screen if the broker stopped before its clients.
        self._client: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(self._client)
        directory.mkdir(parents=True, exist_ok=True)
        self._write("translator.yaml", self._translator_settings())
        self._write("sink.yaml", self._sink_settings())

    def change(self, program: str, **sections: Any) -> None:
        """Change the configuration of `translator` or `sink`. Settings that a section omits keep their current
        values.
        """
        file = f"{program}.yaml"
        settings = yaml.safe_load((self.directory / file).read_text(encoding="utf-8"))
        for name, values in sections.items():
            settings[name] = {**settings.get(name, {}), **values} if isinstance(values, Mapping) else values
        self._write(file, settings)

    def _write(self, name: str, settings: Mapping[str, Any]) -> None:
        text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
        (self.directory / name).write_text(text, encoding="utf-8")

    def _translator_settings(self) -> dict[str, Any]:
        return {
            "group": "demo",
            "kafka": {"bootstrap_servers": self.bootstrap},
            "output": {"topic": CANONICAL},
            "projections": list(self._projections),
            "topics": {"create": True, "partitions": 4},
            # The session timeout is short, so that the successor to a killed translator does not wait long. The other
            # timeouts are not reached in normal operation.
            "timing": {"session": 6, "rebalance": 45, "delivery": 30, "metadata_wait": 20},
            "web": {"host": LOOPBACK, "port": self.web_port},
            "sources": list(self._sources),
        }

    def _sink_settings(self) -> dict[str, Any]:
        return {
            "pipeline": "demo",
            "kafka": {"bootstrap_servers": self.bootstrap},
            "input": {"topic": CANONICAL},
            "tables": {"warehouse": str(self.warehouse)},
            "checkpoint": str(self.directory / "checkpoint"),
            "batches": {"trigger_seconds": 1, "max_offsets": self._max_offsets},
            "spark": {
                "master": "local[2]",
                "memory": "2g",
                "jars": [str(jar) for jar in spark_jars()],
                "conf": dict(SMALL_SPARK),
            },
        }

    # -- raw topics

    def create_raw_topics(self) -> None:
        """Create the raw topics for all sources."""
        names = [topic for source in self._sources for topic in source["topics"]]
        for future in self._admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
            future.result(30)

    def feed(self, messages: Iterable[Raw]) -> Account:
        """Write messages in order. Return the number of messages per partition, under `in`."""
        producer = Producer(self._client | {"linger.ms": 5, "enable.idempotence": True})
        counts: Account = {}
        for message in messages:
            while True:
                try:
                    producer.produce(message.topic, message.value, message.key, message.partition)
                    break
                except BufferError:
                    producer.poll(0.1)
            counts.setdefault((message.topic, message.partition), Counter())["in"] += 1
        if producer.flush(ANSWER_SECONDS):
            raise StackError(f"the broker did not accept the raw messages within {ANSWER_SECONDS:g} s")
        return counts

    def records(self, topic: str) -> list[Any]:
        """Return all current records of a topic, partition by partition, as a `read_committed` consumer sees them."""
        numbers = self._admin.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions
        reader = Consumer(self._client | _READER)
        ends = {number: _end(reader, TopicPartition(topic, number)) for number in numbers}
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        found: dict[int, list[Any]] = {number: [] for number in numbers}
        unread = {*numbers}
        while unread:
            fetched: list[Any] = reader.consume(
                10_000, 0.05
            )  # these records' offsets are never None, although the types allow it
            for record in fetched:
                number = record.partition()
                if (error := record.error()) is None:
                    if record.offset() >= ends[number] - 1:
                        unread.discard(number)
                    if record.offset() < ends[number]:
                        found[number].append(record)
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(number)
        reader.close()
        return [record for number in numbers for record in found[number]]

    # -- processes

    def start(self, name: str, *arguments: str, program: Path | None = None) -> subprocess.Popen[bytes]:
        """Start `translator` or `spark-sink` with its configuration. The output goes to NAME.log.

        Args:
            program: the program to run in place of the installed one.
        """
        program = program or Path(sys.executable).with_name(name)
        config = {"translator": "translator.yaml", "spark-sink": "sink.yaml"}[name]
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                [program, "run", "-c", self.directory / config, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,  # Ctrl-C is for us; we stop it gracefully, and its children die with it
            )
        self._processes[name] = process
        return process

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def check(self) -> None:
        """Raise StackError if a process that should run has exited."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None:
                raise StackError(f"{name} exited with code {code}{self._tail(name)}")

    def _tail(self, name: str) -> str:
        lines = self.log(name).read_text(errors="replace").splitlines()[-15:]
        return "".join(f"\n  {line[:400]}" for line in lines) + f"\n  (whole log: {self.log(name)})"

    def stop(self, name: str) -> int:
        """Stop a process with SIGTERM, and return its exit code."""
        process = self._processes.pop(name)
        process.terminate()
        return process.wait(STOP_SECONDS)

    def wait(self, name: str, seconds: float) -> int:
        """Wait for a process to exit on its own."""
        code = self._processes[name].wait(seconds)
        del self._processes[name]
        return code

    def pid(self, name: str) -> int:
        """Return the ID of a started process."""
        return self._processes[name].pid

    def kill(self, name: str) -> None:
        """Kill a process and its children, as a power failure would."""
        process = self._processes.pop(name)
        children = descendants(process.pid)
        process.kill()
        for pid in children:
            _kill(pid)
        process.wait(STOP_SECONDS)

    def close(self) -> None:
        """Stop all processes that are still running."""
        for process in self._processes.values():
            process.terminate()
        for name, process in list(self._processes.items()):
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill(name)
        self._processes.clear()
        self._port.close()

    # -- state of the programs

    def account(self) -> Account:
        """Return the running translator's counters from /metrics. If the translator does not respond, the result is
        empty.
        """
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.web_port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return {}
        counts: Account = {}
        for family in text_string_to_metric_families(text):
            word = _ACCOUNTS.get(family.name)
            for sample in family.samples if word else ():
                if sample.name.endswith("_total"):
                    where = (sample.labels["topic"], int(sample.labels["partition"]))
                    counts.setdefault(where, Counter())[str(word)] += int(sample.value)
        return counts

    def committed(self) -> dict[tuple[str, int], int]:
        """Return, for each raw topic and partition, the offset that the translator's group has committed. While the
        broker does not respond, the result is empty.
        """
        topics = [topic for source in self._sources for topic in source["topics"]]
        asked = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
        reader = Consumer(self._client | {"group.id": "demo", "enable.auto.commit": False})
        try:
            answer = reader.committed(asked, timeout=20)
        except KafkaException as error:
            if error.args[0].code() not in _NO_COORDINATOR_YET:
                raise
            return {}
        finally:
            reader.close()
        return {(tp.topic, tp.partition): max(tp.offset, 0) for tp in answer}

    def folder(self, table: str) -> Path:
        """Return a lakehouse table's folder."""
        return self.warehouse.joinpath(*table.split("."))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows in a lakehouse table, without the sink's columns. Until the table exists, the result is
        empty.
        """
        folder = self.folder(table)
        if DeltaTable.is_deltatable(str(folder)):
            return source_rows(DeltaTable(str(folder)).to_pyarrow_table())
        if (folder / "metadata" / "version-hint.text").exists():
            return source_rows(StaticTable.from_metadata(str(folder)).scan().to_arrow())
        return []


def source_rows(table: pyarrow.Table) -> list[dict[str, Any]]:
    """Return a table's rows without the sink's columns."""
    names = [name for name in table.column_names if not name.startswith("_cdc")]
    singles = {field.name for field in table.schema if field.type == pyarrow.float32()}
    return [
        {name: _shortest(cell) if name in singles and cell is not None else cell for name, cell in row.items()}
        for row in table.select(names).to_pylist()
    ]


def _end(reader: Consumer, place: TopicPartition) -> int:
    """Return a partition's end. If a broker has just started with old data, it first has to be elected leader."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return reader.get_watermark_offsets(place, timeout=ANSWER_SECONDS)[1]
        except KafkaException as error:
            if error.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


def wait_until(what: str, seconds: float, ready: Any, stack: Stack | None = None) -> None:
    """Poll `ready()` until it is true.

    Raises:
        StackError: the time is up, or one of the stack's processes has exited.
    """
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if ready():
            return
        if stack is not None:
            stack.check()
        if (now := time.monotonic()) > deadline:
            raise StackError(f"{what}: not within {seconds:g} s")
        time.sleep(max(0.1, now - asked))  # an expensive check should not keep a whole processor busy


def is_ready(port: int) -> bool:
    """Return whether the process on that port reports that it is ready."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/readyz", timeout=5):
            return True
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    """Return the IDs of a process's descendants, from /proc. If /proc does not exist, the result is empty."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found: list[int] = []
    queue = [pid]
    while queue:
        queue += children.get(queue[0], [])
        found += children.get(queue.pop(0), [])
    return found


def _shortest(single: float) -> float:
    """Return a single-precision cell as the shortest decimal that represents it, for example 5.1 instead of
    5.099999904632568.
    """
    return next(short for digits in range(6, 10) if numpy.float32(short := float(f"{single:.{digits}g}")) == single)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def read_record_file(path: Path) -> list[Raw]:
    """Return the messages in a record file, to be fed to the stack."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Raw(line["topic"], line.get("partition", 0), None, line["value"].encode()) for line in lines]
