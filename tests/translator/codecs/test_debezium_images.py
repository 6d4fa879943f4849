"""Old and new images: what completes or replaces them, and when an event is rejected."""

import json
from typing import Any

import msgspec
import pytest

from cdc_core.envelope import ChangeEvent, Column, Issue, TableSchema
from tests.translator.codecs.debezium_readers import Image, root_of
from tests.translator.examples import UPDATE
from translator.codecs.debezium import DebeziumCodec, Options
from translator.errors import ErrorCode, MessageError

BASE = msgspec.structs.replace(UPDATE, key='{"id":7}', key_old=None, unavailable=None, issues=None, changed=None)
SCHEMA = TableSchema.of(
    "shop",
    "shop",
    "dbo",
    "orders",
    [
        Column("id", "int64", key=1),
        Column("note", "string"),
        Column("photo", "bytes"),
        Column("price", "decimal(9,2)"),
    ],
    "primary",
)
NEW = {"id": 7, "note": "new", "photo": "AA==", "price": "12.50"}
OLD = {"id": 7, "note": "old", "photo": "AA==", "price": "9.90"}


def event(op: str, before: Image | None, after: Image | None, **fields: Any) -> ChangeEvent:
    """Return an event of the row with key 7."""
    texts = {name: image and json.dumps(image) for name, image in (("before", before), ("after", after))}
    return msgspec.structs.replace(BASE, op=op, **{**texts, **fields})


def written(change: ChangeEvent, schema: TableSchema | None = None, **options: Any) -> list[tuple[Any, Any, Any]]:
    """Return the operation, old and new image of every record of the event."""
    codec = DebeziumCodec(msgspec.convert(options, Options))
    roots = [root_of(record, block=False) for record in codec.encode(change, schema)]
    return [(root["op"], root["before"], root["after"]) for root in roots]


def refusal(change: ChangeEvent, schema: TableSchema | None = None, **options: Any) -> MessageError:
    """Return the error that rejects the event."""
    with pytest.raises(MessageError) as refused:
        written(change, schema, **options)
    return refused.value


def only(policy: str) -> dict[str, Any]:
    """Return options with one policy for old images."""
    return {"missing_before": [policy]}


UPDATE_WITHOUT = event("u", None, NEW)
UPDATE_SPARSE = event("u", {"id": 7, "price": "9.90", "note": "old"}, NEW, changed=["price", "note"])
UPDATE_UNKNOWN = event("u", {"id": 7, "price": "9.90"}, NEW)
UPDATE_LOST = event("u", {"id": 7}, NEW, changed=["price"])
UPDATE_UNTOUCHED = event("u", None, NEW, changed=[])
DELETE_WITHOUT = event("d", None, None)
DELETE_KEY = event("d", {"id": 7}, None, before_state="key")
DELETE_PART = event("d", {"id": 7, "note": "old"}, None, before_state="partial")
KEYLESS = event("u", None, NEW, key=None)
KEYLESS_DELETE = event("d", None, None, key=None)

# The table of docs/debezium.md: the result of each policy for a missing or incomplete old image. None means that the
# policy does not apply.
POLICIES: list[tuple[str, ChangeEvent, list[tuple[Any, Any, Any]] | None]] = [
    ("merge", UPDATE_WITHOUT, None),
    ("merge", UPDATE_SPARSE, [("u", {"id": 7, "note": "old", "photo": "AA==", "price": "9.90"}, NEW)]),
    ("merge", UPDATE_UNKNOWN, None),
    ("merge", UPDATE_LOST, None),
    ("merge", UPDATE_UNTOUCHED, [("u", NEW, NEW)]),
    ("merge", DELETE_WITHOUT, None),
    ("merge", DELETE_KEY, None),
    ("as_create", UPDATE_WITHOUT, [("c", None, NEW)]),
    ("as_create", UPDATE_SPARSE, [("c", None, NEW)]),
    ("as_create", UPDATE_UNKNOWN, [("c", None, NEW)]),
    ("as_create", DELETE_WITHOUT, None),
    ("as_create", KEYLESS, None),
    ("partial", UPDATE_WITHOUT, [("u", {"id": 7}, NEW)]),
    ("partial", UPDATE_SPARSE, [("u", {"id": 7, "price": "9.90", "note": "old"}, NEW)]),
    ("partial", UPDATE_UNKNOWN, [("u", {"id": 7, "price": "9.90"}, NEW)]),
    ("partial", DELETE_WITHOUT, [("d", {"id": 7}, None)]),
    ("partial", DELETE_KEY, [("d", {"id": 7}, None)]),
    ("partial", KEYLESS, None),
    ("partial", KEYLESS_DELETE, None),
    ("drop_event", UPDATE_WITHOUT, []),
    ("drop_event", UPDATE_SPARSE, []),
    ("drop_event", DELETE_WITHOUT, []),
    ("drop_event", DELETE_KEY, []),
    ("drop_event", KEYLESS_DELETE, []),
    ("fail", UPDATE_WITHOUT, None),
    ("fail", UPDATE_SPARSE, None),
    ("fail", DELETE_KEY, None),
]


class TestMissingBefore:
    @pytest.mark.parametrize(("policy", "change", "expected"), POLICIES)
    def test_policy(self, policy: str, change: ChangeEvent, expected: list[tuple[Any, Any, Any]] | None) -> None:
        """A single policy gives this result, or the event is rejected if it does not apply."""
        if expected is None:
            assert refusal(change, **only(policy)).code is ErrorCode.UNSUPPORTED_SHAPE
        else:
            assert expected == written(change, **only(policy))

    @pytest.mark.parametrize(
        ("change", "op"),
        [
            (UPDATE_WITHOUT, "c"),
            (UPDATE_SPARSE, "u"),
            (UPDATE_UNKNOWN, "c"),
            (UPDATE_LOST, "c"),
            (UPDATE_UNTOUCHED, "u"),
            (DELETE_WITHOUT, "d"),
            (DELETE_KEY, "d"),
        ],
    )
    def test_defaults(self, change: ChangeEvent, op: str) -> None:
        """By default, an old image is completed, or else the update becomes a create. A delete needs only its key."""
        assert [op] == [found for found, _, _ in written(change)]

    def test_order(self) -> None:
        """The first applicable policy decides."""
        assert [("u", {"id": 7}, NEW)] == written(UPDATE_WITHOUT, missing_before=["merge", "partial", "as_create"])

    def test_reason(self) -> None:
        """The error says what arrived and how to solve it, and never shows a value."""
        message = str(refusal(KEYLESS))
        assert "op u arrived without an old image and without a key, which missing_before rejects;" in message
        assert "add drop_event as the last policy to skip such events" in message
        assert "with an incomplete old image," in str(refusal(UPDATE_UNKNOWN, **only("fail")))
        assert "9.90" not in str(refusal(UPDATE_UNKNOWN, **only("fail")))

    @pytest.mark.parametrize("policy", ["merge", "as_create", "partial", "drop_event", "fail"])
    @pytest.mark.parametrize(
        "change",
        [
            event("u", OLD, NEW),
            event("d", OLD, None, before_state="full"),
            DELETE_PART,
            event("u", OLD, NEW, key=None),
            # The old value has no form, and no policy can give it one.
            event("u", {**OLD, "price": None}, NEW, changed=["price"]),
            event("u", {"id": 7, "note": "old"}, {"id": 7, "note": "new"}),
        ],
    )
    def test_not_missing(self, change: ChangeEvent, policy: str) -> None:
        """An old image with all columns of the new one is written unchanged under any policy."""
        expected = (change.op, json.loads(change.before or ""), change.after and json.loads(change.after))
        assert [expected] == written(change, **only(policy))

    def test_an_issue_is_not_missing(self) -> None:
        """An old value without a form is unavailable, and readers never had one before either."""
        before = {name: value for name, value in OLD.items() if name != "photo"}
        change = event("u", before, NEW, issues=[Issue("photo", "NOT_BASE64", "?")])
        assert [("u", before, NEW)] == written(change, SCHEMA, **only("fail"))

    def test_incomplete_delete(self) -> None:
        """If the table's columns are known, an old image that lacks one is incomplete. What was sent is kept."""
        assert "with an incomplete old image" in str(refusal(DELETE_PART, SCHEMA, **only("fail")))
        assert [("d", {"id": 7, "note": "old"}, None)] == written(DELETE_PART, SCHEMA)

    def test_key_of_the_old_row(self) -> None:
        """The key is known even if the image does not repeat it."""
        assert [("d", {"id": 7, "note": "old"}, None)] == written(event("d", {"note": "old"}, None))
        change = event("u", {"price": "9.90"}, {"price": "12.50"})
        assert [("u", {"id": 7, "price": "9.90"}, {"id": 7, "price": "12.50"})] == written(change)


class TestNewImage:
    def test_completed(self) -> None:
        """If the event lists the changed columns, unchanged ones are taken from the old image."""
        change = event("u", OLD, {"id": 7, "price": "12.50"}, changed=["price"])
        assert [("u", OLD, {**OLD, "price": "12.50"})] == written(change, SCHEMA)

    def test_not_completed(self) -> None:
        """If the changed columns are unknown, nothing is filled in. A column without a new value has no old one."""
        change = event("u", OLD, {"id": 7, "price": "12.50"})
        expected = [("u", {"id": 7, "price": "9.90"}, {"id": 7, "price": "12.50"})]
        assert expected == written(change) == written(change, SCHEMA)

    @pytest.mark.parametrize(
        "fields", [{"unavailable": ["photo"]}, {"issues": [Issue("photo", "NOT_BASE64", "?")]}], ids=list
    )
    def test_withheld_is_not_completed(self, fields: dict[str, Any]) -> None:
        """A value that the source withheld is not taken from the old image, even if that has one."""
        after = {name: value for name, value in NEW.items() if name != "photo"}
        change = event("u", OLD, after, changed=["note", "price"], **fields)
        ((_, before, written_after),) = written(change, SCHEMA)
        assert after == written_after
        assert "photo" not in before


WITHHELD = event("u", OLD, {"id": 7, "price": "12.50"}, unavailable=["note", "photo"])


class TestUnavailable:
    def test_omit(self) -> None:
        """The column is absent. The placeholder is written only on request."""
        assert [("u", {"id": 7, "price": "9.90"}, {"id": 7, "price": "12.50"})] == written(WITHHELD, SCHEMA)

    def test_placeholder(self) -> None:
        """The placeholder is Debezium's text, in base64 for a bytes column."""
        marks = {"note": "__debezium_unavailable_value", "photo": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}
        expected = [("u", OLD, {"id": 7, "price": "12.50", **marks})]
        assert expected == written(WITHHELD, SCHEMA, unavailable="placeholder")

    def test_placeholder_without_schema(self) -> None:
        """A column of unknown type gets the text."""
        ((_, _, after),) = written(WITHHELD, unavailable="placeholder")
        assert after["photo"] == "__debezium_unavailable_value"

    def test_placeholder_in_a_number(self) -> None:
        """A number cannot express the text, so the row is rejected rather than written with a NULL."""
        change = event("u", OLD, {"id": 7, "note": "n", "photo": "AA=="}, unavailable=["price"])
        error = refusal(change, SCHEMA, unavailable="placeholder")
        assert error.code is ErrorCode.UNSUPPORTED_SHAPE
        assert "column 'price' has no value, and its type is decimal(9,2)" in error.reason
        assert "placeholder works only for string, json, unknown, bytes" in error.reason

    def test_no_placeholder_in_a_new_row(self) -> None:
        """The placeholder means "keep the value", and a new row has none."""
        change = event("c", None, {"id": 7}, unavailable=["note"])
        assert [("c", None, {"id": 7})] == written(change, unavailable="placeholder")

    @pytest.mark.parametrize(
        ("change", "schema"),
        [
            (WITHHELD, None),
            (event("c", None, {"id": 7}, issues=[Issue("born", "ZERO_DATE", "0")]), None),
            (event("u", {"id": 7}, {"id": 7}), SCHEMA),
            (event("u", OLD, {"id": 7}), None),
        ],
        ids=["withheld", "issue", "not sent", "in the old image only"],
    )
    def test_fail(self, change: ChangeEvent, schema: TableSchema | None) -> None:
        """Every column that the row is known to have must have a value."""
        error = refusal(change, schema, unavailable="fail")
        assert error.code is ErrorCode.UNSUPPORTED_SHAPE
        assert "has no value, but unavailable: fail requires a value" in error.reason

    def test_fail_is_content(self) -> None:
        """An issue of the old value does not affect the new image, and a full row is written."""
        change = event("u", OLD, NEW, issues=[Issue("note", "LONE_SURROGATE", "?")])
        assert [("u", OLD, NEW)] == written(change, SCHEMA, unavailable="fail")


MOVED = {**NEW, "id": 8}
KEYS = {"key": '{"id":8}', "key_old": '{"id":7}'}


class TestKeyChange:
    def test_whole(self) -> None:
        """The complete old row is deleted, and the new one is created."""
        assert [("d", OLD, None), ("c", None, MOVED)] == written(event("u", OLD, MOVED, **KEYS), SCHEMA)

    @pytest.mark.parametrize(
        ("before", "changed", "deleted"),
        [
            ({"id": 7, "note": "old"}, ["id", "note"], {**NEW, "id": 7, "note": "old"}),
            ({"id": 7, "note": "old"}, None, {"id": 7, "note": "old"}),
            (None, None, {"id": 7}),
        ],
        ids=["merge", "partial", "key only"],
    )
    def test_old_image(self, before: Image | None, changed: list[str] | None, deleted: Image) -> None:
        """The delete follows the policies for deletes, and `merge`. It can never be a create of the old key."""
        change = event("u", before, MOVED, changed=changed, **KEYS)
        assert [("d", deleted, None), ("c", None, MOVED)] == written(change)

    def test_dropped(self) -> None:
        """Both halves are dropped, or neither."""
        assert [] == written(event("u", None, MOVED, **KEYS), **only("drop_event"))

    @pytest.mark.parametrize(
        ("change", "column"),
        [
            (event("u", OLD, {"id": 8, "price": "12.50"}, **KEYS), "note"),
            (event("u", {"id": 7}, {"id": 8, "note": "n", "price": "1.00"}, **KEYS), "photo"),
            (event("u", {"id": 7}, {**MOVED}, unavailable=["blob"], **KEYS), "blob"),
        ],
        ids=["in the old image", "in the schema", "unavailable"],
    )
    @pytest.mark.parametrize("unavailable", ["omit", "placeholder"])
    def test_incomplete(self, change: ChangeEvent, column: str, unavailable: str) -> None:
        """The create would replace values of the deleted row with NULL, which no option permits."""
        error = refusal(change, SCHEMA, unavailable=unavailable)
        assert error.code is ErrorCode.KEY_CHANGE_INCOMPLETE
        assert f"the new row lacks column {column!r}" in error.reason

    def test_completed(self) -> None:
        """Unchanged values come from the old image."""
        change = event("u", OLD, {"id": 8, "note": "new"}, changed=["id", "note"], **KEYS)
        assert [("d", OLD, None), ("c", None, {**OLD, "id": 8, "note": "new"})] == written(change, SCHEMA)

    def test_issue(self) -> None:
        """A value without a form is missing in the new row, as in an insert."""
        after = {name: value for name, value in MOVED.items() if name != "note"}
        change = event("u", OLD, after, issues=[Issue("note", "LONE_SURROGATE", "?")], **KEYS)
        for unavailable in ("omit", "placeholder"):
            assert [("d", OLD, None), ("c", None, after)] == written(change, SCHEMA, unavailable=unavailable)

    def test_to_null(self) -> None:
        """If a key becomes NULL, its row is deleted and continues without a key, like other such rows."""
        change = event("u", OLD, {**NEW, "id": None}, key=None, key_old='{"id":7}')
        assert [("d", OLD, None), ("c", None, {**NEW, "id": None})] == written(change)
        gone, new = DebeziumCodec().encode(change)
        assert (b'{"id":7}', None) == (gone.key, new.key)
        assert "__debezium.newkey" not in dict(gone.headers)
        assert b'{"id":7}' == dict(new.headers)["__debezium.oldkey"]

    def test_from_null(self) -> None:
        """A row that gets a key is deleted as a row without one and created under its key."""
        change = event("u", {**OLD, "id": None}, NEW)
        assert [("d", {**OLD, "id": None}, None), ("c", None, NEW)] == written(change)
        gone, new = DebeziumCodec().encode(change)
        assert (None, b'{"id":7}') == (gone.key, new.key)
        assert b'{"id":7}' == dict(gone.headers)["__debezium.newkey"]
        assert "__debezium.oldkey" not in dict(new.headers)

    def test_from_null_without_the_old_image(self) -> None:
        """Readers that keep rows by key never had it, so a create is enough. Others get what they configured."""
        change = event("u", {"id": None}, NEW)
        assert [("c", None, NEW)] == written(change, **only("as_create"))
        assert "op u arrived with an incomplete old image," in refusal(change, **only("partial")).reason
        lacking = event("u", {"id": None}, {"id": 7, "note": "new"})
        assert refusal(lacking, SCHEMA).code is ErrorCode.KEY_CHANGE_INCOMPLETE
