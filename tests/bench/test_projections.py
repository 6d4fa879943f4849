"""The benchmark of projections: every form is written, and the native path takes what it says."""

from bench.steps.projections import projections, report


def test_projections() -> None:
    """A line for each; a message that is refused would stop it."""
    lines = [[cell.strip() for cell in line.split("|")[1:4]] for line in report(200, 1).splitlines()[2:]]
    assert [*projections()] == [name for name, _, _ in lines]
    assert {"debezium_avro", "upsert, key: columns"} <= {name for name, _, way in lines if way == "plain"}
