"""The DTS Avro benchmark runs and translates what it measures. The tests do not check its figures."""

from bench.steps.dts_avro import COLUMNS, RECORDS_OF, operations, reading


def _first_column(markdown: str) -> list[str]:
    return [line.split(" | ")[0].removeprefix("| ") for line in markdown.splitlines()[2:]]


def test_reading() -> None:
    """The benchmark prints a line for each number of columns."""
    assert [str(columns) for columns in COLUMNS] == _first_column(reading(rounds=1, count=20))


def test_operations() -> None:
    """The benchmark prints a line for each kind of record. A rejected message would stop it."""
    assert list(RECORDS_OF) == _first_column(operations(rounds=1, count=20))
