"""Draw small pictures: lines on logarithmic scales, and stacked bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TypeAlias

WIDTH, HEIGHT = 720, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 150, 40, 50
_COLOURS = ("#2f6fb7", "#d9822b", "#3c9a5f", "#b5417a", "#7b61b0", "#8a6d3b", "#5f6b7a", "#c0392b")
_BAR, _GAP, _NUMBER, _LETTER = 22, 12, 60, 6.8

Points: TypeAlias = Sequence[tuple[float, float]]


def line_chart(title: str, x_name: str, y_name: str, lines: Mapping[str, Points]) -> str:
    """Draw lines through points with increasing x. Both scales are logarithmic, so all values must be positive."""
    xs = sorted({x for points in lines.values() for x, _ in points})
    ys = [y for points in lines.values() for _, y in points]
    low, high = 10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys) * 1.0001))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log(x) - math.log(xs[0])) / ((math.log(xs[-1]) - math.log(xs[0])) or 1)
        up = (math.log(y) - math.log(low)) / (math.log(high) - math.log(low))
        return _LEFT + across * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM)

    parts = [_text(_LEFT, 22, title, size=15), _text((WIDTH - _RIGHT + _LEFT) / 2, HEIGHT - 10, x_name, "middle")]
    parts.append(_text(_LEFT, _TOP - 4, y_name, size=11))
    for tick in _ticks(low, high):
        _, y = place(xs[0], tick)
        parts.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e3e3"/>')
        parts.append(_text(_LEFT - 6, y + 4, _number(tick), "end", 11))
    for x in xs:
        across, _ = place(x, low)
        parts.append(_text(across, HEIGHT - _BOTTOM + 18, _number(x), "middle", 11))
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        placed = [place(x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        parts.append(_legend(WIDTH - _RIGHT + 16, _TOP + 12 + 20 * number, name, colour))
    return _picture(HEIGHT, parts)


def bar_chart(title: str, unit: str, bars: Mapping[str, Mapping[str, float]]) -> str:
    """Draw horizontal stacked bars, with the sum of the parts at the end. Negative parts are omitted."""
    names = list(dict.fromkeys(part for parts in bars.values() for part in parts))
    most = max(sum(max(value, 0) for value in parts.values()) for parts in bars.values()) or 1
    legend = len(names) > 1
    top = 60 if legend else 40
    height = top + len(bars) * (_BAR + _GAP) + 10
    left = 20 + _LETTER * max(map(len, bars))
    scale = (WIDTH - left - _NUMBER) / most
    drawn = [_text(10, 22, f"{title} ({unit})", size=15)]
    if legend:
        drawn += [
            _legend(10 + place * 115, 42, name, _COLOURS[place % len(_COLOURS)]) for place, name in enumerate(names)
        ]
    for row, (name, parts) in enumerate(bars.items()):
        y, x = top + row * (_BAR + _GAP), left
        drawn.append(_text(left - 8, y + 16, name, "end"))
        for part, value in parts.items():
            width = max(value, 0) * scale
            colour = _COLOURS[names.index(part) % len(_COLOURS)]
            drawn.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>')
            x += width
        drawn.append(_text(x + 6, y + 16, _number(sum(max(value, 0) for value in parts.values()))))
    return _picture(height, drawn)


def _picture(height: int, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, ground, *parts, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    style = f'font-family="sans-serif" font-size="{size}" fill="#222222" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _legend(x: float, y: float, name: str, colour: str) -> str:
    return f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>' + _text(x + 15, y, name)


def _ticks(low: float, high: float) -> list[float]:
    """Return the values 1, 2 and 5 in each decade of the range."""
    decades = range(round(math.log10(low)), round(math.log10(high)) + 1)
    found = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    return [tick for tick in found if low <= tick <= high]


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:.1f}".removesuffix(".0")
