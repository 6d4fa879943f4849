"""Plug-ins that lack a property: the scorecard shows exactly that."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from translator.conformance import Scorecard, scorecard
from translator.conformance.battery import write_results
from translator.conformance.new_package import create
from translator.dialects import _contained, _time_limit
from translator.dialects._plugin_calls import call

Plugin = Callable[..., Scorecard]

KEY = "change.key_columns, change.key_kind = self._key"
VALUES_APART = "absent, NULL, unavailable"
TABLE = 'table = TableName(None, None, field(body, "table", str, "$"))'
RETURN = "return Changes([change])"
CANONICAL = '{column: _canonical(value, f"$.{name}") for column, value in row.items()}'
MANY = """if not field(body, "rows", list, "$"):
            return Skip("empty")
        return Changes([self._change(body, row) for row in _pick(field(body, "rows", list, "$"))])

    def _change(self, body: Any, row: Any) -> RowChange:
        if not isinstance(row, dict):
            raise MessageError(ErrorCode.INVALID_FIELD, "a row is not an object")
        table = TableName(None, None, field(body, "table", str, "$"))
        change = RowChange("u", table, Writer(), _image(row, "old"), _image(row, "new"), ts_commit_us=1)
        if change.after is None:
            raise MessageError(ErrorCode.MISSING_FIELD, "a row has no new values")
        change.key_columns, change.key_kind = self._key, "primary"
        change.tx = Tx("1")
        return change"""
PICK = """def _all(rows: list[Any]) -> list[Any]:
    return rows


def _last(rows: list[Any]) -> list[Any]:
    return rows[:1] + [row for row in rows[1:] if row.get("new") != rows[0].get("old")]


"""
ROWS = {"table": "orders", "rows": [{"old": {"id": 1007, "item": "tea"}, "new": {"id": 2007, "item": "tea"}}]}


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugin]:
    """Return a function that tests a new plug-in after changes to its code: pairs of an old and a new text."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(_time_limit, "SECONDS", 1)

    def changed(*edits: tuple[str, str], case: object = None) -> Scorecard:
        folder = create("shop", tmp_path)
        module = folder / "cdc_dialect_shop.py"
        code = module.read_text()
        for old, new in edits:
            assert old in code
            code = code.replace(old, new)
        module.write_text(code)
        if case is not None:
            for file in (folder / "cases").iterdir():
                file.unlink()
            (folder / "cases" / "own.json").write_text(json.dumps(case))
        monkeypatch.delitem(sys.modules, "cdc_dialect_shop", raising=False)
        if case is not None:
            write_results(folder)
        return scorecard(folder)

    yield changed
    sys.modules.pop("cdc_dialect_shop", None)


def failed(card: Scorecard) -> list[str]:
    return [score.name for score in card.scores if score.result == "failed"]


def test_an_honest_plugin(plugin: Plugin) -> None:
    card = plugin()
    assert card.complete, str(card)


LIARS = {
    "raises": ((TABLE, 'table = TableName(None, None, body["table"])'), ["hostile messages"]),
    "hangs": ((TABLE, f'{TABLE}\n        while body.get("new") == []: pass'),
              ["hostile messages", "no row data"]),
    "exits": ((TABLE, f'{TABLE}\n        if body["op"] == "delete" and not body.get("old"): raise SystemExit(0)'),
              ["hostile messages"]),
    "prints": ((TABLE, f"{TABLE}\n        print(body)"), ["no row data"]),
    "logs": ((TABLE, f"{TABLE}\n        __import__('logging').debug('read %s', body)"), ["no row data"]),
    "logs to its own handler": ((TABLE, f"""{TABLE}
        logger = __import__("logging").getLogger("shop")
        logger.propagate, logger.handlers = False, [__import__("logging").NullHandler()]
        logger.error("read %s", body)"""), ["no row data"]),
    "writes to a descriptor": ((TABLE, f"{TABLE}\n        __import__('os').write(2, message.value)"), ["no row data"]),
    "keeps a stream": ((TABLE, f"{TABLE}\n        __import__('sys').__stdout__.write(str(body))"), ["no row data"]),
    "warns": ((TABLE, f"{TABLE}\n        __import__('warnings').warn(str(body))"), ["no row data"]),
    "quotes numbers": ((RETURN, f"""if isinstance(change.after and change.after.get("id"), str):
            raise MessageError(ErrorCode.INVALID_FIELD, f"id {{change.after['id']}} is text")
        {RETURN}"""), ["no row data"]),
    "drops rows": ((RETURN, f"""if change.after and change.after.get("item") is None: return Skip("no_item")
        {RETURN}"""), [VALUES_APART]),
    "invents NULL": ((f"else {CANONICAL}", f'else {{"item": None, **{CANONICAL}}}'), [VALUES_APART]),
    "drops NULL": ((CANONICAL, CANONICAL.removesuffix("}") + ' if column != "item" or value is not None}'),
                   [VALUES_APART]),
    "forgets the old key": ((RETURN, f'(change.before or {{}}).update(id=1007) if operation == "update" else None\n'
                                     f"        {RETURN}"), ["key changes"]),
    "masks nothing": (('return "value" if', 'return "keep" if'), ["masked copies"]),
    "orders by hash": ((CANONICAL, CANONICAL.replace("row.items()", "{**dict.fromkeys(set(row)), **row}.items()")),
                       ["determinism"]),
    "counts": ((RETURN, f"type(self).n = change.row = getattr(self, 'n', 0) + 1\n        {RETURN}"), ["determinism"]),
    "wrong result": (('return str(value)', 'return str(value.normalize())'), ["golden cases"]),
    "other api": (("api=1", "api=2"), ["interface"]),
    "does not import": (("PLUGIN = ", "raise SystemExit(3)\nPLUGIN = "), ["interface"]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("edit", "expected"), LIARS.values(), ids=LIARS.keys())
def test_a_liar(plugin: Plugin, edit: tuple[str, str], expected: list[str]) -> None:
    """Only the property that the plug-in lacks fails, and the line says what to do."""
    card = plugin(edit)
    assert expected == failed(card), str(card)
    assert all(score.detail for score in card.scores if score.result == "failed")
    assert not card.passed


def test_a_key_of_fewer_columns(plugin: Plugin) -> None:
    lie = "tuple(c for c in self._key if (change.after or change.before or {}).get(c) is not None)"
    row = {"op": "insert", "table": "orders", "new": {"id": 1007, "item": "tea"}}
    case = {"options": {"key": ["id", "item"]}, "messages": [{"value": row}]}
    card = plugin(
        ("change.key_columns, change.key_kind = self._key,", f"change.key_columns, change.key_kind = {lie},"), case=case
    )
    assert ["nullable keys"] == failed(card), str(card)


def test_a_key_with_few_values(plugin: Plugin) -> None:
    """A boolean cannot be changed to a third value, so the plug-in is not blamed."""
    row = {"op": "update", "table": "orders", "old": {"id": False}, "new": {"id": True}}
    card = plugin(case={"messages": [{"value": row}]})
    assert [] == failed(card), str(card)


def test_an_unavailable_value(plugin: Plugin) -> None:
    row = {"op": "insert", "table": "orders", "new": {"id": 1007, "item": "tea"}}
    card = plugin((RETURN, f'change.unavailable = ["item"]\n        {RETURN}'), case={"messages": [{"value": row}]})
    assert [VALUES_APART] == failed(card), str(card)


BODY = """operation = field(body, "op", str, "$")"""


@pytest.mark.parametrize(
    ("call", "expected"), [("_all", []), ("_last", ["key changes"])], ids=["honest", "drops a row"]
)
def test_rows_of_one_message(plugin: Plugin, call: str, expected: list[str]) -> None:
    """Two rows whose keys shift into each other are both kept. The liar drops a row that takes over another's key."""
    edits = [
        (BODY, f"{MANY}\n\n    def _unused(self, body: Any, message: Message) -> Changes:\n        {BODY}"),
        ("def _image(", f"{PICK}def _image("),
        ("    TableName,\n", "    TableName,\n    Tx,\n"),
        ('path[:1] in (("old",), ("new",))', 'path[1:2] in (("old",), ("new",))'),
    ]
    card = plugin(*edits, ("_pick(", f"{call}("), case={"messages": [{"value": ROWS}]})
    assert expected == failed(card), str(card)


@pytest.mark.parametrize("learns", [True, False])
def test_metadata_messages(plugin: Plugin, learns: bool) -> None:
    """A plug-in that returns Learned can learn from at least one of its messages."""
    raises = 'raise MessageError(ErrorCode.SCHEMA_MISSING, "shop has no metadata messages")'
    edits = [
        ("    DialectPlugin,\n", "    DialectPlugin,\n    Learned,\n"),
        (BODY, f'if "about" in body: return Learned(field(body, "about", str, "$"), message.value)\n        {BODY}'),
        *([(raises, "return document")] if learns else []),
    ]
    card = plugin(*edits, case={"messages": [{"value": {"about": "orders"}}]})
    assert ([] if learns else ["golden cases"]) == failed(card), str(card)


@pytest.mark.parametrize("item", ['th\u00e9 "vert"', "green\nleaves", '{"name": "th\u00e9 vert"}'])
def test_a_copy_with_escapes(plugin: Plugin, item: str) -> None:
    """A value in a copy is found in whatever way the message escapes it."""
    row = {"op": "insert", "table": "orders", "new": {"id": 7, "item": item}}
    card = plugin(('return "value" if', 'return "keep" if'), case={"messages": [{"value": row}]})
    assert ["masked copies"] == failed(card), str(card)


@pytest.mark.parametrize(
    "state",
    [
        "self.n = change.row = getattr(self, 'n', 0) + 1",
        "change.row, self.n = getattr(self, 'n', 0), len(message.value)",
        "change.row, self.n = int(message.value == getattr(self, 'n', b'')), message.value",
    ],
    ids=["counts", "remembers the message before", "remembers a repeated message"],
)
def test_state_within_a_case(plugin: Plugin, state: str) -> None:
    """State that earlier messages of the same case leave is noticed, also if all messages are in one case."""
    rows = [{"op": "insert", "table": "orders", "new": {"id": 7, "item": "x" * n}} for n in (1, 3)]
    card = plugin((RETURN, f"{state}\n        {RETURN}"), case={"messages": [{"value": row} for row in rows]})
    assert ["determinism"] == failed(card), str(card)


def test_a_plugin_that_always_hangs(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each property stops after its first call that takes too long, instead of trying each variant of each message."""
    calls: list[object] = []
    monkeypatch.setattr(_contained, "call", lambda *args: [calls.append(args), call(*args)][1])
    card = plugin((TABLE, f"{TABLE}\n        while True: pass"))
    assert {"golden cases", "hostile messages"} < {*failed(card)}, str(card)
    assert len(calls) < 4 * len(card.scores)


def test_a_wide_table(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of translations has a bound, and the key is found even if it is the last column."""
    calls: list[object] = []
    monkeypatch.setattr(_contained, "call", lambda *args: [calls.append(args), call(*args)][1])
    row = {**{f"column {n}": n for n in range(1000)}, "id": 70_000}
    card = plugin(case={"messages": [{"value": {"op": "insert", "table": "orders", "new": row}}]})
    assert ["key changes"] == [score.name for score in card.scores if score.result != "passed"], str(card)
    assert len(calls) < 3000


def test_a_key_that_is_sent_twice(plugin: Plugin) -> None:
    """A plug-in may reject a message whose keys contradict each other."""
    check = """if change.after is not None and body.get("pk") != change.after.get("id"):
            raise MessageError(ErrorCode.INVALID_FIELD, "pk is not the row's key")"""
    row = {"op": "update", "table": "orders", "pk": 2007, "old": {"id": 1007}, "new": {"id": 2007}}
    masked = 'path[:1] in (("old",), ("new",)'
    card = plugin(
        (RETURN, f"{check}\n        {RETURN}"), (masked, f'{masked}, ("pk",)'), case={"messages": [{"value": row}]}
    )
    assert ["key changes"] == [score.name for score in card.scores if score.result == "not applicable"], str(card)
    assert [] == failed(card), str(card)
