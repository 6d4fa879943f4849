"""How tests read back what a delivery wrote."""

from __future__ import annotations

TO_THE_END: dict[str, str | int | float | bool] = {
    "group.id": "unused",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    # The broker must not wait for more at the end of a partition, which would take twice half a second per read.
    "fetch.wait.max.ms": 10,
}
