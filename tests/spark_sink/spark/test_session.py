"""Starting Java: with the jars that Spark lacks, ignoring SIGTERM, and ending with the sink."""

from __future__ import annotations

import io
import ipaddress
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dev.servers.broker import Broker
from spark_sink.spark.session import sibling
from tests.spark_sink.sink_process import PATIENCE_SECONDS, Sink

pytestmark = pytest.mark.integration

_STARTED = """
import sys, time
from pyspark import SparkContext
from spark_sink.spark import session as spark_session
spark_session._start_java({"spark.master": "local[1]"})
print(SparkContext._gateway.proc.pid, flush=True)
sys.stdin.readline()
print(SparkContext._jvm.java.lang.System.getProperty("java.version"), flush=True)
sys.stdin.readline()
"""


def test_java_is_deaf_to_sigterm_and_dies_with_us() -> None:
    """Java ignores a SIGTERM to all processes, for the sake of the current batch, and ends with the sink."""
    pipe = subprocess.PIPE
    sink = subprocess.Popen([sys.executable, "-c", _STARTED], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    assert sink.stdin is not None
    assert sink.stdout is not None
    with sink:
        java = int(sink.stdout.readline())
        os.kill(java, signal.SIGTERM)
        sink.stdin.write(b"\n")
        sink.stdin.flush()
        assert sink.stdout.readline()  # it still responds
        sink.kill()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _is_there(java):
        assert time.monotonic() < deadline, "Java goes on"
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_spark_starts(number: int) -> None:
    """No batch is running, so the exit code is 0, without a stack trace."""
    waits = "import time; from spark_sink import signals; signals.end_at_once(); print(flush=True); time.sleep(600)"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", waits], stdout=pipe, stderr=pipe) as starting:
        assert starting.stdout is not None
        starting.stdout.readline()
        starting.send_signal(number)
        assert (b"", b"") == starting.communicate(timeout=PATIENCE_SECONDS)
    assert 0 == starting.returncode


def _is_there(pid: int) -> bool:
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(told.strip()) and not told.startswith("Z")


def test_without_jars(broker: Broker, tmp_path: Path) -> None:
    """The output is one line with what is missing and what to do, exit code 2, and nothing from Java."""
    sink = Sink(broker, tmp_path, "sink-without-jars")
    sink.settings["tables"]["formats"] = {"*": "iceberg"}
    sink.write_config()
    (tmp_path / "conf").mkdir()
    command = [sys.executable, "-m", "spark_sink", "run", "-c", str(sink.config)]
    environment = {**sink.environment(), "SPARK_CONF_DIR": str(tmp_path / "conf")}  # not the checkout's default
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, env=environment
    )
    assert 2 == ended.returncode
    said = ended.stderr.splitlines()
    assert said[-1].startswith(
        "spark-sink: Spark has no jars for: Delta Lake, Spark's Kafka source, Spark's Avro functions, Iceberg"
    )
    assert "`make setup`" in said[-1]
    assert not [line for line in said if "Exception" in line or line.startswith(("\tat ", "Traceback"))]


def test_without_java(tmp_path: Path) -> None:
    """The same holds for a machine without Java."""
    (tmp_path / "bash").symlink_to("/bin/bash")
    environment = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": ""}
    command = [sys.executable, "-c", "from spark_sink.spark import session; session._start_java({})"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "ConfigError: Java did not start (JAVA_GATEWAY_EXITED)" in ended.stderr.splitlines()[-1]


def test_the_memory_of_workers(spark: SparkSession) -> None:
    """Arrow uses jemalloc, which needs less memory for the fold than its default allocator."""

    def pool(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"pool": [pa.default_memory_pool().backend_name]})

    (found,) = spark.range(1).mapInArrow(pool, "pool string").collect()
    assert found.pool == "jemalloc"


def test_a_statement_that_fails_is_in_no_log(spark: SparkSession) -> None:
    """Its literals can be values of rows. The exception contains it, and the code that catches it decides."""
    logger, told = logging.getLogger("SQLQueryContextLogger"), io.StringIO()
    handler = logging.StreamHandler(told)
    logger.addHandler(handler)
    try:
        with pytest.raises(PySparkException, match="a secret"):
            spark.sql("SELECT CAST('a secret' AS INT)").collect()
    finally:
        logger.removeHandler(handler)
    assert "" == told.getvalue()


def test_no_checksum_files(spark: SparkSession, tmp_path: Path) -> None:
    """A file on a local disk has no checksum file. Other programs that delete the file would leave it behind."""
    spark.range(1).write.parquet(str(tmp_path / "t"))
    written = [path.name for path in (tmp_path / "t").iterdir()]
    assert "_SUCCESS" in written
    assert [] == [name for name in written if name.endswith(".crc")]


def test_credentials_of_catalogs_are_not_shown(spark: SparkSession) -> None:
    """A session gets credentials as settings, which Spark stores with each statement for its web page and event log."""
    told = {f"spark.sql.catalog.x.{name}": f"hidden-{name}" for name in ("credential", "token", "jdbc.password")}
    session = sibling(spark, {**told, "spark.sql.catalog.x.header.Authorization": "hidden-header"})
    session.sql("SELECT 'of this test'").collect()
    java: Any = session._jsparkSession.sharedState().statusStore().executionsList()
    settings = [java.apply(number).modifiedConfigs().toString() for number in range(java.size())]
    assert any("spark.sql.catalog.x.credential -> *" in one for one in settings)
    assert not any("hidden-" in one for one in settings)


def test_no_port_is_open_to_others(spark: SparkSession) -> None:
    """Without executors on other machines, Spark only listens on this machine, and has no web UI."""
    gateway: Any = spark.sparkContext._gateway
    addresses = _listening(gateway.proc.pid)
    assert addresses
    assert {"127.0.0.1"} == addresses
    assert spark.sparkContext.uiWebUrl is None


def _listening(pid: int) -> set[str]:
    """Return the addresses on which a process listens, from Linux' tables of sockets."""
    own = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in own:
                packed = bytes.fromhex(local.partition(":")[0])
                words = b"".join(packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
                address = ipaddress.ip_address(words)
                mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
                found.add(str(mapped or address))
    return found
