"""The progress messages of a long-running command."""

from __future__ import annotations

from translator.operations.progress import EVERY_SECONDS, Progress


def test_at_a_bounded_rate() -> None:
    """At most every five seconds, it logs the share read over all ranges. Offsets without records count."""
    said: list[str] = []
    now = 0.0
    progress = Progress("audit", 400, said.append, lambda: now)
    passed = []
    for offset in progress.through("a/0", 100, 200, range(100, 200, 2), int):
        passed.append(offset)
        now += EVERY_SECONDS / 5
    for offset in progress.through("a/1", 0, 300, range(300), int):
        passed.append(offset)
        now += EVERY_SECONDS / 10
    assert [*range(100, 200, 2), *range(300)] == passed
    assert ["audit: 2 % of 400 offsets, now a/0", "audit: 5 % of 400 offsets, now a/0"] == said[:2]
    assert ["audit: 25 % of 400 offsets, now a/1", "audit: 27 % of 400 offsets, now a/1"] == said[9:11]
    assert 9 + 30 == len(said)


def test_a_short_run_says_nothing() -> None:
    """A short run logs nothing, and an empty range causes no division by zero."""
    said: list[str] = []
    assert [1, 2] == list(Progress("audit", 2, said.append, lambda: 0.0).through("a/0", 1, 3, [1, 2], int))
    assert [] == list(Progress("audit", 0, said.append).through("a/0", 0, 0, [], int))
    assert [] == said
