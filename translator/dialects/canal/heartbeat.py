"""Tables that a server writes only to show that it is alive (§3.3)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from translator.message import TableName


class HeartbeatTables:
    """The tables whose names match one of the patterns: `db.table`, with `*` and `?`."""

    def __init__(self, patterns: Sequence[str]) -> None:
        texts = [fnmatch.translate(pattern.replace("[", "[[]")) for pattern in patterns]  # only * and ? are special
        self._matches = re.compile("|".join(texts)).match if texts else None

    def __contains__(self, table: TableName) -> bool:
        if self._matches is None:
            return False
        return self._matches(f"{table.db}.{table.table}" if table.db else table.table) is not None
