"""Export the results of verifications as metrics of the running sink, because `spark-sink verify` is a separate
process.
"""

from __future__ import annotations

import time

import structlog
from deltalake.exceptions import DeltaError

from spark_sink.control_tables.verified import VerifiedTable
from spark_sink.metrics import Metrics

log = structlog.get_logger()

EVERY_SECONDS = 60.0


class VerifiedMetrics:
    """Reads the results at most once a minute."""

    def __init__(self, control_table: VerifiedTable, metrics: Metrics) -> None:
        self._control_table = control_table
        self._metrics = metrics
        self._next = 0.0

    def refresh(self) -> None:
        """Set the metrics, unless this was done within the last minute."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_SECONDS
        try:
            self._metrics.verified(self._control_table.standings())
        except (DeltaError, OSError) as error:
            log.warning("verification results not readable", reason=str(error).strip().partition("\n")[0])
