"""How tests read back what a delivery wrote."""

from __future__ import annotations

TO_THE_END: dict[str, str | int | float | bool] = {
    "group.id": "unused",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    # The broker is not to wait for more at the end of a partition: twice half a second for every look.
    "fetch.wait.max.ms": 10,
}
