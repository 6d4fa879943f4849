"""The results of verifications."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from spark_sink.control_tables.verified import Standing, Verification, VerifiedTable


def _at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def _result(day: int, *, differing: int | None = 0, table: str = "a", against: str = "topic") -> Verification:
    return Verification(table, against, _at(day), day, _at(day) if differing == 0 else None, 5, differing, 0)


def test_the_last_results(tmp_path: Path) -> None:
    table = VerifiedTable(str(tmp_path), "test")
    assert [] == table.standings()
    good, bad, unclear = _result(1), _result(2, differing=3), _result(3, differing=None)
    others = _result(1, table="b"), _result(1, against="database:shop", differing=1)
    for result in (bad, good, unclear, *others, _result(1, against="file"), _result(1, against="table:b")):
        table.write(result)
    VerifiedTable(str(tmp_path), "other").write(_result(9))
    assert table.standings() == [
        Standing(others[1], None, others[1]),
        Standing(unclear, good, bad),
        Standing(others[0], others[0], others[0]),
    ]


def test_results_are_forgotten(tmp_path: Path) -> None:
    """Only those of the table, of the source if one is named, and of this pipeline."""
    table, other = VerifiedTable(str(tmp_path), "test"), VerifiedTable(str(tmp_path), "other")
    assert 0 == table.forget("it's", None)
    kept = [_result(1, table="b"), _result(1, table="it's", against="database:shop")]
    for result in (*kept, _result(1, table="it's"), _result(2, table="it's", differing=1)):
        table.write(result)
    other.write(_result(1, table="it's"))
    assert 2 == table.forget("it's", "topic")
    assert kept == [standing.last for standing in table.standings()]
    assert 1 == table.forget("it's", None)
    assert kept[:1] == [standing.last for standing in table.standings()]
    assert 1 == len(other.standings())


def test_old_results_are_deleted(tmp_path: Path) -> None:
    """The results that show the state of a table stay."""
    table = VerifiedTable(str(tmp_path), "test")
    for day in range(1, 20):
        table.write(_result(day, differing=int(day > 5)))
    table.write(_result(1, table="b"))
    before = table.standings()
    assert 8 == table.forget_before(_at(10).timestamp())
    assert table.standings() == before
    assert 0 == table.forget_before(_at(10).timestamp())
    assert 12 == len(table.read(["at"]))
