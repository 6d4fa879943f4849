"""The drawn pipeline and the lines of recent measurements: their geometry, words and bounds."""

import re

from translator.web.drawing import BOX_HEIGHT, Box, DrawnPart, across, down
from translator.web.measurements import HEIGHT, SAMPLES, SERIES, WIDTH, Measurements

PARTS = [
    DrawnPart("Sources", "healthy", "2 sources", 0),
    DrawnPart("Translator", "broken", "lag 3", 1),
    DrawnPart("Canonical topic", "healthy", "0 open dead letters", 2),
    DrawnPart("Projections", "healthy", "a very long name of a topic in a projection", 3),
    DrawnPart("Tables", "unknown", "", 3),
]


def _overlap(one: Box, other: Box) -> bool:
    return abs(one.x - other.x) < one.width and abs(one.y - other.y) < BOX_HEIGHT


def test_no_box_covers_another() -> None:
    for drawing in (across(PARTS), down(PARTS)):
        boxes = drawing.boxes
        assert len(PARTS) == len(boxes)
        assert not [1 for place, one in enumerate(boxes) for other in boxes[:place] if _overlap(one, other)]
        assert all(0 <= box.x and box.x + box.width <= drawing.width for box in boxes)
        assert all(0 <= box.y and box.y + BOX_HEIGHT <= drawing.height for box in boxes)


def test_arrows_follow_the_stages() -> None:
    """The topic feeds both parts after it. Without a sink and projections, the last arrow leads to the topic."""
    assert (4, 3) == (len(across(PARTS).arrows), len(down(PARTS).arrows))
    assert (2, 2) == (len(across(PARTS[:3]).arrows), len(down(PARTS[:3]).arrows))


def test_long_facts_are_cut() -> None:
    fact = across(PARTS).boxes[3].fact
    assert (24, "…") == (len(fact), fact[-1])


def test_a_line_of_measurements() -> None:
    seen = Measurements()
    assert seen.line("lag", str) is None
    for at, value in ((1000, 4.0), (3000, 8.0), (3000, 99.0), (2000, 99.0), (5000, 2.0)):
        seen.add(at, {"lag": value})
    line = seen.line("lag", lambda value: f"{value:.0f}")
    assert line is not None
    assert "from 4 to 2, at most 8" == line.words
    assert ["0.0", "60.0", f"{WIDTH}.0"] == re.findall(r"([\d.]+),", line.points)
    assert seen.line("unknown", str) is None


def test_a_quiet_measurement_is_a_line_at_the_bottom() -> None:
    seen = Measurements()
    seen.add(1, {"lag": 0.0})
    seen.add(2, {"lag": 0.0})
    line = seen.line("lag", str)
    assert line is not None
    assert {f"{HEIGHT - 2}.0"} == set(re.findall(r",([\d.]+)", line.points))


def test_memory_is_bounded() -> None:
    seen = Measurements()
    for at in range(2 * SAMPLES):
        seen.add(at, {str(name): 0.0 for name in range(SERIES + 5)})
    line = seen.line("0", str)
    assert line is not None
    assert SAMPLES == len(line.points.split())
    assert seen.line(str(SERIES), str) is None
