"""From the cells of a row to its image: the loop that all dialects share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from translator.envelope import Issue
from translator.message import Image, Limits
from translator.values import Converter, Unrepresentable


def build_image(
    cells: Iterable[tuple[str, object]],
    converter_of: Callable[[str], Converter],
    issues: list[Issue],
    limits: Limits,
) -> Image:
    """Column name -> canonical value, in the order of `cells`; None stays null.

    A value without a faithful form is left out and appended to `issues`, with its raw text cut to
    `limits.issue_raw_chars`.
    """
    image: Image = {}
    for name, value in cells:
        if value is None:
            image[name] = None
            continue
        try:
            image[name] = converter_of(name)(value)
        except Unrepresentable as bad:
            issues.append(Issue(name, bad.code, bad.raw[: limits.issue_raw_chars]))
    return image
