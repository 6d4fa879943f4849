"""Compute a cut from the rows of the manifest. `test_cut_reader.py` reads from one onward."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spark_sink.control_tables.batches import ControlTables
from spark_sink.control_tables.cut import ManifestRow, fold, resume_offsets
from spark_sink.errors import FatalError
from spark_sink.operations import status

Offsets = dict[int, int]


def _row(
    at: int, batch: int | None, offsets: Offsets, checkpoint: str = "one", topic: str = "t", **versions: int
) -> ManifestRow:
    return ManifestRow(checkpoint, batch, datetime.fromtimestamp(at, UTC), topic, offsets, versions)


class Folded(NamedTuple):
    """Rows, the requested batch and the expected cut."""

    rows: list[ManifestRow]
    asked: dict[str, Any]
    batch: int
    offsets: Offsets
    versions: dict[str, int]


PLAIN = [_row(1, 0, {0: 10, 1: 5}, a=1, b=1), _row(2, 1, {0: 12}, a=2), _row(4, 2, {1: 9}, b=4)]
RESUMED = [*PLAIN[:2], _row(3, None, {}, c=7), PLAIN[2]]
LOST = [*PLAIN, _row(5, 0, {0: 14}, "two", a=3), _row(6, 1, {0: 15}, "two", b=5)]
MOVED = [_row(0, 9, {0: 99, 7: 1}, topic="before", a=0, old=3), *PLAIN]

CASES = {
    "what no batch touched since is as it was": Folded(PLAIN, {}, 2, {0: 12, 1: 9}, {"a": 2, "b": 4}),
    "whatever order rows are read in": Folded(PLAIN[::-1], {}, 2, {0: 12, 1: 9}, {"a": 2, "b": 4}),
    "behind an earlier batch": Folded(PLAIN, {"batch": 1}, 1, {0: 12, 1: 5}, {"a": 2, "b": 1}),
    "behind the first": Folded(PLAIN, {"batch": 0}, 0, {0: 10, 1: 5}, {"a": 1, "b": 1}),
    "a resume before the batch": Folded(RESUMED, {}, 2, {0: 12, 1: 9}, {"a": 2, "b": 4, "c": 7}),
    "a resume after the batch": Folded(RESUMED, {"batch": 1}, 1, {0: 12, 1: 5}, {"a": 2, "b": 1}),
    "a resume after the last batch": Folded(RESUMED[:3], {}, 1, {0: 12, 1: 5}, {"a": 2, "b": 1}),
    "a second checkpoint": Folded(LOST, {}, 1, {0: 15, 1: 9}, {"a": 3, "b": 5}),
    "numbers are those of the newest checkpoint": Folded(LOST, {"batch": 0}, 0, {0: 14, 1: 9}, {"a": 3, "b": 4}),
    "or of the one that is named": Folded(LOST, {"batch": 0, "checkpoint": "one"}, 0, {0: 10, 1: 5}, {"a": 1, "b": 1}),
    "the end of an old checkpoint": Folded(LOST, {"checkpoint": "one"}, 2, {0: 12, 1: 9}, {"a": 2, "b": 4}),
    "an old checkpoint reads again": Folded(
        [*PLAIN, _row(5, 3, {0: 3}, "older", a=5)], {}, 3, {0: 12, 1: 9}, {"a": 5, "b": 4}
    ),
    "a table that was made anew": Folded([*PLAIN, _row(5, 3, {0: 13}, b=0)], {}, 3, {0: 13, 1: 9}, {"a": 2, "b": 0}),
    "another topic before": Folded(MOVED, {}, 2, {0: 12, 1: 9}, {"a": 2, "b": 4, "old": 3}),
}


@pytest.mark.parametrize("name", CASES)
def test_folded(name: str) -> None:
    case = CASES[name]
    cut = fold(case.rows, "t", **case.asked)
    assert (case.batch, case.offsets, case.versions) == (cut.batch, cut.offsets, cut.versions)


def test_what_cannot_be_cut() -> None:
    """For a missing or incomplete batch, the error lists the available ones."""
    for rows, asked, error in (
        ([], {}, "any batch of topic t"),
        (MOVED[:1], {}, "any batch of topic t"),
        ([_row(1, None, {}, a=1)], {}, "any batch of topic t"),
        (LOST, {"batch": 2}, "checkpoint two has no batch 2; existing batches: 0 to 2 of one, 0 to 1 of two"),
        (LOST, {"checkpoint": "three"}, "checkpoint three has no batch; existing batches"),
    ):
        with pytest.raises(FatalError, match=error):
            fold(rows, "t", **asked)


def test_where_a_parked_table_goes_on() -> None:
    """A parked table continues at the first waiting event of each partition, or at the cut if none waits before it."""
    cut = fold(PLAIN, "t")
    assert {0: 7, 1: 9} == resume_offsets(cut, {0: 7})
    assert {0: 12, 1: 9} == resume_offsets(cut, {0: 20})


def test_what_waited_is_gone(tmp_path: Path) -> None:
    """A cut for which nobody can say any more which tables were parked is none."""
    control = ControlTables(str(tmp_path), "p", "one", "t")
    control.create()
    control.begin(0)
    control.end(0, [])
    assert {} == status.cut(str(tmp_path), "p", "t", 7)["parked"]
    control.parked.park("a")
    control.begin(1)
    control.end(1, [])
    assert "COMMAND" == status.cut(str(tmp_path), "p", "t", 7)["parked"]["a"]["reason"]
    shutil.rmtree(tmp_path / "_cdc" / "parked")
    with pytest.raises(FatalError, match=r"version 1 of _cdc\.parked is no longer readable"):
        status.cut(str(tmp_path), "p", "t", 7)
    assert 0 == status.cut(str(tmp_path), "p", "t", 7, batch=0)["batch"]
