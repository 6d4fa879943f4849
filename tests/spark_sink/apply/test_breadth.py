"""Many tables in one lake, created in one batch and idle in the next ones."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import msgspec
import pytest
from deltalake.exceptions import DeltaError
from pyiceberg.exceptions import ValidationError
from pyiceberg.table import Table

from cdc_core.envelope import ChangeEvent
from spark_sink.schema.table_spec import Format
from spark_sink.tables.iceberg.served_catalog import ServedCatalog
from tests.spark_sink.changes import change, schema_of
from tests.spark_sink.lake import Lake

# Spark creates and writes each Iceberg table.
COUNTS = {Format.DELTA: 25, Format.ICEBERG: 8}


def test_many_tables_in_one_batch(lake_of_format: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown tables are created and filled in one batch. The next batch writes to one of them and opens no other.

    `BREADTH=1000` in the environment creates as many as the page says. It prints the time, and compares the time of a
    batch for one table with that in a lake without other tables.
    """
    lake = lake_of_format
    count = int(os.environ.get("BREADTH", COUNTS[lake.tables.format(_name(0))]))
    _announce(lake, count)
    started = time.perf_counter()
    reports = lake.apply(0, [_event("c", number, id) for number in range(count) for id in (1, 2)])
    seconds = time.perf_counter() - started
    assert [1] * count == [report.counters.commits for report in reports]
    for number in range(count):
        assert [1, 2] == [row["id"] for row in lake.rows(_name(number))]
    if "BREADTH" in os.environ:
        print(f"\n{count} tables in one batch: {seconds:.1f} s, {1000 * seconds / count:.0f} ms a table; {_memory()}")
        _idle(lake, count, lake.beside(tmp_path / "one table"))
    if lake.catalog is None:
        for number in range(1, count):
            _break(lake, number)
    else:
        _refuse_all_but(_name(0), monkeypatch)
    (report,) = lake.apply(1000, [_event("d", 0, 1, pos=1000)])
    assert (_name(0), 1) == (report.table, report.counters.commits)


def _idle(many: Lake, of: int, one: Lake) -> None:
    """Print the time of a batch for one table in each of the two lakes, which alternate."""
    _announce(one, 1)
    one.apply(0, [_event("c", 0, id) for id in (1, 2)])
    seconds: dict[int, list[float]] = {of: [], 1: []}
    for batch in range(1, 31):
        for count, lake in ((of, many), (1, one)):
            started = time.perf_counter()
            lake.apply(batch, [_event("c", 0, 10 + batch)])
            seconds[count].append(time.perf_counter() - started)
    for count, taken in seconds.items():
        print(f"a batch for one of {count} tables: median {1000 * median(taken):.0f} ms, least {1000 * min(taken):.0f}")
    print(f"least and greatest ratio of two in a row: {_ratios(seconds[of], seconds[1])}")


def _ratios(first: list[float], second: list[float]) -> str:
    ratios = sorted(a / b for a, b in zip(first, second, strict=True))
    return f"{ratios[0]:.2f} to {ratios[-1]:.2f}, median {median(ratios):.2f}"


def _break(lake: Lake, number: int) -> None:
    """Break the table, so that opening it fails."""
    delta = lake.tables.format(_name(number)) is Format.DELTA
    pattern, error = ("_delta_log/*1.json", DeltaError) if delta else ("metadata/v2.metadata.json", ValidationError)
    (newest,) = Path(lake.path(_name(number))).glob(pattern)
    newest.write_text("no log")
    with pytest.raises(error):
        lake.tables.open(_name(number))


def _refuse_all_but(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the metadata of a catalog's other tables unreachable."""
    load = ServedCatalog.load

    def refuse(catalog: ServedCatalog, asked: str) -> Table | None:
        assert name == asked
        return load(catalog, asked)

    monkeypatch.setattr(ServedCatalog, "load", refuse)


def _announce(lake: Lake, count: int) -> None:
    for number in range(count):
        lake.announce(schema_of({"id": "int64", "a": "string"}, table=f"case{number}"))


def _event(op: str, number: int, id: int, *, pos: int | None = None) -> ChangeEvent:
    image = {"a": "x"} if op == "c" else None
    return msgspec.structs.replace(change(op, {"id": id}, image, pos=pos or id), table=f"case{number}")


def _name(number: int) -> str:
    return f"shop_sales.case{number}"


def _memory() -> str:
    """Return the peak memory of this process and its children: the JVM and the Python workers."""
    told = [_status(file) for file in Path("/proc").glob("[0-9]*/status")]
    parents = {status["Pid"]: status["PPid"] for status in told if status}
    peaks: dict[str, int] = {}
    for status in told:
        if "VmHWM" in status and str(os.getpid()) in _above(status["Pid"], parents):
            peaks[status["Name"]] = peaks.get(status["Name"], 0) + int(status["VmHWM"].split()[0]) // 1024
    return "peak memory: " + ", ".join(f"{name} {peak} MiB" for name, peak in sorted(peaks.items()))


def _above(pid: str, parents: dict[str, str]) -> list[str]:
    """Return the process and its child processes."""
    return [pid, *_above(parents[pid], parents)] if pid in parents else [pid]


def _status(file: Path) -> dict[str, str]:
    try:
        return dict(line.split(":\t", 1) for line in file.read_text().splitlines() if ":\t" in line)
    except OSError:  # it has ended
        return {}
