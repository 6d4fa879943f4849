"""Times as operators read them."""

from __future__ import annotations

import pytest

from translator.operations.duration import instant


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1_700_000_000_001, "2023-11-14T22:13:20.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000 ms since 1970"),
        (2**63 - 1, "9223372036854775807 ms since 1970"),
    ],
)
def test_the_time_of_a_record(ms: int, text: str) -> None:
    """A producer can write any number. One outside the calendar is shown as a number."""
    assert text == instant(ms)
