"""Choose which engine writes a table: deltalake in the worker's task, or Spark's MERGE. The choice includes its
reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from spark_sink.errors import Reason, Refused
from spark_sink.schema.table_spec import Mode, match_rule

MEGABYTE = 1_000_000


class Engine(StrEnum):
    """The program that commits to a table. It is chosen when a batch starts, so that both engines never write a table
    at the same time.
    """

    FUSED = "fused"  # deltalake, inside the task that folds the events
    SPARK = "spark"  # MERGE, which the task requests, and which the driver executes when no task runs


class Choice(NamedTuple):
    """An engine, and the reason to log.

    Args:
        widens: whether Spark can widen the types of the table's columns in place.
    """

    engine: Engine
    reason: str
    widens: bool = True


@dataclass(frozen=True)
class EngineRules:
    """The configured engine rules.

    Args:
        named: the engine, keyed by table name or pattern.
        fused_megabytes: the total size of a table's files. If they are larger, Spark writes the table.
    """

    named: Mapping[str, Engine] = field(default_factory=dict)
    fused_megabytes: int = 1000


# Features with which deltalake can write a table. It rejects any other feature only at the commit, after the work is
# done.
FUSED_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz", "changeDataFeed"})

# Features with which Spark can also write a table, and deltalake can read it through DataFusion
# (tables/delta/files.py).
_BY_QUERY = frozenset(
    {
        "allowColumnDefaults",
        "checkConstraints",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "rowTracking",
        "v2Checkpoint",
    }
)

# deltalake cannot open a table that has these features for reading, but the table's files can be read one by one.
BY_FILE = frozenset({"typeWidening", "typeWidening-preview", "vacuumProtocolCheck"})

# Features that have an effect that is not visible in a single file.
BEYOND_FILES = frozenset({"columnMapping", "deletionVectors"})

SPARK_FEATURES = FUSED_FEATURES | _BY_QUERY | BY_FILE

# Features that a table without a feature list can have, by the table's writer version (from the Delta protocol).
_BY_WRITER_VERSION: Mapping[int, frozenset[str]] = {
    3: frozenset({"checkConstraints"}),
    4: frozenset({"changeDataFeed", "generatedColumns"}),
    5: frozenset({"columnMapping"}),
    6: frozenset({"identityColumns"}),
}
_NAMED_FEATURES = 7


def features(writer_version: int, named: frozenset[str]) -> frozenset[str]:
    """Return a table's features according to its protocol."""
    implied = (use for version, use in _BY_WRITER_VERSION.items() if version <= writer_version < _NAMED_FEATURES)
    return named.union(*implied)


def choose(name: str, mode: Mode, has: frozenset[str], size: Callable[[], int], rules: EngineRules) -> Choice:
    """Return a table's engine.

    Args:
        has: the table's features.
        size: returns the number of bytes in the table's files. It is called only if the choice depends on this size.

    Raises:
        Refused: no engine can write the table, or the configured engine cannot write it.
    """
    if has - SPARK_FEATURES:
        raise Refused(
            Reason.TABLE_REFUSED, f"the table has features that cannot be written: {_listed(has - SPARK_FEATURES)}"
        )
    foreign = has - FUSED_FEATURES
    if mode is not Mode.MIRROR:
        if foreign:
            raise Refused(
                Reason.TABLE_REFUSED,
                f"tables with mode {mode} are written by deltalake, which cannot write: {_listed(foreign)}",
            )
        return Choice(Engine.FUSED, f"only deltalake writes tables with mode {mode}")
    if has & BY_FILE and has & BEYOND_FILES:
        together = _listed(has & (BY_FILE | BEYOND_FILES))
        raise Refused(Reason.TABLE_REFUSED, f"the table has features that cannot be read together: {together}")
    said = match_rule(name, rules.named)
    if said is not None:
        if said is Engine.FUSED and foreign:
            raise Refused(
                Reason.TABLE_REFUSED, f"tables.engines requests fused, but deltalake cannot write: {_listed(foreign)}"
            )
        return Choice(said, "it is set in tables.engines")
    if foreign:
        return Choice(Engine.SPARK, f"deltalake cannot write: {_listed(foreign)}")
    if size() > rules.fused_megabytes * MEGABYTE:
        return Choice(Engine.SPARK, f"more than {rules.fused_megabytes} MB (tables.fused_megabytes)")
    return Choice(Engine.FUSED, f"at most {rules.fused_megabytes} MB, with only features that deltalake can write")


def choose_for_iceberg(name: str, rules: EngineRules, buckets: int = 1, wanted: int | None = None) -> Choice:
    """Return an Iceberg table's engine.

    Args:
        buckets: the number of buckets that the table has.
        wanted: the number of buckets that the configuration sets for new tables with this name.

    Raises:
        Refused: the configuration sets another engine.
    """
    if match_rule(name, rules.named) is Engine.FUSED:
        raise Refused(Reason.TABLE_REFUSED, "tables.engines requests fused, but Iceberg tables always use spark")
    reason = "Iceberg tables always use this engine"
    if wanted is not None and wanted != buckets:
        stays = "no buckets" if buckets == 1 else f"{buckets} buckets"
        reason += f"; this table already has {stays}, because tables.buckets ({wanted}) only applies to new tables"
    return Choice(Engine.SPARK, reason)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
