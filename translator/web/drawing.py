"""Lay out the drawing of the pipeline: horizontally for wide screens, vertically for phones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

BOX_WIDTH, BOX_HEIGHT = 190, 84
_GAP, _ROW_GAP = 46, 20
_DOWN_WIDTH = 280
_LETTERS = 24
"""Maximum length of a line in a box, which has no room for more."""


class DrawnPart(NamedTuple):
    """A part to draw.

    Args:
        stage: parts of the same stage are next to each other. Each of them receives from all parts of the previous
            stage.
    """

    name: str
    state: str
    fact: str
    stage: int


class Box(NamedTuple):
    """A box with its upper left corner and its text."""

    part: DrawnPart
    x: int
    y: int
    width: int
    fact: str


class Drawing(NamedTuple):
    """A drawing.

    Args:
        arrows: the path of each arrow.
    """

    width: int
    height: int
    boxes: Sequence[Box]
    arrows: Sequence[str]


def across(parts: Sequence[DrawnPart]) -> Drawing:
    """Return the parts from left to right."""
    stages = _stages(parts)
    height = max(map(len, stages)) * (BOX_HEIGHT + _ROW_GAP) - _ROW_GAP
    boxes = []
    for column, stage in enumerate(stages):
        top = (height - len(stage) * (BOX_HEIGHT + _ROW_GAP) + _ROW_GAP) // 2
        for row, part in enumerate(stage):
            x, y = column * (BOX_WIDTH + _GAP), top + row * (BOX_HEIGHT + _ROW_GAP)
            boxes.append(Box(part, x, y, BOX_WIDTH, _short(part.fact)))
    arrows = []
    for one, other in _pairs(boxes):
        begin, end = one.x + BOX_WIDTH + 4, other.x - 6
        middle = (begin + end) // 2
        from_y, to_y = one.y + BOX_HEIGHT // 2, other.y + BOX_HEIGHT // 2
        arrows.append(f"M{begin} {from_y}C{middle} {from_y} {middle} {to_y} {end} {to_y}")
    return Drawing(len(stages) * (BOX_WIDTH + _GAP) - _GAP, height, boxes, arrows)


def down(parts: Sequence[DrawnPart]) -> Drawing:
    """Return the parts from top to bottom, with one arrow from each stage to the next."""
    boxes: list[Box] = []
    arrows: list[str] = []
    y = 0
    for number, stage in enumerate(_stages(parts)):
        if number:
            arrows.append(f"M{_DOWN_WIDTH // 2} {y - _ROW_GAP + 4}V{y + _GAP - _ROW_GAP - 6}")
            y += _GAP - _ROW_GAP
        for part in stage:
            boxes.append(Box(part, 0, y, _DOWN_WIDTH, _short(part.fact)))
            y += BOX_HEIGHT + _ROW_GAP
    return Drawing(_DOWN_WIDTH, y - _ROW_GAP, boxes, arrows)


def _stages(parts: Sequence[DrawnPart]) -> list[list[DrawnPart]]:
    numbers = sorted({part.stage for part in parts})
    return [[part for part in parts if part.stage == number] for number in numbers]


def _pairs(boxes: Sequence[Box]) -> list[tuple[Box, Box]]:
    stages = sorted({box.part.stage for box in boxes})
    following = dict(pairwise(stages))
    return [(one, other) for one in boxes for other in boxes if other.part.stage == following.get(one.part.stage)]


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
