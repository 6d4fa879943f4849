"""`python -m tests.chaos.alerts`: drives each alert with the real product, under a real Prometheus.

A minute of the rules is a second. It wants Helm (`make chart-check` builds it) and Debian's Prometheus,
which is fetched.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dev.broker import Broker
from dev.promtool import MISSING, build
from tests.chaos.alerts.bench import Bench
from tests.chaos.alerts.drills import DRILLS, NOT_DRIVEN


def main() -> int:
    if build("prometheus") is None:
        sys.exit(MISSING)
    print("| alert | what was done | fires after | ended by | ends after |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        bench = Bench(broker, Path(folder))
        try:
            for drill in DRILLS:
                if drill.is_at_rest_before:
                    bench.prometheus.wait(drill.alert, fires=False)
                fires = _seconds(bench, drill.alert, drill.begin, fires=True)
                ended = _seconds(bench, drill.alert, drill.end, fires=False)
                print(
                    f"| `{drill.alert}` | {drill.cause} | {fires:.0f} s | {drill.ended} | {ended:.0f} s |", flush=True
                )
        finally:
            bench.close()
    for alert, why in NOT_DRIVEN.items():
        print(f"| `{alert}` | not driven: {why} | | | |")
    return 0


def _seconds(bench: Bench, alert: str, act: Callable[[Bench], None], *, fires: bool) -> float:
    started = time.monotonic()
    act(bench)
    bench.prometheus.wait(alert, fires=fires)
    return time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
