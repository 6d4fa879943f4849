"""Write the log line that reports the work since the last such line, and the process's lag, once a minute."""

from __future__ import annotations

from collections import Counter
from typing import Any

from translator.service.metrics import BatchAccount


class _Sums:
    """The sums of acknowledged batches."""

    def __init__(self) -> None:
        self._records: Counter[str] = Counter()
        self._dead: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    def add(self, account: BatchAccount) -> None:
        self._records["read"] += account.records
        self._records["translated"] += account.translated
        self._records["learned"] += account.learned
        self._records["skipped"] += account.skipped.total()
        self._records["written"] += account.written.total()
        if account.dead:
            self._dead.update(account.dead)
        for (_, code), count in account.refused.items():
            self._refused[code] += count

    def merge(self, other: _Sums) -> None:
        self._records.update(other._records)
        self._dead.update(other._dead)
        self._refused.update(other._refused)

    def fields(self) -> dict[str, Any]:
        names = ("read", "translated", "learned", "skipped", "written")
        fields: dict[str, Any] = {name: self._records[name] for name in names}
        fields["dead"] = dict(sorted(self._dead.items()))
        if self._refused:
            fields["refused"] = dict(sorted(self._refused.items()))
        return fields


class Summary:
    """Sums up acknowledged batches."""

    def __init__(self) -> None:
        self._since_line = _Sums()
        self._before_line = _Sums()

    def add(self, account: BatchAccount) -> None:
        """Add an acknowledged batch."""
        self._since_line.add(account)

    def take(self) -> dict[str, Any]:
        """Return the fields for the line, and reset the sums."""
        fields = self._since_line.fields()
        self._before_line.merge(self._since_line)
        self._since_line = _Sums()
        return fields

    def total(self) -> dict[str, Any]:
        """Return the same fields for all work since the start of the process."""
        everything = _Sums()
        everything.merge(self._before_line)
        everything.merge(self._since_line)
        return everything.fields()
