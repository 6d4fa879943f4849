"""The log line that reports, once a minute, the work since the last line and the process's lag."""

from __future__ import annotations

from collections import Counter
from typing import Any

from translator.service.metrics import BatchAccount


class Summary:
    """Sums up acknowledged batches."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._records: Counter[str] = Counter()
        self._dead: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    def add(self, account: BatchAccount) -> None:
        """Add an acknowledged batch."""
        self._records["read"] += account.records
        self._records["translated"] += account.translated
        self._records["learned"] += account.learned
        self._records["skipped"] += account.skipped.total()
        self._records["written"] += account.written.total()
        self._dead.update(account.dead)
        for (_, code), count in account.refused.items():
            self._refused[code] += count

    def take(self) -> dict[str, Any]:
        """Return the fields for the line, and start again."""
        names = ("read", "translated", "learned", "skipped", "written")
        fields: dict[str, Any] = {name: self._records[name] for name in names}
        fields["dead"] = dict(sorted(self._dead.items()))
        if self._refused:
            fields["refused"] = dict(sorted(self._refused.items()))
        self._begin()
        return fields
