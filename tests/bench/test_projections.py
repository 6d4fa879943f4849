"""The benchmark of projections writes every form, and the native path handles the ones it claims to."""

from bench.steps.projections import projections, report


def test_projections() -> None:
    """The benchmark prints a line for each projection. A rejected message would stop it."""
    lines = [[cell.strip() for cell in line.split("|")[1:4]] for line in report(200, 1).splitlines()[2:]]
    assert [*projections()] == [name for name, _, _ in lines]
    assert {"debezium_avro", "upsert, key: columns"} <= {name for name, _, way in lines if way == "plain"}
