"""The style sheet uses the scales and colors that its first rules define, and loads nothing."""

import re
from pathlib import Path

from translator import web

STYLE = Path(web.__file__).with_name("static").joinpath("desk.css").read_text(encoding="utf-8")
DEFINED, _, RULES = STYLE.partition("/* States, which")
SIZES = re.compile(r"^(var\(--[a-z0-9-]+\)|0|auto|1px|max-content)$")


def test_colors_are_defined_once() -> None:
    """Each color exists in both schemes, and rules name it."""
    light, _, dark = DEFINED.partition("@media")
    colors = re.compile(r"(--[a-z-]+): #[0-9a-f]{6};")
    assert colors.findall(light) == colors.findall(dark)
    assert not re.findall(r"#[0-9a-f]{3,8}\b|\brgb|\bhsl", RULES)


def test_sizes_come_from_the_scales() -> None:
    """Except in the drawing, whose sizes are units of the picture."""
    rules = re.sub(r"/\*.*?\*/", "", RULES, flags=re.DOTALL)
    for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", rules):
        if ".drawing" in selector:
            continue
        for name, value in re.findall(
            r"(?:^|[;\s])(font-size|margin|padding|gap|padding-left|margin-top): ([^;]+);", body
        ):
            assert all(SIZES.match(part) for part in value.split()), (selector.strip(), name, value)


def test_variables_exist() -> None:
    defined = set(re.findall(r"(--[a-z0-9-]+):", STYLE))
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", STYLE))
    assert used <= defined
    assert defined - used <= {"--state", "--state-soft"}


def test_nothing_is_loaded() -> None:
    assert not re.search(r"url\(|@import|@font-face", STYLE)
