"""The optional members of `meta` (§2), and table names."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cdc_core.envelope import Tx
from tests.translator.dialects.shareplex.messages import body, dialect, refusal, row, sample
from translator.dialects.shareplex import SharePlex
from translator.message import DeclaredTable, Limits, Message, RowChange, TableName
from translator.translation.translate import Events, Translator
from translator.values import Assumed, timestamptz_in

QUEST = dialect()
DTS = dialect(preset="dts")
LENIENT = dialect(preset="lenient")


def micros(*fields: int) -> int:
    """Return a UTC time as microseconds since 1970."""
    return int(datetime(*fields, tzinfo=UTC).timestamp()) * 1_000_000  # type: ignore[misc, arg-type]


def with_meta(reader: SharePlex, **meta: Any) -> RowChange:
    """Return an insert with that in its meta."""
    return row(reader, body("ins", meta=meta, data={"A": 1}))


def refused_meta(reader: SharePlex, **meta: Any) -> tuple[str, str, str]:
    """Return the refusal of an insert with that in its meta."""
    return refusal(reader, body("ins", meta=meta, data={"A": 1}))


@pytest.mark.requirement("shareplex.accept.4")
def test_everything_but_op_and_table_is_optional() -> None:
    """Default Quest output has no other member. A null counts as absent."""
    for change in (row(QUEST, sample("quest_insert")), with_meta(QUEST, scn=None, time=None, trans=None, x=None)):
        assert (change.ts_commit_us, change.ts_capture_us, change.pos_native) == (None, None, None)
        assert (change.tx, change.ext) == (None, None)


@pytest.mark.requirement("shareplex.accept.4")
def test_all_members_find_their_place() -> None:
    """Position, transaction and both times have their own fields. User and row address are extras."""
    change = row(DTS, sample("dts_insert"))
    assert change.pos_native == "14589063118712"
    assert change.tx == Tx("7.0.411499", seq=1, size=11, last=False)
    assert change.ts_commit_us == micros(2017, 6, 16, 14, 24, 34)
    assert change.ts_capture_us == micros(2017, 6, 16, 14, 33, 52)
    assert change.ext == {"userid": "84", "rowid": "AAATGpAAIAAItcIAAA"}
    assert change.notes == ["TZ_ASSUMED=UTC", "KEY_UNDECLARED"]


@pytest.mark.requirement("shareplex.accept.16", "shareplex.accept.4")
def test_unknown_members_are_kept_as_text() -> None:
    """Text is unchanged, and anything else becomes JSON text with exact numbers, also for members of the root."""
    change = row(
        QUEST, b'{"meta":{"op":"ins","table":"T","changeid":9,"queue":"q","z":[1.50,{"a":null}]},"data":{"A":1},"v":2}'
    )
    assert change.ext == {"changeid": "9", "queue": "q", "z": '[1.50,{"a":null}]', "$.v": "2"}
    assert change.notes == ["NOT_TRANSLATED=v", "KEY_UNDECLARED"]


def test_host_is_the_server() -> None:
    """`host` is what the source says about itself."""
    assert with_meta(QUEST, host="ora1").writer.server == "ora1"
    assert with_meta(QUEST).writer.server is None


# -- times


@pytest.mark.requirement("shareplex.accept.6")
def test_a_time_without_a_zone_is_no_instant() -> None:
    """Preset quest knows no zone, so there is no commit time. The text is kept, and the event explains it."""
    change = with_meta(QUEST, time="2017-06-16T14:24:34")
    assert (change.ts_commit_us, change.ext) == (None, {"time": "2017-06-16T14:24:34"})
    assert change.notes == ["TZ_UNKNOWN", "KEY_UNDECLARED"]


@pytest.mark.requirement("shareplex.accept.6")
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("2017-06-16T14:24:34Z", micros(2017, 6, 16, 14, 24, 34)),
        ("2017-06-16 14:24:34", micros(2017, 6, 16, 6, 24, 34)),
        ("2017-06-16T14:24:34.", micros(2017, 6, 16, 6, 24, 34)),
        ("2017-06-16T14:24:34.5", micros(2017, 6, 16, 6, 24, 34) + 500_000),
        ("2017-06-16T14:24:34.000001000-05", micros(2017, 6, 16, 19, 24, 34) + 1),
        ("1969-12-31T23:59:59.999999+0000", -1),
        ("0001-01-01T00:00:00+14:00", micros(1, 1, 1, 0, 0, 0) - 14 * 3_600_000_000),
    ],
)
def test_times_are_exact_instants(sent: str, expected: int) -> None:
    """A zone in the text overrides the configured one. 0 to 9 fraction digits are accepted."""
    change = with_meta(dialect(timezone="+08:00"), posttime=sent)
    assert (change.ts_capture_us, change.ext) == (expected, None)


@pytest.mark.requirement("shareplex.accept.6")
def test_digits_below_a_microsecond_are_kept() -> None:
    """Digits that do not fit an instant remain in `ext` as sent."""
    change = with_meta(DTS, time="1970-01-01T00:00:00.000001999")
    assert (change.ts_commit_us, change.ext) == (1, {"time": "1970-01-01T00:00:00.000001999"})


@pytest.mark.requirement("shareplex.accept.6")
@pytest.mark.parametrize(
    ("sent", "expected", "note"),
    [
        ("2023-11-05T01:30:00", micros(2023, 11, 5, 5, 30, 0), "TZ_OVERLAP"),  # the earlier of both
        ("2023-03-12T02:30:00", micros(2023, 3, 12, 7, 30, 0), "TZ_GAP"),  # by the offset before the change
    ],
)
def test_an_hour_that_comes_twice_or_never_is_read_as_in_columns(sent: str, expected: int, note: str) -> None:
    """As in a column of that zone, the offset before the change is used. The event says so and keeps the text."""
    zoned = dialect(timezone="America/New_York")
    change = with_meta(zoned, time=sent)
    assert (change.ts_commit_us, change.ext) == (expected, {"time": sent})
    assert change.notes == ["TZ_ASSUMED=America/New_York", f"{note}=meta.time", "KEY_UNDECLARED"]
    with pytest.raises(Assumed) as assumed:
        timestamptz_in("America/New_York")(sent)
    assert str(assumed.value.value) == datetime.fromtimestamp(expected / 1e6, UTC).isoformat()[:19] + "Z"
    assert with_meta(zoned, posttime=sent).notes == [
        "TZ_ASSUMED=America/New_York",
        f"{note}=meta.posttime",
        "KEY_UNDECLARED",
    ]


def test_an_assumed_time_of_meta_is_none_of_a_key_column() -> None:
    """A key column called `time` is not what the note is about."""
    declared = DeclaredTable("A.T", key=("time",))
    translator = Translator("s", dialect(declared, timezone="America/New_York"), Limits())
    value = json.dumps(body("ins", meta={"time": "2023-11-05T01:30:00"}, data={"time": "x"})).encode()
    result = translator.translate(Message("t", 0, 0, 0, None, value))
    assert isinstance(result, Events)
    assert result.events[0].key == '{"time":"x"}'


# -- position and transaction


@pytest.mark.requirement("shareplex.accept.4")
def test_scn_may_be_a_number() -> None:
    """It has up to 20 digits and is kept exactly as text."""
    assert with_meta(QUEST, scn=18446744073709551615).pos_native == "18446744073709551615"


@pytest.mark.requirement("shareplex.reject.6")
def test_scn_of_other_databases_is_their_own_token() -> None:
    """Presets dts and lenient accept any token, because PolarDB-O has no Oracle SCN. quest requires digits."""
    for reader in (DTS, LENIENT):
        assert with_meta(reader, scn="0/16B3748").pos_native == "0/16B3748"
    assert refused_meta(QUEST, scn="0/16B3748")[::2] == ("INVALID_FIELD", "$.meta.scn")


@pytest.mark.requirement("shareplex.accept.14")
@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, Tx("1.2.3")),
        ({"seq": 2}, Tx("1.2.3", seq=2)),
        ({"size": "3"}, Tx("1.2.3", size=3)),
        ({"idx": "3/3"}, Tx("1.2.3", 3, 3, True)),
        ({"seq": "2", "size": 3, "idx": "2/3"}, Tx("1.2.3", 2, 3, False)),
        ({"size": 3, "idx": "1/3"}, Tx("1.2.3", 1, 3, False)),
    ],
)
def test_idx_and_counts_complete_each_other(meta: dict[str, Any], expected: Tx) -> None:
    """`idx` is `seq/size`. With both, the last change of a transaction is known."""
    assert with_meta(QUEST, trans="1.2.3", **meta).tx == expected


@pytest.mark.requirement("shareplex.accept.14")
def test_counts_without_a_transaction_are_extras() -> None:
    """Without `trans`, it is unknown what is counted."""
    change = with_meta(QUEST, seq=1, idx="1/2")
    assert (change.tx, change.ext) == (None, {"idx": "1/2", "seq": "1"})


INVALID: list[tuple[str, dict[str, Any]]] = [
    ("time", {"time": "yesterday"}),
    ("time", {"time": "2017-02-30T00:00:00"}),
    ("time", {"time": "2017-06-16T14:24:34+25:00"}),
    ("time", {"time": "2017-06-16T14:24:34+05:75"}),
    ("time", {"time": 1497623074}),
    ("posttime", {"posttime": "2017-06-16T24:00:00"}),
    ("scn", {"scn": ""}),
    ("scn", {"scn": 1.5}),
    ("scn", {"scn": True}),
    ("trans", {"trans": {}}),
    ("seq", {"seq": 0}),
    ("seq", {"seq": "x"}),
    ("seq", {"seq": 2**63}),
    ("size", {"size": True}),
    ("size", {"size": "99999999999999999999"}),
    ("idx", {"idx": "1/2/3"}),
    ("idx", {"idx": "12"}),
    ("idx", {"idx": "0/2"}),
    ("idx", {"idx": "3/2"}),
    ("idx", {"idx": "1/2", "size": 3}),
    ("idx", {"idx": "1/2", "seq": 2}),
    ("seq", {"seq": 3, "size": 2}),
]


@pytest.mark.requirement("shareplex.reject.6", "shareplex.reject.7")
@pytest.mark.parametrize(("name", "meta"), INVALID)
@pytest.mark.parametrize("reader", [QUEST, DTS])
def test_invalid_members_are_refused(reader: SharePlex, name: str, meta: dict[str, Any]) -> None:
    """Strict presets reject a member that contradicts its description, by name."""
    assert refused_meta(reader, **meta)[::2] == ("INVALID_FIELD", f"$.meta.{name}")


@pytest.mark.requirement("shareplex.reject.6", "shareplex.reject.7")
@pytest.mark.parametrize(("name", "meta"), INVALID)
def test_invalid_members_are_set_aside_when_lenient(name: str, meta: dict[str, Any]) -> None:
    """Preset lenient keeps them as text, notes their names, and gives no field a doubtful value."""
    change = with_meta(LENIENT, trans="1.2.3", **meta) if name != "trans" else with_meta(LENIENT, **meta)
    assert change.ext is not None
    assert change.ext.keys() == meta.keys()
    assert f"INVALID_META={name}" in (change.notes or ())
    assert change.tx == (None if name == "trans" else Tx("1.2.3"))
    assert (change.ts_commit_us, change.ts_capture_us, change.pos_native) == (None, None, None)


# -- table names


@pytest.mark.requirement("shareplex.accept.3")
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("T", TableName(None, None, "T")),
        ("Own.Tab", TableName(None, "Own", "Tab")),
        ("A.B.C", TableName(None, "A", "B.C")),
        ('"My.Schema"."My.Table"', TableName(None, "My.Schema", "My.Table")),
        ('A."t.x"', TableName(None, "A", "t.x")),
        ("数据.表", TableName(None, "数据", "表")),
    ],
)
def test_table_names_split_at_the_first_free_dot(raw: str, expected: TableName) -> None:
    """Owner and table keep their case. Quotes are syntax, and the raw text of a quoted name is kept."""
    change = with_meta(QUEST, table=raw)
    assert change.table == expected
    assert change.ext == ({"table": raw} if '"' in raw else None)


@pytest.mark.requirement("shareplex.reject.3")
@pytest.mark.parametrize(
    "raw", ["", ".", "A.", ".T", "A..T", "A.B.", '"A', '"A.T', 'A"B.T', '"".T', '"A"B.T', '"A"."B".C']
)
def test_table_names_with_an_empty_part_or_odd_quotes_are_refused(raw: str) -> None:
    """An ambiguous name is not guessed at, and an empty one is not the default table."""
    reader = dialect(default_table="X.Y")
    assert refused_meta(reader, table=raw)[::2] == ("INVALID_FIELD", "$.meta.table")


@pytest.mark.requirement("shareplex.accept.3")
def test_default_table_is_for_messages_without_one() -> None:
    """`default_table` replaces only a missing name, and its declaration applies."""
    reader = dialect(DeclaredTable("X.*", key=("A",)), default_table="X.Y")
    assert with_meta(reader, table=None).key_columns == ("A",)
    assert with_meta(reader).table == TableName(None, "A", "T")
