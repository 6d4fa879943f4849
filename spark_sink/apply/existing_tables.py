"""Compare existing tables with the configuration. A table never changes its mode or its format."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

from spark_sink.config.table_rules import TableRules
from spark_sink.errors import ConfigError, Reason, Refused
from spark_sink.events.shared_tables import SEVERAL
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import TableSpec, match_rule
from spark_sink.tables.changes import LastSeen
from spark_sink.tables.protocols import OpenTable

# Most of the time that it takes to open a table is spent waiting for storage.
_THREADS = 16


def _rebuilt(name: str) -> str:
    return (
        f"run `spark-sink rebuild {shlex.quote(name)}` and start the sink, which then rereads the topic for this table"
    )


def copy_refusal(name: str) -> str:
    """Return the reason why events and commands do not change a copy."""
    return (
        f"the table {name} is a copy that `spark-sink rebuild --into` wrote, so it lacks all later events; to write "
        f"events to it, run `spark-sink rebuild {shlex.quote(name)}`, and otherwise use another name"
    )


# Someone else changed the table. When an operator resumes it, the sink continues from its current state.
CHANGED_BY_OTHERS = frozenset({Reason.TABLE_SET_BACK, Reason.TABLE_GONE})


class Shapes(Protocol):
    """Looks up the shapes of tables in a warehouse."""

    def shape(self, name: str) -> TableShape | None:
        """Return a table's shape, or None if the table does not exist.

        Raises:
            Refused: the table is not one of the sink's tables.
            ConfigError: the table's format differs from the configuration.
        """

    def check_storage(self, name: str) -> None:
        """Make sure that the storage and this table's catalog respond."""


def check_tables(names: Iterable[str], tables: Shapes, rules: TableRules) -> dict[str, TableShape]:
    """Before a pipeline's query starts, check all tables that the pipeline has written. Return the shapes of those that
    could be read.

    Raises:
        ConfigError: some tables contradict the configuration; the message lists all of them.
    """

    shapes: dict[str, TableShape] = {}

    def mistake(name: str) -> str | None:
        try:
            shape = tables.shape(name)
            if shape is not None:
                shapes[name] = shape
                check_form(name, shape, _wanted(name, shape, rules))
        except ConfigError as error:
            return str(error)
        except Refused:
            return None  # the table's next event parks the table, with the reason
        except Exception:
            tables.check_storage(name)
            return None  # this table's next event parks it as well
        return None

    with ThreadPoolExecutor(_THREADS) as pool:
        mistakes = [said for said in pool.map(mistake, sorted(names)) if said is not None]
    if mistakes:
        raise ConfigError("\n  ".join(["some tables do not match the configuration:", *mistakes]))
    return shapes


class LaidOut(Protocol):
    """Tables whose layouts can be compared with the configuration."""

    def layout_differences(self, name: str) -> list[str]:
        """Return the settings in which an existing table differs from its configured layout."""


def other_layouts(names: Iterable[str], tables: LaidOut) -> dict[str, list[str]]:
    """Return the tables that differ from their configured layouts, with the differences. Skip tables that cannot be
    read, because their next events park them.
    """

    def look(name: str) -> list[str]:
        with suppress(Exception):
            return tables.layout_differences(name)
        return []

    ordered = sorted(names)
    with ThreadPoolExecutor(_THREADS) as pool:
        return {name: found for name, found in zip(ordered, pool.map(look, ordered), strict=True) if found}


def check_state(name: str, table: OpenTable | None, seen: LastSeen | None) -> None:
    """Raise an error unless a table descends from the version in the manifest.

    Args:
        table: None if the table does not exist.
        seen: None if no batch has written the table yet.

    Raises:
        Refused: the table was rolled back or removed, so the later events are in no table.
    """
    if seen is None:
        return
    if table is None:
        raise Refused(
            Reason.TABLE_GONE,
            f"the table {name} no longer exists, but _cdc.batches contains its version {seen.version}, so events up "
            f"to that version would be missing. Restore the table and run `spark-sink resume {shlex.quote(name)}`, "
            f"or run `spark-sink rebuild {shlex.quote(name)}`, which rereads the topic for this table",
        )
    if not table.follows(seen):
        raise Refused(
            Reason.TABLE_SET_BACK,
            f"the table {name} was rolled back: its version {table.version} does not descend from version "
            f"{seen.version} in _cdc.batches, so the events between the two are missing. Run `spark-sink rebuild "
            f"{shlex.quote(name)}`, which rereads the topic for this table. Alternatively, restore the newest "
            f"version or reload the rows from the source, then run `spark-sink resume {shlex.quote(name)}`",
        )


def changed_by_others(
    last_seen: Mapping[str, LastSeen], held: Collection[str], open_table: Callable[[str], OpenTable | None]
) -> dict[str, Refused]:
    """Return the tables that were rolled back or removed after the manifest recorded them, keyed by name.

    Args:
        held: the parked tables, which are checked when their events are applied again.
    """

    def look(name: str) -> Refused | None:
        try:
            check_state(name, open_table(name), last_seen[name])
        except Refused as refusal:
            return refusal if refusal.reason in CHANGED_BY_OTHERS else None
        except Exception:
            return None  # this table's next event reports the problem, and other tables do not wait for it
        return None

    names = sorted(last_seen.keys() - set(held))
    with ThreadPoolExecutor(_THREADS) as pool:
        found = zip(names, pool.map(look, names), strict=True)
        return {name: refusal for name, refusal in found if refusal is not None}


def _wanted(name: str, shape: TableShape, rules: TableRules) -> TableSpec:
    if shape.table.source == SEVERAL:
        return rules.form(name)._replace(shared=match_rule(name, rules.shared) is not None)
    return rules.form(name)._replace(shared=rules.shares(name, str(shape.table)))


def check_form(name: str, shape: TableShape, wanted: TableSpec) -> None:
    """Make sure that a table keeps the mode it was created with, and that it stays shared or unshared.

    Raises:
        ConfigError: the configuration asks for a different mode or sharing.
    """
    if shape.mode != wanted.mode:
        raise ConfigError(
            f"the table {name} was created with mode {shape.mode}, but tables.modes requests {wanted.mode}. The "
            f"mode of an existing table cannot change. Set {shape.mode} again, or rename the table with tables.name "
            f"or tables.rename, or {_rebuilt(name)}"
        )
    if wanted.shared and shape.table.source != SEVERAL:
        raise ConfigError(
            f"the table {name} was created only for {shape.table}, but tables.shared declares it for several source "
            f"tables, and its rows do not contain their source. Remove it from tables.shared, or {_rebuilt(name)}"
        )
    if not wanted.shared and shape.table.source == SEVERAL:
        raise ConfigError(
            f"the table {name} contains several source tables, but tables.shared no longer declares it. Declare it "
            f"again, or {_rebuilt(name)}"
        )
