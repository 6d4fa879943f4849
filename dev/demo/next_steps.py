"""What to look at after the demo: commands with the values of this showing, which run as they are pasted."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

_QUERY = """\
import duckdb; from deltalake import DeltaTable; \
orders = DeltaTable("{path}").to_pyarrow_table(); \
print(duckdb.sql("SELECT * EXCLUDE (_cdc_scope, _cdc_pos, _cdc_state, _cdc_incomplete, _cdc_deleted_at) \
FROM orders WHERE _cdc_deleted_at IS NULL ORDER BY _cdc_updated_at DESC LIMIT 5"))"""


class PastedCommand(NamedTuple):
    """A command of the shell, and what it shows."""

    shows: str
    command: str


def broker_again(port: int, directory: Path) -> PastedCommand:
    """Return what brings the broker of a showing back, with all that it held."""
    command = _line("python", "-m", "dev.servers.broker", "--port", port, "--directory", _short(directory))
    return PastedCommand(
        "the broker again, with all that it holds, until Ctrl-C; what asks it runs in another terminal", command
    )


def asking_the_broker(directory: Path, topic: str, partition: int, offset: int) -> list[PastedCommand]:
    """The steps for which the broker runs.

    Args:
        directory: of the stack.
        topic, partition, offset: a raw message.
    """
    config = ("-c", _short(directory / "translator.yaml"))
    return [
        PastedCommand(
            "what became of every raw record, by the topics themselves", _line("translator", "audit", *config)
        ),
        PastedCommand("the dead letters, by reason", _line("translator", "dlq", "ls", *config)),
        PastedCommand(
            "how one raw message is read, and its events",
            _line("translator", "explain", *config, topic, partition, offset, "--values"),
        ),
    ]


def asking_the_lakehouse(directory: Path, table: str) -> list[PastedCommand]:
    """The steps that only read tables.

    Args:
        table: a mirror, by its name in the lakehouse.
    """
    config = ("-c", _short(directory / "sink.yaml"))
    path = _short(directory.joinpath("warehouse", *table.split(".")))
    return [
        PastedCommand("the tables, and why one is parked", _line("spark-sink", "status", *config)),
        PastedCommand(
            "the rows of a table that were written last, with the times of their commits",
            _line("python", "-c", _QUERY.format(path=path)),
        ),
        PastedCommand(
            "the view of it for your own DuckDB", _line("spark-sink", "view", table, *config, "--for", "duckdb")
        ),
    ]


def _line(program: str, *words: object) -> str:
    """A line of the shell; the program is the one that is installed beside this Python."""
    return shlex.join([str(_short(Path(sys.executable).with_name(program))), *map(str, words)])


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
