"""Tables that are there, held against the configuration: none is turned into something else."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from spark_sink.config.table_rules import TableRules
from spark_sink.errors import ConfigError, FatalError, Reason, Refused
from spark_sink.events.shared_tables import SEVERAL
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import TableSpec, match_rule
from spark_sink.tables.changes import LastSeen
from spark_sink.tables.protocols import OpenTable

# Opening a table waits for storage most of its time.
_THREADS = 16


def _rebuilt(name: str) -> str:
    return f"`spark-sink rebuild {shlex.quote(name)}`, and start the sink, which reads the topic again for this table"


# Others changed the table. It continues as it is once an operator resumes it.
CHANGED_BY_OTHERS = frozenset({Reason.TABLE_SET_BACK, Reason.TABLE_GONE})


class Shapes(Protocol):
    """Tables of a warehouse, of which only the shape is asked."""

    def shape(self, name: str) -> TableShape | None:
        """Return the shape of a table; None when there is no table.

        Raises:
            Refused: it is none of ours.
            ConfigError: there is one, of another format than the configuration says.
        """


def check_tables(names: Iterable[str], tables: Shapes, rules: TableRules) -> None:
    """All tables that a pipeline has written, before its query starts.

    Raises:
        ConfigError: some cannot go on as the configuration wants them; all of them are named.
    """

    def mistake(name: str) -> str | None:
        try:
            shape = tables.shape(name)
            if shape is not None:
                check_form(name, shape, _wanted(name, shape, rules))
        except ConfigError as error:
            return str(error)
        except Refused:
            return None  # parked, with its reason, when its next event comes
        return None

    with ThreadPoolExecutor(_THREADS) as pool:
        mistakes = [said for said in pool.map(mistake, sorted(names)) if said is not None]
    if mistakes:
        raise ConfigError("\n  ".join(["tables are not what the configuration says:", *mistakes]))


def check_state(name: str, table: OpenTable | None, seen: LastSeen | None) -> None:
    """Make sure that a table has come from the state that the manifest names.

    Args:
        table: None: it does not exist.
        seen: None: no batch has written it yet.

    Raises:
        Refused: it was set back, or is gone. Events between would be in no table.
    """
    if seen is None:
        return
    if table is None:
        raise Refused(
            Reason.TABLE_GONE,
            f"the table {name} does not exist any more, and _cdc.batches has its version {seen.version}: events up to "
            f"there would be missing. Put it back and `spark-sink resume {shlex.quote(name)}`; or `spark-sink rebuild "
            f"{shlex.quote(name)}`, which reads the topic again for this table",
        )
    if not table.follows(seen):
        raise Refused(
            Reason.TABLE_SET_BACK,
            f"the table {name} was set back: it has version {table.version}, which has not come from version "
            f"{seen.version} that _cdc.batches names. Events between are not in it. `spark-sink rebuild "
            f"{shlex.quote(name)}` reads the topic again for this table; or bring the newest version back, or load the "
            f"rows from the source, and `spark-sink resume {shlex.quote(name)}`",
        )


def changed_by_others(
    last_seen: Mapping[str, LastSeen], held: Collection[str], open_table: Callable[[str], OpenTable | None]
) -> dict[str, Refused]:
    """Return by name the tables that were set back or are gone since the manifest named them.

    Args:
        held: tables that are parked; they are looked at when their events are applied again.
    """

    def look(name: str) -> Refused | None:
        try:
            check_state(name, open_table(name), last_seen[name])
        except Refused as refusal:
            return refusal if refusal.reason in CHANGED_BY_OTHERS else None
        except FatalError:
            raise
        except Exception:
            return None  # Its next event meets what is the matter with the table; others need not wait for it.
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
    """Make sure that a table keeps the mode in which it was made, and stays shared or not.

    Raises:
        ConfigError: it is to be something else.
    """
    if shape.mode != wanted.mode:
        raise ConfigError(
            f"the table {name} was created as {shape.mode}, and tables.modes makes it {wanted.mode}: no table is "
            f"turned into another. Say {shape.mode} again; or give it another name with tables.name or tables.rename; "
            f"or {_rebuilt(name)}"
        )
    if wanted.shared and shape.table.source != SEVERAL:
        raise ConfigError(
            f"the table {name} was created for {shape.table} alone, and tables.shared declares it for several source "
            f"tables: its rows do not tell of which they are. Take it out of tables.shared; or {_rebuilt(name)}"
        )
    if not wanted.shared and shape.table.source == SEVERAL:
        raise ConfigError(
            f"the table {name} holds several source tables, and tables.shared no longer names it. Declare it again; or "
            f"{_rebuilt(name)}"
        )
