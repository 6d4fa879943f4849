"""Draw both charts' dashboards without Grafana: `python -m dev.pages.dashboard_pictures PROMETHEUS [MINUTES]`.

The program runs the queries of each panel in helm/*/dashboards on that Prometheus, over the last MINUTES (15). It draws
the panels into docs/pictures/dashboard-*.png. It lists panels without data, and exits with code 1 if there are any.
"""

from __future__ import annotations

import html
import json
import math
import re
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dev.pages.browser import MISSING, browser, is_there
from dev.pages.dashboards import dashboards

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

_STEPS = 160
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 460, 170, 52, 18
_COLORS = ("#3274d9", "#e0632f", "#299c46", "#a352cc", "#c4162a", "#b8860b", "#0a8a8a", "#d6478f", "#6b7280", "#4b5320")
_LEGENDS = 8
_YEAR = 365.25 * 86_400

_STYLE = """
body { margin: 12px; width: 1500px; font: 12px sans-serif; background: #f4f5f8; color: #24292e }
h1 { font-size: 18px; margin: 0 0 10px } main { display: grid; grid-template-columns: repeat(24, 1fr); gap: 8px }
main > h2 { grid-column: 1 / -1; margin-top: 8px; font-size: 15px }
section { background: #fff; border: 1px solid #d8dbe2; border-radius: 3px; padding: 8px 10px }
h2 { font-size: 13px; margin: 0 } p { margin: 2px 0 6px; color: #667 } text { font-size: 10px; fill: #667 }
ul { list-style: none; margin: 4px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 2px 12px }
li::before { content: ''; display: inline-block; width: 10px; height: 3px; margin-right: 4px; vertical-align: middle;
background: var(--color) } .nothing { color: #999; height: 170px; display: grid; place-items: center }
.figure { color: #fff; font-size: 28px; padding: 12px; text-align: center }
.green { background: #1a7f37 } .orange { background: #b35900 } .red { background: #c4162a }
"""


class Span(NamedTuple):
    """A picture's time range, in seconds since 1970."""

    start: float
    end: float

    @property
    def step(self) -> float:
        return max((self.end - self.start) / _STEPS, 1.0)


class Curve(NamedTuple):
    """A line in a panel. It has its name in the legend, and its values by time."""

    name: str
    values: Sequence[tuple[float, float]]


class Prometheus(NamedTuple):
    """A Prometheus server that scrapes the programs.

    Args:
        address: the server's URL, such as http://localhost:9090.
        scrape: the scrape interval in seconds, as in Grafana's data source.
    """

    address: str
    scrape: float = 30.0

    def lines(self, panel: Mapping[str, Any], span: Span) -> list[Curve]:
        """Return a panel's lines, queried just as Grafana does, over all namespaces and pods."""
        rate = f"{math.ceil(max(span.step + self.scrape, 4 * self.scrape))}s"
        found = []
        for target in panel["targets"]:
            query = target["expr"].replace('namespace="$namespace"', 'namespace=~".*"').replace("$pod", ".*")
            query = query.replace("$__rate_interval", rate)
            for series in self._ask(query, span):
                name = target["legendFormat"]
                for label in re.findall(r"{{(\w+)}}", name):
                    name = name.replace(f"{{{{{label}}}}}", series["metric"].get(label, ""))
                values = [(float(at), float(value)) for at, value in series["values"]]
                found.append(Curve(name.strip(), [one for one in values if math.isfinite(one[1])]))
        return sorted((line for line in found if line.values), key=lambda line: line.name)

    def _ask(self, query: str, span: Span) -> list[dict[str, Any]]:
        question = {"query": query, "start": span.start, "end": span.end, "step": span.step}
        address = f"{self.address}/api/v1/query_range?{urllib.parse.urlencode(question)}"
        with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - the operator's own address
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found


def draw(prometheus: Prometheus, span: Span, folder: Path = PICTURES) -> list[str]:
    """Draw both dashboards, and return the panels without data as `chart: title`."""
    empty = []
    with tempfile.TemporaryDirectory() as scratch, browser("--hide-scrollbars") as driver:
        for path, text in dashboards().items():
            panels = json.loads(text)["panels"]
            lines = [[] if panel["type"] == "row" else prometheus.lines(panel, span) for panel in panels]
            empty += [
                f"{path.stem}: {panel['title']}"
                for panel, found in zip(panels, lines, strict=True)
                if panel["type"] != "row" and not found
            ]
            page = Path(scratch, "page.html")
            page.write_text(_page(f"CDC {path.stem}", zip(panels, lines, strict=True), span), encoding="utf-8")
            driver.get(page.as_uri())
            height = driver.execute_script("return document.body.scrollHeight") + 24
            size = {"width": 1524, "height": height, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            driver.save_screenshot(str(folder / f"dashboard-{path.stem}.png"))
    return empty


def _page(title: str, panels: Iterable[tuple[Mapping[str, Any], Sequence[Curve]]], span: Span) -> str:
    body = "".join(_section(panel, lines, span) for panel, lines in panels)
    return f"<!doctype html><meta charset=utf-8><style>{_STYLE}</style><h1>{title}</h1><main>{body}</main>"


def _section(panel: Mapping[str, Any], lines: Sequence[Curve], span: Span) -> str:
    title = f"<h2>{html.escape(panel['title'])}</h2>"
    if panel["type"] == "row":
        return title
    drawn = figure(lines, panel) if panel["type"] == "stat" else chart(lines, panel, span)
    width = panel["gridPos"]["w"]
    return (
        f"<section style='grid-column:span {width}'>{title}<p>{html.escape(panel['description'])}</p>{drawn}</section>"
    )


def figure(lines: Sequence[Curve], panel: Mapping[str, Any]) -> str:
    """Return the newest value in the color of its threshold, or a short text if there is none."""
    if not lines:
        return "<div class=nothing>no data</div>"
    defaults = panel["fieldConfig"]["defaults"]
    value = lines[0].values[-1][1]
    passed = [step for step in defaults["thresholds"]["steps"] if step["value"] is None or step["value"] <= value]
    return f"<div class='figure {passed[-1]['color']}'>{_told(value, defaults['unit'])}</div>"


def chart(lines: Sequence[Curve], panel: Mapping[str, Any], span: Span) -> str:
    """Return an SVG with a legend, or a short text if there is no data."""
    if not lines:
        return "<div class=nothing>no data</div>"
    unit = panel["fieldConfig"]["defaults"]["unit"]
    most = max(value for line in lines for _, value in line.values)
    top = (most if most > 0 else 1.0) * 1.05

    def place(at: float, value: float) -> str:
        across = _LEFT + (at - span.start) / (span.end - span.start) * (_WIDTH - _LEFT)
        return f"{across:.1f},{(_HEIGHT - _BOTTOM) * (1 - max(value, 0) / top) + 2:.1f}"

    drawn = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        height = place(span.start, top / 1.05 * share).partition(",")[2]
        drawn.append(f"<path d='M{_LEFT},{height}H{_WIDTH}' stroke='#e3e6ec'/>")
        drawn.append(
            f"<text x={_LEFT - 4} y={float(height) + 3} text-anchor=end>{_told(top / 1.05 * share, unit)}</text>"
        )
        at = span.start + share * (span.end - span.start)
        across = place(at, 0).partition(",")[0]
        anchor = {0.0: "start", 1.0: "end"}.get(share, "middle")
        clock = time.strftime("%H:%M:%S", time.gmtime(at))
        drawn.append(f"<text x={across} y={_HEIGHT - 3} text-anchor={anchor}>{clock}</text>")
    for number, line in enumerate(lines):
        color = _COLORS[number % len(_COLORS)]
        drawn += [
            f"<polyline points='{' '.join(place(*one) for one in part)}' fill=none stroke='{color}' stroke-width=1.5 "
            "stroke-linecap=round />"
            for part in _unbroken(line.values, 1.5 * span.step)
        ]
    names = [
        f"<li style='--color:{_COLORS[number % len(_COLORS)]}'>"
        f"{html.escape(line.name)} {_told(line.values[-1][1], unit)}"
        for number, line in enumerate(lines[:_LEGENDS])
    ]
    more = [f"<li>{len(lines) - _LEGENDS} more"] if len(lines) > _LEGENDS else []
    return f"<svg width={_WIDTH} height={_HEIGHT}>{''.join(drawn)}</svg><ul>{''.join(names + more)}</ul>"


def _unbroken(values: Sequence[tuple[float, float]], gap: float) -> list[list[tuple[float, float]]]:
    """Split a line wherever data is missing. An isolated value is drawn as a dot."""
    parts: list[list[tuple[float, float]]] = []
    for one in values:
        if parts and one[0] - parts[-1][-1][0] <= gap:
            parts[-1].append(one)
        else:
            parts.append([one, one])
    return parts


def _told(value: float, unit: str) -> str:
    """Return a value in the short format that Grafana uses for its unit."""
    match unit:
        case "percentunit":
            return f"{value * 100:.3g} %"
        case "s" if value >= _YEAR:
            return f"{value / _YEAR:.3g} y"
        case "s" if value >= 86_400:
            return f"{value / 86_400:.3g} d"
        case "s" if value >= 3600:
            return f"{value / 3600:.3g} h"
        case "s" if value >= 60:
            return f"{value / 60:.3g} min"
        case "s":
            return f"{value:.3g} s" if value >= 1 or not value else f"{value * 1000:.3g} ms"
        case _:
            text = f"{value / 1000:.3g}k" if value >= 1000 else f"{value:.3g}"
            return f"{text}/s" if unit == "cps" else text


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    if not is_there():
        sys.exit(MISSING)
    address, minutes = arguments[0].rstrip("/"), float((*arguments[1:], "15")[0])
    now = time.time()
    empty = draw(Prometheus(address), Span(now - minutes * 60, now))
    for panel in empty:
        print(f"no data: {panel}")
    print(f"the panels were drawn in {PICTURES}")
    return 1 if empty else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
