"""UPDATE BEFORE and UPDATE AFTER: two objects of one value that form one update (§4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc_core.envelope import Tx
from tests.translator.dialects.shareplex.messages import BAND, KEYED, body, changes, dialect, refusal, row
from translator.message import DeclaredTable, Limits, Message, RowChange
from translator.translation.translate import Events, Translator

QUEST = dialect()


def half(which: str, data: Any, **meta: Any) -> dict[str, Any]:
    """Return one half of an update of A.T."""
    return body(f"UPDATE {which}", meta=meta, data=data)


def value(*objects: dict[str, Any], between: str = "\n") -> bytes:
    """Return objects in one value."""
    return between.join(map(json.dumps, objects)).encode()


BEFORE, AFTER = half("BEFORE", {"ID": 1, "A": 2}, rowid="r"), half("AFTER", {"ID": 1, "A": 3}, rowid="r")
IN_ORDER = half("BEFORE", {"ID": 1, "A": 2}), half("AFTER", {"ID": 1, "A": 3})


@pytest.mark.requirement("shareplex.accept.12")
@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("halves", [(BEFORE, AFTER), (AFTER, BEFORE)])
def test_two_halves_are_one_update(halves: tuple[dict[str, Any], ...], between: str) -> None:
    """In any order, each provides its own image, and nothing is merged into either."""
    change = row(QUEST, value(*halves, between=between))
    assert (change.op, change.before, change.after) == ("u", {"ID": "1", "A": "2"}, {"ID": "1", "A": "3"})
    assert (change.before_sparse, change.after_sparse, change.changed) == (False, False, ["A"])
    assert (change.row, change.rows, change.ext) == (0, 1, {"rowid": "r"})


def test_a_pair_is_one_row_among_others() -> None:
    """Rows are counted as changes and not as objects, and a pair is at the place of its second half."""
    made = changes(QUEST, value(body("ins", data={"ID": 9}), *IN_ORDER, body("del", data={"ID": 8})))
    assert [(r.op, r.row, r.rows) for r in made if isinstance(r, RowChange)] == [("c", 0, 3), ("u", 1, 3), ("d", 2, 3)]


@pytest.mark.requirement("shareplex.accept.12")
def test_transaction_and_place_join_halves_that_lie_apart() -> None:
    """With all old rows before all new rows, (trans, seq) identifies the pairs."""
    objects = [
        half(which, {"ID": n, "A": which}, trans="1.2.3", seq=n, rowid=f"{which}{n}")
        for which in ("BEFORE", "AFTER")
        for n in (1, 2)
    ]
    made = changes(QUEST, value(*objects))
    rows = [change for change in made if isinstance(change, RowChange)]
    assert [(r.before, r.after) for r in rows] == [
        ({"ID": n, "A": "BEFORE"}, {"ID": n, "A": "AFTER"}) for n in ("1", "2")
    ]
    assert [r.tx for r in rows] == [Tx("1.2.3", n) for n in (1, 2)]


@pytest.mark.requirement("shareplex.accept.14")
def test_idx_tells_the_place_where_seq_does_not() -> None:
    """`idx` is `seq/size`, so separated halves are joined by it as by `seq`."""
    objects = [
        half(which, {"ID": n, "A": which}, trans="1.2.3", idx=f"{n}/2") for which in ("BEFORE", "AFTER") for n in (1, 2)
    ]
    rows = [change for change in changes(QUEST, value(*objects)) if isinstance(change, RowChange)]
    assert [(r.before, r.after, r.tx) for r in rows] == [
        ({"ID": str(n), "A": "BEFORE"}, {"ID": str(n), "A": "AFTER"}, Tx("1.2.3", n, 2, n == 2)) for n in (1, 2)
    ]


@pytest.mark.requirement("shareplex.accept.10")
def test_a_pair_may_change_its_key() -> None:
    """The transaction identifies the row, so the configured key can differ between the halves."""
    translator = Translator("s", dialect(KEYED), Limits())
    pair = half("BEFORE", {"ID": 1}, trans="1.2.3", seq=1), half("AFTER", {"ID": 2}, trans="1.2.3", seq="1")
    result = translator.translate(Message("t", 0, 0, 0, None, value(*pair)))
    assert isinstance(result, Events)
    assert (result.events[0].key, result.events[0].key_old) == ('{"ID":"2"}', '{"ID":"1"}')


@pytest.mark.requirement("shareplex.accept.12")
def test_the_configured_key_joins_halves() -> None:
    """Without row addresses, the same key in both is the same row."""
    assert row(dialect(KEYED), value(*reversed(IN_ORDER))).before == {"ID": "1", "A": "2"}


def test_their_order_joins_halves_that_nothing_contradicts() -> None:
    """Without address, transaction and key, UPDATE BEFORE directly followed by UPDATE AFTER is a pair."""
    assert row(QUEST, value(*IN_ORDER)).after == {"ID": "1", "A": "3"}
    assert refusal(QUEST, value(*reversed(IN_ORDER)))[0] == "UNSUPPORTED_SHAPE"


@pytest.mark.requirement("shareplex.accept.12")
@pytest.mark.parametrize(
    ("reader", "objects", "path"),
    [
        (QUEST, [BEFORE], "$.meta.op"),
        (QUEST, [AFTER], "$.meta.op"),
        (QUEST, [BEFORE, BEFORE], "$[0].meta.op"),
        (QUEST, [BEFORE, AFTER, AFTER], "$[2].meta.op"),
        (QUEST, [body("ins", data={"A": 1}), AFTER], "$[1].meta.op"),
        (QUEST, [BEFORE, body("ins", data={"A": 1}), AFTER], "$[0].meta.op"),
        (QUEST, [BEFORE, half("AFTER", {"ID": 1, "A": 3}, rowid="s")], "$[0].meta.op"),
        (QUEST, [BEFORE, half("AFTER", {"ID": 1, "A": 3}, rowid="r", table="A.U")], "$[0].meta.op"),
        (
            QUEST,
            [half("BEFORE", {"A": 1}, trans="1", seq=1), half("AFTER", {"A": 1}, trans="1", seq=2)],
            "$[0].meta.op",
        ),
        (QUEST, [half("BEFORE", {"A": 1}, trans="1"), half("AFTER", {"A": 1}, trans="2")], "$[0].meta.op"),
        (QUEST, [half("BEFORE", {"A": 1}, seq=1), half("AFTER", {"A": 1}, seq=2)], "$[0].meta.op"),
        (QUEST, [half("BEFORE", {"A": 1}, idx="1/2"), half("AFTER", {"A": 1}, idx="2/2")], "$[0].meta.op"),
        (
            QUEST,
            [half("BEFORE", {"A": 1}, trans="1", idx="1/2"), half("AFTER", {"A": 1}, trans="1", idx="2/2")],
            "$[0].meta.op",
        ),
        (dialect(KEYED), [half("BEFORE", {"ID": 1}), half("AFTER", {"ID": 2})], "$[0].meta.op"),
        (dialect(KEYED), [half("BEFORE", {"A": 1}), half("AFTER", None)], "$[0].meta.op"),
    ],
)
def test_half_an_update_is_refused(reader: Any, objects: list[dict[str, Any]], path: str) -> None:
    """A single half, two of one kind, or halves of two rows are a dead letter that says what joins them."""
    code, reason, where = refusal(reader, value(*objects))
    assert (code, where) == ("UNSUPPORTED_SHAPE", path)
    assert "is missing from the value" in reason


@pytest.mark.requirement("shareplex.accept.12")
def test_halves_of_two_records_are_never_joined() -> None:
    """An event depends only on its own record, so the dialect remembers no half."""
    reader = dialect()
    for _ in range(2):
        assert refusal(reader, value(BEFORE))[0] == "UNSUPPORTED_SHAPE"
        assert refusal(reader, value(AFTER))[0] == "UNSUPPORTED_SHAPE"


def test_a_column_that_vanishes_from_the_second_half_is_refused() -> None:
    """It may be unchanged, or NULL and omitted as in inserts. It is not guessed, and the reason has no value."""
    halves = half("BEFORE", {"ID": 1, "A": "secret"}, rowid="r"), half("AFTER", {"ID": 1}, rowid="r")
    code, reason, path = refusal(QUEST, value(*halves))
    assert (code, path) == ("UNSUPPORTED_SHAPE", "$[1].data")
    assert "'A'" in reason
    assert "secret" not in reason


def test_a_wider_second_half_leaves_changed_unknown() -> None:
    """A column that UPDATE BEFORE lacks was NULL there or did not change."""
    halves = half("BEFORE", {"ID": 1}, rowid="r"), half("AFTER", {"ID": 1, "A": 1}, rowid="r")
    assert row(QUEST, value(*halves)).changed is None


def test_what_the_halves_say_differently_is_kept() -> None:
    """The event uses UPDATE AFTER, and different values of UPDATE BEFORE are kept."""
    first = {**half("BEFORE", {"ID": 1}, rowid="r", x="old", scn=4), "key": {"ID": 1}}
    change = row(QUEST, value(first, half("AFTER", {"ID": 1}, rowid="r", x="new", scn=4)))
    assert change.ext == {"rowid": "r", "x": "new", "UPDATE BEFORE $.key": '{"ID":1}', "UPDATE BEFORE $.meta.x": "old"}
    assert change.notes == ["NOT_TRANSLATED=key", "KEY_UNDECLARED"]
    assert change.pos_native == "4"


def test_a_fault_in_the_first_half_is_said_to_be_there() -> None:
    """A mistake in UPDATE BEFORE rejects the pair."""
    for bad in (half("BEFORE", {}, rowid="r"), half("BEFORE", {"ID": 1}, rowid="r", seq=0)):
        code, reason, _ = refusal(QUEST, value(bad, half("AFTER", {"ID": 1}, rowid="r")))
        assert code == "INVALID_FIELD"
        assert reason.endswith("in its UPDATE BEFORE")


def test_a_pair_of_a_declared_table_names_its_schema() -> None:
    """The declared types apply to both images."""
    meta = {"table": "PHUNT1013U1.X", "rowid": "r"}
    old, new = ({"BAND_NAME": "Rush", "YEAR_END": year} for year in ("2014", "2015"))
    change = row(dialect(BAND), value(half("BEFORE", old, **meta), half("AFTER", new, **meta)))
    assert change.schema is not None
    assert (change.before, change.after) == ({**old, "YEAR_END": 2014}, {**new, "YEAR_END": 2015})


@pytest.mark.requirement("shareplex.accept.2")
def test_taught_spellings_pair_too() -> None:
    """`operations` can define a writer's spellings for its halves."""
    reader = dialect(DeclaredTable("A.T", key=("ID",)), operations={"ub": "UPDATE BEFORE", "ua": "UPDATE AFTER"})
    objects = (body("ub", data={"ID": 1, "A": 1}), body("ua", data={"ID": 1, "A": 2}))
    assert row(reader, value(*objects)).changed == ["A"]
