"""The size limit of the next batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_sink.batch_sizing import BEGIN, FLOOR, Pace

MOST, SECONDS, MEGABYTES = 500_000, 60.0, 1024.0

# The cost of a full batch, and the resulting limit.
SAME, HALF, TWICE = BEGIN, BEGIN // 2, 2 * BEGIN


def _pace(most: int = MOST) -> Pace:
    return Pace(most, SECONDS, MEGABYTES)


@pytest.mark.parametrize(
    ("taken", "seconds", "megabytes", "limit"),
    [
        (BEGIN, 60, 1024, SAME),
        (BEGIN, 61, 100, HALF),
        (BEGIN, 1, 1025, HALF),
        (BEGIN, 61, 1025, HALF),
        (BEGIN, 14.9, 511, TWICE),
        (BEGIN - 4, 14.9, 511, TWICE),
        (BEGIN, 14.9, 0, TWICE),
        (BEGIN, 15, 511, SAME),
        (BEGIN, 14.9, 512, SAME),
        (BEGIN // 2, 1, 100, SAME),
        (BEGIN // 2, 61, 100, SAME),
        (BEGIN // 2, 61, 1025, HALF),
        (0, 0, 0, SAME),
        (2 * BEGIN, 200, 4000, SAME),
        (2 * BEGIN, 1, 100, SAME),
    ],
)
def test_one_batch(taken: int, seconds: float, megabytes: float, limit: int) -> None:
    """One expensive dimension shrinks the limit, and it grows only if both are cheap. The time of a batch that its
    limit did not cut is ignored. A batch larger than the limit was planned earlier and is ignored entirely.
    """
    pace = _pace()
    change = pace.after(taken, seconds, megabytes)
    assert limit == pace.limit
    assert (None if limit == BEGIN else (BEGIN, limit)) == (change and change[:2])


@pytest.mark.parametrize(
    ("most", "first", "large", "small"),
    [(MOST, BEGIN, MOST, FLOOR), (70_000, BEGIN, 70_000, FLOOR), (3_000, 3_000, 3_000, FLOOR), (10, 10, 10, 10)],
)
def test_the_ends(most: int, first: int, large: int, small: int) -> None:
    """The limit starts at a safe value and stays between the floor and the maximum. At an end it does not change."""
    pace = _pace(most)
    assert first == pace.limit
    while pace.after(pace.limit, 0.1, 100):
        pass
    assert large == pace.limit
    while pace.after(pace.limit, 100 * pace.limit, 100):
        pass
    assert small == pace.limit
    assert pace.after(pace.limit, 1000, 9999) is None


def test_why() -> None:
    """The reason states the cause and the setting behind it."""
    whys = [change.why for cost in ((90, 100), (1, 2000), (1.5, 300)) if (change := _pace().after(BEGIN, *cost))]
    assert [
        "50000 records took 90 s (batches.target_seconds: 60)",
        "a worker used 2000 MiB (batches.worker_megabytes: 1024)",
        "50000 records took 1.5 s, and workers 300 MiB",
    ] == whys


@pytest.mark.parametrize("which", ["seconds", "megabytes"])
def test_smaller_batches_that_do_not_help(which: str) -> None:
    """Smaller batches do not reduce a fixed cost per batch, so the limit stays unchanged until the cost changes."""
    pace = _pace()

    def limit(cost: float) -> int:
        seconds, megabytes = (cost, 600) if which == "seconds" else (20, 20 * cost)
        pace.after(pace.limit, seconds, megabytes)
        return pace.limit

    assert [HALF] * 4 == [limit(cost) for cost in (100, 80, 110, 80)]  # an expensive batch, and some noise
    assert HALF // 2 == limit(200)
    assert [HALF // 4] * 2 == [limit(cost) for cost in (120, 50)]  # it helped, but not enough; then it did
    assert HALF // 8 == limit(66)


COST = st.floats(0, 3000)


@given(COST, st.floats(0, 1), COST, st.floats(0, 1), st.integers(1, 2_000_000), st.lists(st.floats(0, 1), max_size=40))
def test_it_settles(
    seconds: float, per_record: float, megabytes: float, each: float, most: int, shares: list[float]
) -> None:
    """If a batch costs a fixed amount plus an amount per record, the limit moves in one direction and then stays.
    Batches that are not full do not change that.
    """
    pace = _pace(most)
    limits = [pace.limit]
    for share in (*shares, *[1.0] * 40):
        taken = round(share * pace.limit)
        pace.after(taken, seconds + taken * per_record, megabytes + taken * each)
        limits.append(pace.limit)
    assert limits in (sorted(limits), sorted(limits, reverse=True))
    assert 1 == len(set(limits[-20:]))
