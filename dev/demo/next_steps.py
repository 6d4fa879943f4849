"""Suggest what to do after the demo. The commands contain the values of this run and are ready to paste."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

_QUERY = """\
import duckdb; from deltalake import DeltaTable; \
orders = DeltaTable("{path}").to_pyarrow_table(); \
print(duckdb.sql("SELECT * EXCLUDE (_cdc_scope, _cdc_pos, _cdc_state, _cdc_incomplete) \
FROM orders ORDER BY _cdc_updated_at DESC LIMIT 5"))"""


class PastedCommand(NamedTuple):
    """A shell command, and a description of its output."""

    shows: str
    command: str


def broker_again(port: int, directory: Path) -> PastedCommand:
    """Return the command that restarts a run's broker with all of its data."""
    command = _line("python", "-m", "dev.servers.broker", "--port", port, "--directory", _short(directory))
    return PastedCommand(
        "the broker with all of its data, until Ctrl-C; run the commands below in another terminal", command
    )


def asking_the_broker(directory: Path, topic: str, partition: int, offset: int, table: str) -> list[PastedCommand]:
    """Return the steps that need the broker.

    Args:
        directory: the stack's directory.
        topic: the topic of a raw message.
        partition: the partition of the message.
        offset: the offset of the message.
        table: a mirror's name in the lakehouse.
    """
    config, of_sink = (("-c", _short(directory / name)) for name in ("translator.yaml", "sink.yaml"))
    return [
        PastedCommand(
            "a table, compared with the canonical topic cell by cell", _line("spark-sink", "verify", table, *of_sink)
        ),
        PastedCommand(
            "the outcome of every raw record, determined from the topics", _line("translator", "audit", *config)
        ),
        PastedCommand("the dead letters, by reason", _line("translator", "dlq", "ls", *config)),
        PastedCommand(
            "how the translator reads a raw message, with its events",
            _line("translator", "explain", *config, topic, partition, offset, "--values"),
        ),
    ]


def asking_the_lakehouse(directory: Path, table: str) -> list[PastedCommand]:
    """Return the steps that only read tables.

    Args:
        table: a mirror's name in the lakehouse.
    """
    config = ("-c", _short(directory / "sink.yaml"))
    path = _short(directory.joinpath("warehouse", *table.split(".")))
    return [
        PastedCommand("the tables, with the reason why one is parked", _line("spark-sink", "status", *config)),
        PastedCommand(
            "the most recently written rows of a table, with their commit times",
            _line("python", "-c", _QUERY.format(path=path)),
        ),
        PastedCommand(
            "a view of a table for your own DuckDB", _line("spark-sink", "view", table, *config, "--for", "duckdb")
        ),
    ]


def _line(program: str, *words: object) -> str:
    """Return a shell command for the program installed next to this Python."""
    return shlex.join([str(_short(Path(sys.executable).with_name(program))), *map(str, words)])


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
