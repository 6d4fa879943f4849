"""Know which features of a table each reader supports (`spark-sink check --readers`).

The rules are data. Each rule has evidence: a test that runs the reader (tests/spark_sink/tables/test_readers.py), or
the reader's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import NamedTuple

from spark_sink.errors import ConfigError, unknown


class ReaderFeature(StrEnum):
    """The features of a table that its readers must support. Delta's features have the names from Delta's protocol."""

    DELTA = "Delta Lake"
    COLUMN_MAPPING = "columnMapping"
    DELETION_VECTORS = "deletionVectors"
    TIMESTAMP_NTZ = "timestampNtz"
    ICEBERG_2 = "Iceberg format version 2"
    POSITION_DELETES = "position delete files"
    ICEBERG_3 = "Iceberg format version 3"
    ICEBERG_DELETION_VECTORS = "deletion vectors of Iceberg"


RUN = "run"
"""The evidence for a rule if a test runs the reader."""


class Rule(NamedTuple):
    """A statement about a reader and a feature: the versions of the reader that can read tables with this feature.

    Args:
        since: the first version known to read the feature. "" stands for a service without versions, and None means
            that no version does.
        only_since: whether earlier versions are known to fail. Otherwise, they are unknown.
        evidence: `RUN`, or the address of the documentation.
    """

    feature: ReaderFeature
    since: str | None
    evidence: str
    only_since: bool = False


_F = ReaderFeature
_TRINO_DELTA = "https://trino.io/docs/current/connector/delta-lake.html#delta-lake-table-features"
_TRINO_ICEBERG = "https://trino.io/docs/current/connector/iceberg.html"
_TRINO_480 = "https://trino.io/docs/current/release/release-480.html"
_SNOWFLAKE = "https://docs.snowflake.com/en/release-notes/2026/other"
_SNOWFLAKE_DELTA = f"{_SNOWFLAKE}/2026-03-02-iceberg-delta-deletion-vectors"
_SNOWFLAKE_3 = f"{_SNOWFLAKE}/2026-05-07-iceberg-v3-ga"
_SNOWFLAKE_2 = (
    "https://docs.snowflake.com/en/release-notes/2025/other/"
    "2025-10-17-position-row-level-deletes-externally-managed-iceberg-ga"
)
_ATHENA_2 = "https://docs.aws.amazon.com/athena/latest/ug/querying-iceberg.html"
_ATHENA_3 = "https://docs.aws.amazon.com/prescriptive-guidance/latest/apache-iceberg-on-aws/table-spec-v3.html"

_ICEBERG = (_F.ICEBERG_2, _F.POSITION_DELETES, _F.ICEBERG_3, _F.ICEBERG_DELETION_VECTORS)
_DELTA = (_F.DELTA, _F.COLUMN_MAPPING, _F.DELETION_VECTORS, _F.TIMESTAMP_NTZ)

_NO_ICEBERG = tuple(Rule(feature, None, RUN) for feature in (_F.ICEBERG_2, _F.ICEBERG_3))

READERS: dict[str, tuple[Rule, ...]] = {
    # Spark 4.1 with Delta Lake 4.4 and Iceberg 1.12.
    "spark": tuple(Rule(feature, "4.1", RUN) for feature in _F),
    # The query engine of deltalake, `QueryBuilder`.
    "deltalake": (*(Rule(feature, "1.6", RUN) for feature in _DELTA), *_NO_ICEBERG),
    # deltalake's `to_pyarrow_table` and `to_pandas`.
    "deltalake-pyarrow": (
        *_NO_ICEBERG,
        Rule(_F.DELTA, "1.6", RUN),
        Rule(_F.COLUMN_MAPPING, None, RUN),
        Rule(_F.DELETION_VECTORS, None, RUN),
        Rule(_F.TIMESTAMP_NTZ, "1.6", RUN),
    ),
    "pyiceberg": (*(Rule(feature, "0.12", RUN) for feature in _ICEBERG), Rule(_F.DELTA, None, RUN)),
    "duckdb": tuple(Rule(feature, "1.5.5", RUN) for feature in _F),
    "trino": (
        Rule(_F.DELTA, "469", _TRINO_DELTA),
        Rule(_F.COLUMN_MAPPING, "469", _TRINO_DELTA),
        Rule(_F.DELETION_VECTORS, "469", "https://trino.io/docs/current/release/release-469.html", only_since=True),
        Rule(_F.TIMESTAMP_NTZ, "469", _TRINO_DELTA),
        Rule(_F.ICEBERG_2, "469", _TRINO_ICEBERG),
        Rule(_F.POSITION_DELETES, "469", _TRINO_ICEBERG),
        Rule(_F.ICEBERG_3, "480", _TRINO_480),
        Rule(_F.ICEBERG_DELETION_VECTORS, "480", _TRINO_480, only_since=True),
    ),
    "snowflake": (
        Rule(_F.DELTA, "", _SNOWFLAKE_DELTA),
        Rule(_F.DELETION_VECTORS, "", _SNOWFLAKE_DELTA),
        Rule(_F.ICEBERG_2, "", _SNOWFLAKE_2),
        Rule(_F.POSITION_DELETES, "", _SNOWFLAKE_2),
        Rule(_F.ICEBERG_3, "", _SNOWFLAKE_3),
        Rule(_F.ICEBERG_DELETION_VECTORS, "", _SNOWFLAKE_3),
    ),
    "athena": (
        Rule(_F.DELTA, "", "https://docs.aws.amazon.com/athena/latest/ug/delta-lake-tables.html"),
        Rule(_F.ICEBERG_2, "", _ATHENA_2),
        Rule(_F.ICEBERG_3, None, _ATHENA_3),
        Rule(_F.ICEBERG_DELETION_VECTORS, None, _ATHENA_3),
    ),
}

_NAMED = re.compile(r"([a-z-]+)(?:@([0-9]+(?:\.[0-9]+)*))?")


class Reader(NamedTuple):
    """A reader, with its version if it is known."""

    name: str
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> Reader:
        """Parse `trino@476`, or `trino` for the newest version that the rules know.

        Raises:
            ConfigError: the reader is not known.
        """
        found = _NAMED.fullmatch(text.strip())
        if found is None:
            raise ConfigError(f"{text!r} is not a reader; write a name, or name@version such as trino@476")
        name, version = found[1], found[2] or ""
        if name not in READERS:
            raise ConfigError(unknown("reader", name, READERS))
        if version and any(rule.since == "" for rule in READERS[name]):
            raise ConfigError(f"{name} has no versions; write {name}")
        return cls(name, version)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name

    def obstacles(self, features: Collection[str]) -> Iterator[tuple[str, bool, str]]:
        """Return the features that the reader does not support, or about which nothing is known, in order. Each has the
        reason, and a flag that is true if the reader is known not to support the feature.
        """
        rules = {rule.feature.value: rule for rule in READERS[self.name]}
        for feature in sorted(features):
            rule = rules.get(feature)
            if rule is None:
                yield feature, False, "no rule"
            elif rule.since is None:
                yield feature, True, rule.evidence
            elif self.version and _number(self.version) < _number(rule.since):
                yield feature, rule.only_since, f"since {rule.since}, {rule.evidence}"


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
