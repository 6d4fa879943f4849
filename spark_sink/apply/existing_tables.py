"""Tables that are there, held against the configuration: none is turned into something else."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from spark_sink.config.table_rules import TableRules
from spark_sink.errors import ConfigError, Refused
from spark_sink.events.shared_tables import SEVERAL
from spark_sink.schema.evolution import TableShape
from spark_sink.schema.table_spec import TableSpec, match_rule

# Opening a table waits for storage most of its time.
_THREADS = 16

_ANEW = "move its folder away, and let a sink with a new checkpoint read the topic again"


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
            f"or {_ANEW}"
        )
    if wanted.shared and shape.table.source != SEVERAL:
        raise ConfigError(
            f"the table {name} was created for {shape.table} alone, and tables.shared declares it for several source "
            f"tables: its rows do not tell of which they are. Take it out of tables.shared; or {_ANEW}"
        )
    if not wanted.shared and shape.table.source == SEVERAL:
        raise ConfigError(
            f"the table {name} holds several source tables, and tables.shared no longer names it. Declare it again; or "
            f"{_ANEW}"
        )
