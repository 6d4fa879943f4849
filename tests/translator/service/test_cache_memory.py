"""Messages with new names and types do not fill the memory, whatever their number and size."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.translator.native import needs_extension


def printed(script: str) -> int:
    """Run a script in a process of its own, and return the number that it prints."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=True)
    return int(done.stdout)


# Reads messages that each describe a table of their own, and prints the growth of the resident memory in MiB after the
# first tenth.
_SCRIPT = """
import json, resource, sys
from translator.dialects import build
from translator.message import Message, Setup

def canal(n):
    columns = COLUMNS(n)
    row = {name: "1" for name in columns}
    return json.dumps({"data": [row], "database": "d", "es": 1700000000000, "id": 7, "isDdl": False,
        "mysqlType": columns, "old": None, "pkNames": ["id"], "sql": "", "table": f"t{n}", "ts": 1700000000123,
        "type": "INSERT"}, separators=(",", ":")).encode()

dialect = build("canal", Setup("source"), {"profile": "oss"})
for n in range(COUNT):
    dialect.decode(Message("raw", 0, n, 0, None, canal(n)))
    if n == COUNT // 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
_LONG_TYPES = "{'id': 'int', 'e': 'enum(' + repr(str(n) + 'A' * 900_000) + ')'}"
_MANY_COLUMNS = "{'id': 'int', **{f'c{n}_{m}': 'int' for m in range(1000)}}"


@pytest.mark.parametrize(("columns", "count", "most"), [(_LONG_TYPES, 120, 100), (_MANY_COLUMNS, 300, 75)])
def test_canal(columns: str, count: int, most: int) -> None:
    """With a limit on the number of entries, these messages kept 275 and 159 MiB. With one on their size, 65 and 37."""
    script = _SCRIPT.replace("COLUMNS(n)", columns).replace("COUNT", str(count))
    assert printed(script) < most


# Translates one message of 0.9 MB whose cells are short texts of large numbers, and prints the growth in MiB.
_NUMBERS = """
import json, resource
from translator.codecs.json import JsonCodec
from translator.dialects import build
from translator.message import Limits, Message, Setup
from translator.translation.translate import Translator

row = {f"c{n}": "NUMBER" for n in range(50)}
value = json.dumps({"data": [row | {"id": str(n)} for n in range(900_000 // len(json.dumps(row)))], "database": "d",
    "es": 1700000000000, "id": 7, "isDdl": False, "mysqlType": dict.fromkeys(row, "decimal") | {"id": "int"},
    "old": None, "pkNames": ["id"], "sql": "", "table": "t", "ts": 1700000000123, "type": "INSERT"}).encode()
message = Message("raw", 0, 1, 0, None, value)
translator = Translator("source", build("canal", Setup("source"), {"profile": "oss"}), Limits())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
records = translator.encode(JsonCodec(), message, translator.translate(message))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("number", ["1e399", "1e1999", "1e-1999"])
def test_numbers_with_exponents(number: str) -> None:
    """When exponents could add 2 000 zeros, a message of 0.9 MB with `1e1999` took 317 MiB. Now `1e399` takes 76."""
    script = _NUMBERS.replace("NUMBER", number)
    assert printed(script) < 200


# Reads tables with long descriptions on the native path, and prints the growth of the memory in MiB after the first
# tenth.
_NATIVE = """
import json, resource
from translator.codecs.avro import AvroCodec
from translator.dialects import build
from translator.message import Limits, Message, Setup
from translator.translation.native_path import native_path
from translator.translation.translate import Translator

def value(n):
    types = {"id": "int"} | {f"c{n}_{m}" + "n" * 140: "int" for m in range(380)}
    return json.dumps({"data": [dict.fromkeys(types, "1")], "database": "d", "es": 1700000000000, "id": 7,
        "isDdl": False, "mysqlType": types, "old": None, "pkNames": ["id"], "sql": "", "table": f"t{n}",
        "ts": 1700000000123, "type": "INSERT"}, separators=(",", ":")).encode()

translator = Translator("source", build("canal", Setup("source"), {"profile": "oss"}), Limits())
path = native_path(translator, [(AvroCodec(), 1_000_000)])
taken = 0
for n in range(400):
    (found,) = path.take([Message("raw", 0, n, 0, None, value(n))])
    taken += not isinstance(found, str)
    if n == 40:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert taken == 400, taken
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@needs_extension
def test_tables_of_the_native_path() -> None:
    """The extension keeps at most 2 MiB of descriptions. Limited by number alone, it took 132 MiB for these tables."""
    assert printed(_NATIVE) < 25
