"""Find the new tables that must not be created. Their names come from messages, so these tables are parked."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

from spark_sink.schema.evolution import Create, Step


def forbidden_tables(
    steps: Sequence[tuple[str, Step]], existing: Collection[str], allowed: int, *, parks: bool
) -> dict[str, str]:
    """Return the new tables that must not be created, with the reason.

    Args:
        existing: the names of the pipeline's tables.
        allowed: maximum number of tables.
        parks: whether an operator has to accept each new table.
    """
    known = {name.lower(): name for name in existing}
    new = sorted(table for table, step in steps if isinstance(step, Create) and table.lower() not in known)
    nested = _nested(new, known) if new else {}
    if parks:
        accept = "the table is new (tables.new); to accept it, run spark-sink resume"
        return {**{table: f"{accept} {shlex.quote(table)}" for table in new}, **nested}
    room = max(0, allowed - len(known))
    left = [table for table in new if table not in nested][room:]
    full = f"the sink has reached its limit of {allowed} tables; raise tables.max_tables and restart the sink"
    return {**nested, **dict.fromkeys(left, full)}


def _nested(new: Sequence[str], existing: dict[str, str]) -> dict[str, str]:
    """Return the new tables whose folder would be inside another table's folder, or contain it, with the reason.

    Deleting unknown files in the outer table's folder, as VACUUM does, would delete the inner table.
    """
    known = dict(existing)
    outer = {prefix: name for name in known.values() for prefix in _prefixes(name)}
    found = {}
    for table in new:
        others = [known[prefix] for prefix in _prefixes(table) if prefix in known]
        other = next(iter(others), None) or outer.get(table.lower())
        if other is not None:
            found[table] = (
                f"the tables {table} and {other} would be stored in the same folder. Rename one of them with "
                "tables.rename, or exclude it with tables.exclude, and restart the sink"
            )
            continue
        known[table.lower()] = table
        outer |= dict.fromkeys(_prefixes(table), table)
    return found


def _prefixes(name: str) -> Iterator[str]:
    """Return the folders around a table's folder, in lower case."""
    parts = name.lower().split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))
