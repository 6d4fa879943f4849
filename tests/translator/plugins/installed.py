"""Install plug-ins for a test: folders on the path with real metadata, which Python finds like any distribution."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

PAIRS = '''
    """A dialect for tests: {"do": …} fails in some way, and all other messages are rows of a table."""

    import asyncio, json, re, time
    from decimal import Decimal
    from msgspec import Struct
    from translator.dialect_api import *

    class Options(Struct, frozen=True):
        table: str = "pairs"

    class Pairs:
        name = "@NAME@"

        def __init__(self, setup, options):
            self.table = TableName(None, None, options.table)

        def row(self, body, **more):
            keyed = {"key_columns": ("id",), "key_kind": "primary", **more}
            return RowChange("c", self.table, Writer(), after=body, **keyed)

        def decode(self, message):
            body = json.loads(message.value or b"null")
            match body.pop("do", None) if body else "nothing":
                case None: return Changes([self.row(body)])
                case "nothing": return Skip("empty")
                case "raise": raise ValueError(body["card"])
                case "reject": raise MessageError(ErrorCode.INVALID_FIELD, "no field x")
                case "loop":
                    while True: pass
                case "stubborn loop":
                    while True:
                        try:
                            while True: pass
                        except Exception: pass
                case "nap": time.sleep(0.2); return Skip("nap")
                case "sleep": time.sleep(3600)
                case "regex": re.match(r"(a|aa)+$", "a" * 5000 + "b")
                case "code": raise MessageError(ErrorCode.INTERNAL, body["card"])
                case "text": return body["card"]
                case "empty": return Changes([])
                case "no change": return Changes([body["card"]])
                case "decimal": return Changes([self.row({"id": Decimal(body["card"])})])
                case "list": return Changes([self.row({"id": [body["card"]]})])
                case "op": return Changes([RowChange(body["card"], self.table, Writer(), after=body)])
                case "key": return Changes([self.row(body, key_columns=("nothing",))])
                case "reason": return Skip(body["card"])
                case "exit": raise SystemExit(3)
                case "learned": return Learned("k", body["card"].encode())
                case "announced": return Learned("k", b"{}", (body["card"],))
                case "time": return Changes([self.row(body, ts_commit_us=body["card"])])
                case "surrogate": return Changes([self.row({"id": chr(0xd800)})])
                case "table": return Changes([RowChange("c", body["card"], Writer(), after=body)])
                case "needs": return Needs([body["card"]])
                case "learns": return Learned("k", [body["card"]])
                case "lazy exit": return Changes(exit(3) for _ in range(1))
                case "lazy loop": return Changes(iter(lambda: self.row({"id": 1}), None))
                case "lazy sleep": return Changes(time.sleep(3600) for _ in range(1))
                case "interrupt": raise KeyboardInterrupt
                case "cancel": raise asyncio.CancelledError
                case "generator": raise GeneratorExit
                case "odd": raise MessageError("INVALID_FIELD", "a " + chr(0xd800), path="$." + chr(0xd800))
                case "liar": raise Liar
                case "schema text": return Needs("k", schema_text="{}")
                case "rows": return Changes([self.row(body)] * 10_001)
                case "set": return Changes([self.row({"id": 1}, **body["card"])])
                case "not finite": return Changes([self.row({"id": float(body["card"])})])
                case "no table": return Changes([RowChange("c", TableName("d", None, ""), Writer(), after={"id": 1})])
                case "no column": return Changes([self.row({"id": 1, "": 2})])
                case "schema":
                    columns = (Column("id", body["card"], key=1),)
                    return Changes([self.row({"id": 1}, schema=TableSchema("other", "x", "y", "z", columns))])

        def learn(self, key, document):
            if document == b"sleep": time.sleep(3600)
            if document == b"reject": raise MessageError(ErrorCode.SCHEMA_MISSING, "no field y")
            return json.loads(document)

    class Liar(MessageError):
        def __init__(self): self.code = "INVALID_FIELD"
        reason = property(lambda self: 1 / 0)

    def propose(sample):
        return [Proposal("table", "pairs", "certain", "it has pairs")]

    PLUGIN = DialectPlugin(name="@NAME@", api=@API@, build=Pairs, options=Options@MORE@)
    '''


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str = "pairs",
    *,
    distribution: str = "cdc-pairs",
    code: str = PAIRS,
    api: int = 1,
    more: str = "",
    entry: str = "",
) -> None:
    """Install a distribution with one module and one entry point.

    Args:
        more: further arguments of the DialectPlugin.
        entry: the name of the entry point, if it differs from the dialect's.
    """
    module = distribution.replace("-", "_")
    (folder / f"{module}.py").write_text(_filled(code, name, api, more))
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[cdc_translator.dialects]\n{entry or name} = {module}:PLUGIN\n")
    monkeypatch.delitem(sys.modules, module, raising=False)
    if str(folder) not in sys.path:
        monkeypatch.syspath_prepend(str(folder))


def _filled(code: str, name: str, api: int, more: str) -> str:
    return dedent(code).replace("@NAME@", name).replace("@API@", str(api)).replace("@MORE@", more)
