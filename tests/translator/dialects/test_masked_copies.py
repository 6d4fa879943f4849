"""Masked copies of every case, and of values, which become other values of the same form."""

import contextlib
import json
import re
from collections.abc import Iterator
from datetime import date, time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translator.dialects.case import CASES, find_cases
from translator.dialects import DIALECTS, MaskedValues, build, masked_copy
from translator.dialects._masked_json import masked_key
from translator.dialects._masked_statement import masked_statement
from translator.errors import Unmaskable
from translator.message import Message, Setup
from translator.operations.file_translator import FileTranslator, of_dialect
from translator.operations.masked_copy import RecordMasker, form_of

NONE = {
    "canal/dts_ddl_as_documented": "it is not valid JSON at character 27",
    "canal/dts_update_2021_verbatim": "it is not valid JSON at character 463",
    "canal/seatunnel_broken": "it is not valid JSON at character 1",
    "dts_avro/damaged": "it is not a DTS record",
    "dts_avro/json_for_another_dialect": "it is not a DTS record",
    "qlik/avro_bytes_after_the_record": "it cannot be read: MALFORMED_AVRO",
    "qlik/registry_schema_with_array": "it cannot be read: UNSUPPORTED_SHAPE",
    "shareplex/dts_update_verbatim": "it is not valid JSON at character 170",
}
"""Cases without a copy, because they cannot be read."""

IN_HEADERS = {
    "qlik/avro_embedded_schema": {"50000"},
    "qlik/avro_update": {"50000"},
    "qlik/registry_update": {"2023-03-21"},
}
"""Values that are also part of the change sequence or commit time, and are therefore kept."""

STAY = {"False", "-0.000001", "AAAAAAAAAAAAAAAAAAAAAA=="}
"""Values of these cases that are kept: a boolean, a one, only zeros."""

LEAK_CHARACTERS = 5
"""A shorter text can appear in a message by chance."""

MASKED = MaskedValues(b"a key of the tests")


@pytest.fixture(autouse=True)
def _same_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the masks, so that every run has the same chance that two values are masked alike."""
    monkeypatch.setattr("secrets.token_bytes", bytes)


def read(case: Path, name: str, default: Any) -> Any:
    path = case / name
    return json.loads(path.read_bytes()) if path.exists() else default


def opened(case: Path) -> tuple[FileTranslator, Message]:
    """Return a translator that has learned everything in the case, and the message."""
    (path,) = case.glob("message.*")
    keys = [found.read_bytes() for found in case.glob("key.*")]
    texts = [*(found.read_bytes() for found in sorted(case.glob("metadata*"))), path.read_bytes()]
    *others, message = [Message("topic", 0, offset, 0, None, text) for offset, text in enumerate(texts)]
    message = msgspec.structs.replace(message, key=keys[0] if keys else None)
    options = {**read(case, "options.json", {}), "tables": read(case, "tables.json", [])}
    if "read_as" in case.name:
        options["continuity"] = {"action": "warn"}  # a wrong declaration would stop otherwise
    translator = of_dialect(case.parent.name, options, "source", [*others, message], lambda text: None)
    for number, schema in read(case, "schemas.json", {}).items():
        translator.teach(f"registry/{number}", json.dumps(schema).encode())
    for other in others:
        translator.translate(other)
    return translator, message


def texts_of(translator: FileTranslator, message: Message) -> Iterator[str]:
    """Return recognizable texts and numbers in rows."""
    found = translator.translate(message).events
    for event in found.events if found else ():
        for image in (event.key, event.before, event.after):
            for value in json.loads(image or "{}").values():
                if isinstance(value, str | int) and len(str(value)) >= LEAK_CHARACTERS:
                    yield str(value)


@pytest.mark.parametrize("case", find_cases(), ids=lambda path: path.relative_to(CASES).as_posix())
def test_a_copy_of_each_case(case: Path) -> None:
    """The copy gives events of the same form without any row value, or there is a reason for its absence."""
    translator, message = opened(case)
    name = case.relative_to(CASES).as_posix()
    masker = RecordMasker(translator.translate)
    if name in NONE:
        with pytest.raises(Unmaskable, match=re.escape(NONE[name])):
            masker.copy(message, translator.dialect)
        return
    copy = masker.copy(message, translator.dialect)
    assert form_of(translator.translate(message)) == form_of(translator.translate(copy))
    texts = set(texts_of(translator, message))
    value = (copy.value or b"").decode(errors="replace")
    assert IN_HEADERS.get(name, set()) == {text for text in texts if text in value}
    assert texts & set(texts_of(translator, copy)) <= STAY


def masked_by(dialect: str, value: bytes) -> bytes:
    """Return the value of the copy of a message without a key."""
    options = {"profile": "oss"} if dialect == "canal" else {}
    copy = masked_copy(build(dialect, Setup("source"), options), Message("t", 0, 0, 0, None, value), MASKED)
    return copy.value or b""


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.binary(min_size=1, max_size=64) | st.binary(max_size=64).map(b"\x00".__add__))
def test_what_is_no_message(dialect: str, data: bytes) -> None:
    """Any bytes give a copy, or a reason that does not contain them."""
    with contextlib.suppress(Unmaskable):
        masked_by(dialect, data)


@given(st.integers(2))
def test_numbers(number: int) -> None:
    """A number becomes a smaller one of the same sign, which fits in its place."""
    assert 1 <= int(MASKED.number(str(number))) < number
    assert -number < int(MASKED.number(str(-number))) <= -1


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4).filter(lambda number: abs(number) < 10**30))
def test_decimals(number: Any) -> None:
    """The number of decimal places is the same, and trailing zeros are kept."""
    before, after = f"{number:f}", MASKED.number(f"{number:f}")
    assert len(before.partition(".")[2].rstrip("0")) == len(after.partition(".")[2].rstrip("0"))
    assert (before[0] == "-") == (after[0] == "-")


@given(st.dates(), st.times(), st.sampled_from(["", "Z", "+08:00", " Asia/Shanghai"]))
def test_times(day: date, at: time, zone: str) -> None:
    """A time becomes another valid date and time in the same zone."""
    masked = MASKED.text(f"{day.isoformat()} {at.isoformat()}{zone}")
    assert masked.endswith(zone)
    other_day, other_time = masked.removesuffix(zone).split(" ")
    assert "20" == str(date.fromisoformat(other_day).year)[:2]
    assert len(at.isoformat()) == len(time.fromisoformat(other_time).isoformat())


@given(st.text(min_size=8))
def test_texts(text: str) -> None:
    """The text has as many characters and bytes. Letters and digits are replaced by others, and the rest is kept."""
    masked = MASKED.text(text)
    assert masked == MASKED.text(text)
    if not text.isascii() or not re.fullmatch(r"[\d.eE+-]+", text):
        assert (len(text), len(text.encode())) == (len(masked), len(masked.encode()))
        kept = [char for char in text if char.isascii() and not char.isalnum()]
        assert kept == [char for char in masked if char.isascii() and not char.isalnum()]


def test_the_text_around_values_stays() -> None:
    """The spelling of kept parts, whitespace, names and escapes are unchanged, byte for byte."""
    row = rb'{"n\u0061me":"Ren\u00e9 \/ \n","x":1.50,"y":null}'
    message = b'\xef\xbb\xbf { "database" : "d\\u00e9", "data":[' + row + b'],"type":"INSERT"}'
    masked = masked_by("canal", message)
    found = re.fullmatch(
        rb'\xef\xbb\xbf \{ "database" : "d\\u00e9", "data":\[\{"n\\u0061me":"([A-Z][a-z]{2}\\u00[0-9a-f]{2} \\/ \\n)",'
        rb'"x":1\.\d0,"y":null\}\],"type":"INSERT"\}',
        masked,
    )
    assert found is not None
    assert rb"Ren\u00e9 \/ \n" != found[1]


@pytest.mark.parametrize(
    ("statement", "pattern"),
    [
        (
            "ALTER TABLE t ADD c decimal(9,2) DEFAULT '12.34'",
            r"ALTER TABLE t ADD c decimal\(9,2\) DEFAULT '1[01]\.\d\d'",
        ),
        ('ALTER TABLE t ADD c text COMMENT "Jane\'s"', r"ALTER TABLE t ADD c text COMMENT \"[A-Z][a-z]{3}'[a-z]\""),
        (
            "INSERT INTO t2 VALUES (4711, 'Jane') -- Joe",
            r"INSERT INTO t2 VALUES \([1-4]\d{3}, '[A-Z][a-z]{3}'\) -- [A-Z]\w\w",
        ),
        ("UPDATE `Jane` SET c=/*x*/'o''k'", r"UPDATE `Jane` SET c=/\*[a-z]\*/'[a-z]  [a-z]'"),
    ],
)
def test_statements(statement: str, pattern: str) -> None:
    """Literals and comments are masked, but names and type sizes are not."""
    message = json.dumps({"type": "QUERY", "sql": statement}).encode()
    masked = json.loads(masked_by("canal", message))["sql"]
    assert re.fullmatch(pattern, masked), masked
    assert statement != masked


def test_members_named_twice() -> None:
    """An additional member with the name of a body member is masked as a value."""
    masked = masked_by("qlik", b'{"message": "Jane", "message": {"data": {"a": 4711}}}')
    assert re.fullmatch(rb'\{"message": "[A-Z][a-z]{3}", "message": \{"data": \{"a": [1-4]\d{3}\}\}\}', masked)


def test_keys() -> None:
    assert re.fullmatch(rb'\{"id": [1-9]\d{3}\}', masked_key(b'{"id": 9321}', MASKED) or b"")
    assert re.fullmatch(rb"[A-Z][a-z]{3}", masked_key(b"Jane", MASKED) or b"")
    assert masked_key(None, MASKED) is None
    with pytest.raises(Unmaskable, match="its key is not valid text"):
        masked_key(b"\xff", MASKED)


SECRETS = ("alice", "smith", "123456789", "4111111111111111")


@pytest.mark.parametrize(
    "statement",
    [
        "create table x as select * from p where ssn = 123456789 # alice smith",
        "alter table t alter column c set default 4111111111111111",
        "alter table t add constraint k check (ssn <> 123456789)",
        "alter table t add check (a in (char(4111111111111111)))",
        "comment on table t is $$alice smith$$",
        "comment on table t is $tag$alice $$ smith$tag$",
        "comment on table t is q'[it's alice]'",
        "comment on table t is nq'!it's alice smith!'",
        "create table t (a int) /* by /* alice */ smith */",
        "create table t (a int) -- alice smith\n, 123456789",
        "create table t (a int default .123456789)",
        "create table t (a int default 'alice smith",
        "create table t (a int) /* alice smith",
        "/* alice */ # smith\n create table t (a int default 123456789)",
        "alter table t partition (p1 values less than (123456789))",
    ],
)
def test_ddl_contains_no_value(statement: str) -> None:
    message = json.dumps({"type": "QUERY", "sql": statement}).encode()
    copy = json.loads(masked_by("canal", message))["sql"]
    assert [] == [secret for secret in SECRETS if secret in copy]
    assert copy.split()[:1] == statement.split()[:1]


@pytest.mark.parametrize(
    "statement",
    [
        "create table t (a varchar(255), b decimal (10,2), c number(38,-2), d timestamp(6) not null, e enum())",
        "alter table `a 1` modify b2 double precision, drop c3$",
        "rename table a1 to b_2",
    ],
)
def test_ddl_keeps_names_and_types(statement: str) -> None:
    message = json.dumps({"type": "QUERY", "sql": statement}).encode()
    assert statement == json.loads(masked_by("canal", message))["sql"]


@pytest.mark.parametrize(
    "text", ["/**/" * 50_000 + "x", "/*" * 50_000, "$a$" * 50_000 + "$", "'" * 99_999, "q'[" * 50_000, "1" * 100_000]
)
def test_statements_of_any_form_take_linear_time(text: str) -> None:
    """These texts took seconds, and twice as long for each further comment. The test ends only if they do not."""
    assert masked_statement(text, MASKED)


@pytest.mark.parametrize("digits", [1001, 4301, 9000])
@pytest.mark.parametrize("first", ["1", "9", "0"])
def test_long_numbers(digits: int, first: str) -> None:
    """A number with more digits than Python converts is masked like any other."""
    number = first + "7" * (digits - 1)
    copy = MASKED.number(number)
    assert copy != number
    assert len(number) == len(copy)
    assert copy < number


@pytest.mark.parametrize("text", ["DEADBEEF", "BEEF", "0AFF", "FF", "89504E470D0A1A0A"])
def test_bytes_stay_hex(text: str) -> None:
    """Bytes in hex can have letters only."""
    copy = MASKED.text(text)
    assert len(text) == len(bytes.fromhex(copy)) * 2
