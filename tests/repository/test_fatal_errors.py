"""Below the pipeline and the applier, nothing derived from a message may raise an error that ends a process.

Every place there that raises a fatal or configuration error, or that asserts, is listed with the reason why a message
does not lead to it, or with the test that drives it with a hostile message. A new place needs an entry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = {
    "translator": ("translation", "resolution", "dialects", "codecs", "values", "state"),
    "spark_sink": ("apply", "events", "schema", "tables", "model"),
}
FILES = (
    *(
        "translator/service/pipeline.py",
        "translator/service/settled_messages.py",
        "translator/service/metadata_wait.py",
    ),
    *("translator/service/schema_announcements.py", "translator/service/message_context.py"),
)
ENDING = frozenset(
    {
        "FatalError",
        "ConfigError",
        "ContradictionError",
        "Overtaken",
        "AssertionError",
        "NotImplementedError",
        "SystemExit",
    }
)

CONFIGURATION = "raised while the configuration is read, before any message"
OWN_TOPIC = "about a record that the translator itself wrote to a compacted topic"
BROKER = "the brokers or the registry do not answer, or reject this client"
STORAGE = "about the storage, a catalog or another program's writes; a fault of one table parks it (table_errors)"
COMMAND = "raised for an operator's command"
PROGRAM = "only an error of this program leads there; in the applier it parks the table (table_errors)"
ABSTRACT = "replaced in every subclass"

PLACES: dict[str, str] = {
    "translator/translation/table_masks.py": CONFIGURATION,
    "translator/translation/mask_values.py": CONFIGURATION,
    "translator/translation/masking.py": CONFIGURATION,
    "translator/translation/source_order.py": CONFIGURATION,
    "translator/translation/partition_guards.py:_tell": (
        "tests/translator/service/test_stopped_partition.py::test_a_contradiction_stops_its_source_only"
    ),
    "translator/dialects/__init__.py": CONFIGURATION,
    "translator/dialects/_declared_tables.py": CONFIGURATION,
    "translator/dialects/_installed.py": CONFIGURATION,
    "translator/dialects/_contained.py:_built": CONFIGURATION,
    "translator/dialects/_contained.py:_check_built": CONFIGURATION,
    "translator/dialects/_masked_statement.py": "for masked copies, whose caller leaves a record out on any error",
    "translator/dialects/dts_avro/decode.py:learn": OWN_TOPIC,
    "translator/dialects/shareplex/decode.py:learn": OWN_TOPIC,
    "translator/dialects/canal/decode.py:learn": OWN_TOPIC,
    "translator/dialects/qlik/metadata.py:compile_document": OWN_TOPIC,
    "translator/dialects/_topic_patterns.py": CONFIGURATION,
    "translator/resolution/builders.py": CONFIGURATION,
    "translator/dialects/shareplex/options.py": CONFIGURATION,
    "translator/dialects/qlik/sections.py": CONFIGURATION,
    "translator/dialects/canal/options.py": CONFIGURATION,
    "translator/codecs/__init__.py": CONFIGURATION,
    "translator/state/contradiction_marks.py:check": COMMAND,
    "translator/state/state_snapshot.py": COMMAND,
    "spark_sink/events/topic_records.py": COMMAND,
    "spark_sink/apply/mirror.py": PROGRAM,
    "spark_sink/apply/driver.py": PROGRAM,
    "spark_sink/apply/ddl_passes.py": PROGRAM,
    "spark_sink/apply/existing_tables.py": (
        "tests/spark_sink/tables/iceberg/test_iceberg_lake.py::test_a_table_of_the_other_format"
    ),
    "spark_sink/tables/formats.py": (
        "tests/spark_sink/tables/iceberg/test_iceberg_lake.py::test_a_table_of_the_other_format"
    ),
    "spark_sink/events/topic_identity.py": BROKER,
    "spark_sink/events/starting_offsets.py": CONFIGURATION,
    "spark_sink/schema/catalog.py": BROKER,
    "spark_sink/schema/reader_rules.py": COMMAND,
    "spark_sink/schema/business_view.py": COMMAND,
    "spark_sink/tables/mirror_reader.py": ABSTRACT,
    "spark_sink/tables/history_reader.py": ABSTRACT,
    "spark_sink/tables/staging.py": ABSTRACT,
    "spark_sink/tables/delta/erasure.py": COMMAND,
    "spark_sink/tables/iceberg/erasure.py": COMMAND,
    "spark_sink/tables/shadows.py": COMMAND,
    "spark_sink/tables/trial_table.py": COMMAND,
    "spark_sink/tables/iceberg/maintenance.py": COMMAND,
    "spark_sink/tables/iceberg/tables.py": COMMAND,
    "spark_sink/tables/delta/tables.py": COMMAND,
    "spark_sink/tables/iceberg/probe.py": STORAGE,
    "spark_sink/tables/iceberg/served_catalog.py": STORAGE,
    "spark_sink/tables/iceberg/spark.py:_merge_on_read": STORAGE,
    "spark_sink/tables/delta/registration.py": STORAGE,
    "spark_sink/tables/delta/ddl.py": STORAGE,
    "spark_sink/tables/table_properties.py": STORAGE,
    "spark_sink/tables/delta/open_table.py": STORAGE,
    "spark_sink/tables/delta/data_files.py": STORAGE,
    "spark_sink/tables/iceberg/hive_catalog.py": STORAGE,
    "spark_sink/tables/spark_writer.py": STORAGE,
}
"""By file, or by file and function if the file also has places of another kind."""


def places() -> Iterator[tuple[str, str, int]]:
    """Yield the file, the function and the line of every place that can end a process."""
    folders = [ROOT / package / room for package, rooms in ROOMS.items() for room in rooms]
    files = [*(file for folder in folders for file in sorted(folder.rglob("*.py"))), *(ROOT / name for name in FILES)]
    for file in files:
        name = str(file.relative_to(ROOT))
        yield from ((name, *found) for found in _ending(ast.parse(file.read_text(encoding="utf-8")), ""))


def _ending(node: ast.AST, function: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _ending(child, child.name)
            continue
        if _ends(child):
            yield function, child.lineno  # type: ignore[attr-defined]  # it is a statement or a call
        yield from _ending(child, function)


def _ends(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in {"assert_never", *ENDING}
    return isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id in ENDING


FOUND = [*places()]


def test_every_place_has_a_reason() -> None:
    """A place without an entry is new: show that no message leads to it, or handle the message."""
    unknown = {
        f"{file}:{line} ({function})"
        for file, function, line in FOUND
        if file not in PLACES and f"{file}:{function}" not in PLACES
    }
    assert set() == unknown


def test_every_entry_has_a_place() -> None:
    known = {name for file, function, _ in FOUND for name in (file, f"{file}:{function}")}
    assert set() == PLACES.keys() - known


@pytest.mark.parametrize("driven", sorted({reason for reason in PLACES.values() if "::" in reason}))
def test_what_a_message_reaches_is_driven(driven: str) -> None:
    """The test that an entry names exists."""
    file, _, name = driven.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
