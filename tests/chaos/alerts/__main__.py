"""`python -m tests.chaos.alerts [--pictures] [ALERT...]` triggers each alert with the real product.

It runs a real Prometheus in which a minute of the rules is a second. It needs Helm (`make chart-check` builds it) and
downloads Debian's Prometheus. With `--pictures`, it draws the dashboards from the data that Prometheus collected, and a
panel without data is an error. With names, it triggers only those alerts. Both programs always run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dev.pages import dashboard_pictures
from dev.pages.browser import MISSING as NO_BROWSER
from dev.pages.browser import is_there
from dev.pages.dashboard_pictures import Span, draw
from dev.release.promtool import MISSING, build
from dev.servers.broker import Broker
from tests.chaos.alerts.bench import Bench
from tests.chaos.alerts.drills import DRILLS

# Panels that can be empty here, and why.
_EMPTY = {
    "translator: Native path": "an upsert projection forces every source onto the plain path",
    "spark-sink: Events that changed nothing": "no drill has an event come twice",
}


def main(arguments: Sequence[str]) -> int:
    pictures = "--pictures" in arguments
    names = {name for name in arguments if name != "--pictures"}
    unknown = names - {drill.alert for drill in DRILLS}
    if unknown:
        sys.exit(f"no such alert: {', '.join(sorted(unknown))}")
    if pictures and not is_there():
        sys.exit(NO_BROWSER)
    chosen = [drill for drill in DRILLS if not names or drill.alert in names or not drill.is_at_rest_before]
    empty: list[str] = []
    if build("prometheus") is None:
        sys.exit(MISSING)
    print("| alert | what was done | fires after | ended by | ends after |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        started = time.time()
        bench = Bench(broker, Path(folder))
        try:
            for drill in chosen:
                if drill.is_at_rest_before:
                    bench.prometheus.wait(drill.alert, fires=False)
                fires = _seconds(bench, drill.alert, drill.begin, fires=True)
                ended = _seconds(bench, drill.alert, drill.end, fires=False)
                print(
                    f"| `{drill.alert}` | {drill.cause} | {fires:.0f} s | {drill.ended} | {ended:.0f} s |", flush=True
                )
            if pictures:
                span = Span(started, time.time())
                empty = draw(dashboard_pictures.Prometheus(bench.prometheus.address, scrape=1), span)
        finally:
            bench.close()
    for panel in empty:
        print(f"no data: {panel}: {_EMPTY.get(panel, 'and there should be')}", file=sys.stderr)
    return 0 if _EMPTY.keys() >= set(empty) else 1


def _seconds(bench: Bench, alert: str, act: Callable[[Bench], None], *, fires: bool) -> float:
    started = time.monotonic()
    act(bench)
    bench.prometheus.wait(alert, fires=fires)
    return time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
