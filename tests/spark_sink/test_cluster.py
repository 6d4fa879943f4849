"""The sink on a cluster of several machines, simulated by processes, with a shipped environment and late executors."""

from __future__ import annotations

import signal
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
import yaml

from dev.jars import spark_jars
from dev.servers.broker import Broker
from dev.servers.spark_cluster import SparkCluster, Worker
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.sink_process import PATIENCE_SECONDS, Sink, wait

pytestmark = [pytest.mark.integration, pytest.mark.faults]

ORDERS = schema_of({"id": "int64", "name": "string"})

# What the workers need besides PySpark, which every Spark machine has.
_PACKAGES = Path(pyspark.__file__).parents[1]
_NEEDED = (
    *(
        "annotated_types",
        "arro3",
        "confluent_kafka",
        "cramjam",
        "dateutil",
        "deltalake",
        "fastavro",
        "msgspec",
        "numpy",
    ),
    *("prometheus_client", "pyarrow", "pydantic", "pytz", "rich", "pygments", "structlog", "typing_", "yaml", "six"),
)


@pytest.fixture
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster() as running:
        yield running


def test_a_cluster_that_grows(broker: Broker, cluster: SparkCluster, tmp_path: Path) -> None:
    """The workers use the Python of an archive that Spark distributes, and a machine that joins later works too."""
    sink = Sink(broker, tmp_path, "cluster")
    first = cluster.add_worker()
    _send(sink, range(10))
    archive = _environment(tmp_path)
    _settings(sink, cluster, python="./env/bin/python", archives=[f"{archive}#env"])
    process = sink.start()
    wait(lambda: len(sink.rows()) == 10, process)
    assert "./env/bin/python" in _programs(first)
    second = cluster.add_worker(cores=2)
    batches = iter(range(1, 1000))

    def used() -> bool:
        number = next(batches)
        _send(sink, range(10 * number, 10 * (number + 1)))
        wait(lambda: len(sink.rows()) == 10 * (number + 1), process)
        return "./env/bin/python" in _programs(second)

    wait(used, process)
    told = [line for line in sink.log() if line["event"] == "cores added"]
    # Spark counts one core as two.
    assert [(2, 3)] == [(line["from"], line["to"]) for line in told]
    process.send_signal(signal.SIGTERM)
    assert 0 == process.wait(PATIENCE_SECONDS), sink.text()[-3000:]


def _settings(sink: Sink, cluster: SparkCluster, **spark: object) -> None:
    settings = yaml.safe_load(sink.config.read_text())
    settings["spark"] |= {"master": cluster.url, "jars": [str(jar) for jar in spark_jars()], **spark}
    settings["spark"]["conf"] |= {"spark.executor.memory": "512m"}
    sink.config.write_text(yaml.safe_dump(settings))


def _send(sink: Sink, ids: range) -> None:
    sink.send([ORDERS], [change("c", {"id": n}, {"name": f"row {n}"}, pos=n, schema=ORDERS) for n in ids])


def _environment(folder: Path) -> Path:
    """Return an archive of an environment as venv-pack makes it: packages, and a link to the machine's Python."""
    archive = folder / "environment.tar.gz"
    home = folder / "env"
    (home / "bin").mkdir(parents=True)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    (home / "bin" / "python").symlink_to(base)
    (home / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    inside = f"lib/python3.{sys.version_info.minor}/site-packages"
    with tarfile.open(archive, "w:gz", compresslevel=0) as packed:
        for name in ("bin", "pyvenv.cfg"):
            packed.add(home / name, name)
        for package in _PACKAGES.iterdir():
            if package.name.startswith(_NEEDED):
                packed.add(package, f"{inside}/{package.name}")
        for ours in ("spark_sink", "cdc_core"):
            packed.add(Path(__file__).parents[2] / ours, f"{inside}/{ours}")
    return archive


def _programs(worker: Worker) -> set[str]:
    """Return the command lines of its processes."""
    found = set()
    for pid in worker.processes():
        try:
            found.add(Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0])
        except OSError:
            continue
    return found
