"""SharePlex messages to events: every subset of `meta`, images, keys, positions and other shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc_core.envelope import ChangeEvent
from tests.translator.dialects.shareplex.messages import BAND, KEYED, body, dialect, refusal, row, sample
from translator.dialects.shareplex import SharePlex
from translator.message import DeclaredTable, Limits, Message, TableName
from translator.translation.translate import Events, Translator


def event(reader: SharePlex, value: bytes | dict[str, Any]) -> ChangeEvent:
    """Return the only event of a value."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    result = Translator("s", reader, Limits()).translate(Message("raw.t", 2, 7, 0, None, raw))
    assert isinstance(result, Events), result
    (only,) = result.events
    return only


WHOLE_META: dict[str, Any] = {
    "time": "2017-06-16T14:24:34",
    "userid": 84,
    "scn": "14589063118712",
    "rowid": "AAATGpAAIAAItcIAAA",
    "trans": "7.0.411499",
    "seq": 1,
    "size": 11,
    "idx": "1/11",
    "posttime": "2017-06-16T14:33:52",
    "host": "ora1",
    "queue": "q1",
    "source": "s1",
    "changeid": 9,
}


@pytest.mark.requirement("shareplex.accept.4")
@pytest.mark.parametrize("preset", ["quest", "dts", "lenient"])
def test_every_subset_of_meta_is_read(preset: str) -> None:
    """Whichever members the source enables, the row is the same, and every member has its place."""
    names = list(WHOLE_META)
    reader = dialect(KEYED, preset=preset)
    for chosen in range(0, 2 ** len(names), 7):
        meta = {name: WHOLE_META[name] for n, name in enumerate(names) if chosen >> n & 1}
        change = row(reader, body("ins", meta=meta, data={"ID": 1}))
        assert (change.after, change.pos_native) == ({"ID": "1"}, meta.get("scn"))
        assert change.writer.server == meta.get("host")
        seq, size = (1 if name in meta or "idx" in meta else None for name in ("seq", "size"))
        counts = (seq, size and 11, False if seq and size else None)
        tx = change.tx
        assert (tx and (tx.id, tx.seq, tx.size, tx.last)) == (("7.0.411499", *counts) if "trans" in meta else None)
        for name, instant, micros in (
            ("time", change.ts_commit_us, 1_497_623_074_000_000),
            ("posttime", change.ts_capture_us, 1_497_623_632_000_000),
        ):
            told = micros if name in meta and preset == "dts" else None
            assert instant == told
            assert (name in (change.ext or {})) == (name in meta and told is None)
        kept = change.ext or {}
        for name in ("userid", "rowid", "queue", "source", "changeid"):
            assert kept.get(name) == (str(meta[name]) if name in meta else None)


@pytest.mark.requirement("shareplex.accept.8")
def test_images_say_how_whole_they_are() -> None:
    """Quest's update has only the `key` before and is completed after. DTS's wide image has all declared columns."""
    declared = event(dialect(BAND), sample("quest_update"))
    assert (declared.before_state, declared.after_state) == ("key", "merged")
    assert (declared.after, declared.changed) == ('{"BAND_NAME":"Rush","YEAR_END":2015}', ["YEAR_END"])
    wide = DeclaredTable("A.T", key=("ID",), columns={"ID": "int32", "A": "string"})
    full = event(dialect(wide, preset="dts"), body("upd", data={"A": None}, key={"ID": 1, "A": "x"}))
    assert (full.before_state, full.after_state, full.after) == ("full", "full", '{"ID":1,"A":null}')
    assert event(dialect(BAND), sample("quest_delete")).before_state == "full"
    assert event(dialect(), sample("quest_insert")).after_state == "partial"


@pytest.mark.requirement("shareplex.accept.10")
@pytest.mark.parametrize("preset", ["quest", "dts"])
def test_a_key_change_carries_both_keys(preset: str) -> None:
    """A key column with different values in `key` and `data` identifies the old and the new row."""
    changed = event(dialect(KEYED, preset=preset), body("upd", data={"ID": 8}, key={"ID": 7, "A": "x"}))
    assert (changed.op, changed.key, changed.key_old) == ("u", '{"ID":"8"}', '{"ID":"7"}')
    assert changed.notes == ["PK_CHANGED"]
    assert changed.after == '{"ID":"8","A":"x"}'


@pytest.mark.requirement("shareplex.accept.13")
def test_truncate_and_drop_column_as_events() -> None:
    """Neither is a row. One empties the table, the other changes its structure and keeps its content."""
    truncate = event(dialect(KEYED), body("TRUNCATE", meta={"scn": 5}))
    assert (truncate.kind, truncate.op, truncate.table, truncate.key) == ("row", "t", "T", None)
    drop = event(dialect(KEYED), body("DROP COLUMN", meta={"scn": 5, "trans": "1.2.3"}, data={"COLUMN": "A"}))
    assert (drop.kind, drop.op, drop.schema, drop.table) == ("schema", None, "A", "T")
    assert drop.ddl is not None
    assert (drop.ddl.type, drop.ddl.parsed, drop.pos_native) == ("DROP COLUMN", False, "5")
    assert drop.ext == {"$.data": '{"COLUMN":"A"}'}


@pytest.mark.requirement("shareplex.accept.15")
def test_names_keep_their_case() -> None:
    """Two columns can differ only in case, and tables keep their spelling."""
    change = row(dialect(), body("ins", meta={"table": '"Owner"."tAb"'}, data={"id": 1, "ID": 2}))
    assert (change.table, change.after) == (TableName(None, "Owner", "tAb"), {"id": "1", "ID": "2"})


@pytest.mark.requirement("shareplex.accept.16")
def test_position_and_identity() -> None:
    """Order and id are those of the record. The source's own values are kept in addition."""
    found = event(dialect(KEYED, preset="dts"), body("ins", meta=WHOLE_META, data={"ID": 1}))
    assert found.id == "s/raw.t/2/7/0"
    assert (found.origin.topic, found.origin.partition, found.origin.offset) == ("raw.t", 2, 7)
    assert found.tx is not None
    assert (found.pos_native, found.tx.id, found.tx.seq) == ("14589063118712", "7.0.411499", 1)
    assert (found.ext or {})["changeid"] == "9"


@pytest.mark.requirement("shareplex.reject.2")
def test_the_flink_sink_is_named() -> None:
    """Its shape has no `meta`, and the dead letter names the writer."""
    code, reason, _ = refusal(dialect(), b'{"data":{"A":1},"type":"insert"}')
    assert code == "UNSUPPORTED_SHAPE"
    assert "Flink sink" in reason


@pytest.mark.requirement("shareplex.reject.3")
def test_an_unknown_operation_names_the_known_ones() -> None:
    """The error lists the codes, the documented words and the operator's spellings."""
    _, reason, _ = refusal(dialect(operations={"refresh": "ins"}), body("ddl", data={"A": 1}))
    assert {"ins", "upd", "del", "TRUNCATE", "DROP COLUMN", "UPDATE BEFORE", "refresh"} <= set(
        reason.partition("allowed: ")[2].split(", ")
    )


@pytest.mark.requirement("shareplex.reject.7")
@pytest.mark.parametrize("rowid", ["AAATGpAAIAAItcIAAA", "*BAMAASMCwQL+", "(0,12)", "", 12])
def test_a_row_address_may_be_any(rowid: Any) -> None:
    """Index-organized tables and other databases have their own form, which has no meaning here."""
    assert (row(dialect(), body("ins", meta={"rowid": rowid}, data={"A": 1})).ext or {})["rowid"] == str(rowid)
