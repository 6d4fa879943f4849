"""The benchmark of DTS Avro runs: what it measures is translated. What it finds is no matter of a test."""

from bench.steps.dts_avro import COLUMNS, RECORDS_OF, operations, reading


def _first_column(markdown: str) -> list[str]:
    return [line.split(" | ")[0].removeprefix("| ") for line in markdown.splitlines()[2:]]


def test_reading() -> None:
    """A line for each number of columns."""
    assert [str(columns) for columns in COLUMNS] == _first_column(reading(rounds=1, count=20))


def test_operations() -> None:
    """A line for each kind of record; a message that is refused would stop it."""
    assert list(RECORDS_OF) == _first_column(operations(rounds=1, count=20))
