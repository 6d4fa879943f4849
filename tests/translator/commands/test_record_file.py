"""Files of raw messages: the forms of a line, defaults, and rejected input."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from translator.commands.record_file import BadRecordFile, read_files, read_raw
from translator.message import Message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the test's file."""
    return tmp_path / "records.jsonl"


def read(path: Path, *lines: str | bytes | dict[str, Any]) -> list[Message]:
    """Return the messages of a file with these lines."""
    return messages(write(path, *lines))


def write(path: Path, *lines: str | bytes | dict[str, Any]) -> Path:
    texts = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    path.write_bytes(b"".join(text.encode() + b"\n" if isinstance(text, str) else text + b"\n" for text in texts))
    return path


def messages(*files: Path, bare: bool = False) -> list[Message]:
    return [line.message for line in read_files(files, bare=bare)]


def test_every_field(path: Path) -> None:
    """A complete record becomes exactly the Kafka record that it describes."""
    line = {
        "topic": "raw.shop",
        "partition": 3,
        "offset": 42,
        "timestamp": 1_700_000_000_500,
        "key": "k",
        "value": '{"a":1}',
        "headers": {"operation": "INSERT", "empty": None},
    }
    headers = (("operation", b"INSERT"), ("empty", None))
    assert [Message("raw.shop", 3, 42, 1_700_000_000_500, b"k", b'{"a":1}', headers)] == read(path, line)


def test_only_a_value(path: Path) -> None:
    """Defaults fill in everything but the value: topic "file", partition 0, offset by line, timestamp 0, no key."""
    assert [Message("file", 0, 0, 0, None, b"x"), Message("file", 0, 1, 0, None, b"y")] == read(
        path, {"value": "x"}, {"value": "y"}
    )


def test_offset_is_the_line_number(path: Path) -> None:
    """The default offset is the line number from 0, regardless of empty lines and explicit offsets."""
    found = read(path, {"value": "a"}, "", "  ", {"value": "b"}, {"value": "c", "offset": 100}, {"value": "d"})
    assert [0, 3, 100, 5] == [message.offset for message in found]


class TestFiles:
    def test_one_count(self, tmp_path: Path) -> None:
        """Offsets are counted across all files of a call. A final line break changes nothing."""
        files = [tmp_path / name for name in "abcd"]
        for file, content in zip(files, (b'{"value":"a"}\n\n', b'{"value":"b"}', b"", b'{"value":"c"}\n'), strict=True):
            file.write_bytes(content)
        assert [0, 2, 3] == [message.offset for message in messages(*files)]

    def test_lines_from_one(self, tmp_path: Path) -> None:
        """Errors use the line number that an editor shows, within its file."""
        files = [write(tmp_path / name, "", {"value": "x"}) for name in "ab"]
        assert [(files[0], 2), (files[1], 2)] == [(line.file, line.number) for line in read_files(files)]

    def test_an_offset_that_was_counted_for_another(self, tmp_path: Path) -> None:
        """Two messages with the same id are rejected in either order, and both lines are reported."""
        counted = write(tmp_path / "a", {"value": "x"}, {"value": "y"})
        named = write(tmp_path / "b", {"value": "z", "offset": 1})
        for files, lines in (((counted, named), (2, 1)), ((named, counted), (1, 1))):
            place = "offset 1 of topic file, partition 0"
            said = f"{files[1]}: line {lines[1]}: {place} is already used in {files[0]}, line {lines[0]}"
            with pytest.raises(BadRecordFile, match=re.escape(said)):
                read_files(files)

    def test_the_same_record_twice(self, tmp_path: Path) -> None:
        """Records with explicit offsets can be repeated."""
        file = write(tmp_path / "a", {"value": "x", "offset": 7})
        assert [7, 7] == [message.offset for message in messages(file, file)]


class TestMessages:
    """One value per line, as a console consumer prints a topic."""

    LINES = ('{"data": [ 1.10 ],"type":"INSERT"}', "null", "", '{"a":\xa01}', "{]", "Processed 3 messages\r")

    def test_as_they_lie(self, path: Path) -> None:
        """Each line is a value, and null is a missing one. A line that is not JSON is a message too."""
        found = read(path, *self.LINES)
        expected = (b'{"data": [ 1.10 ],"type":"INSERT"}', None, '{"a":\xa01}'.encode(), b"{]", b"Processed 3 messages")
        assert expected == tuple(message.value for message in found)
        assert [0, 1, 3, 4, 5] == [message.offset for message in found]
        assert {("file", 0, 0, None, ())} == {(m.topic, m.partition, m.timestamp_ms, m.key, m.headers) for m in found}

    def test_members_that_messages_have_too(self, path: Path) -> None:
        """Qlik messages have headers and SharePlex messages a key, so these alone do not make a line a record."""
        lines = ['{"magic":"atMSG","headers":null,"message":{}}', '{"meta":{},"key":{},"data":{}}']
        assert [line.encode() for line in lines] == [message.value for message in read(path, *lines)]

    @pytest.mark.parametrize("line", ["Processed", '{"value":"x"}', '{"topic":"t","payload":"x"}', "5"])
    def test_when_asked_for(self, path: Path, line: str) -> None:
        """With --lines, every line is a message, whatever its content."""
        assert [line.encode()] == [message.value for message in messages(write(path, line), bare=True)]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("Processed", "line 1 is neither a record nor a message: JSON is malformed"),
            ("{", "line 1 is neither a record nor a message: Input data was truncated"),
            ("[]", "line 1 is neither a record nor a message: Expected"),
            (
                '{"offset":1,"topic":"t","payload":"x"}',
                "it contains offset, topic, as a record does, but neither value nor value_base64",
            ),
        ],
    )
    def test_neither(self, path: Path, line: str, reason: str) -> None:
        """If the first line is ambiguous, the input is rejected with the reason and all three forms."""
        with pytest.raises(BadRecordFile) as caught:
            read(path, line, '{"a":1}')
        assert reason in str(caught.value)
        assert str(caught.value).endswith(
            '; a record is one line with {"value": ...}; use --lines to read each line as a message value, or --raw to '
            "read the whole file as one"
        )

    def test_a_record_among_them(self, path: Path) -> None:
        """The first line decides for all lines, so a misspelled `value` does not turn a record into a message."""
        with pytest.raises(
            BadRecordFile, match=r"line 2 is a record, but the lines before it are messages; .* --lines"
        ):
            read(path, '{"vaule":"x"}', '{"value":"x"}')


def test_no_records(path: Path) -> None:
    """An empty file has no records and is not an error."""
    assert [] == read(path)


def test_no_last_line_break(path: Path) -> None:
    """The last line needs no line break, and Windows line endings are accepted."""
    path.write_bytes(b'{"value":"a"}\r\n{"value":"b"}')
    assert [b"a", b"b"] == [message.value for message in messages(path)]


def test_byte_order_mark(path: Path) -> None:
    """A byte order mark, which Windows editors add, is not part of a record."""
    path.write_bytes(b'\xef\xbb\xbf{"value":"a"}\n')
    assert [b"a"] == [message.value for message in messages(path)]


class TestValue:
    @pytest.mark.parametrize(
        ("members", "expected"),
        [
            ('"value":"text"', b"text"),
            ('"value":"\\u540d \\"q\\" \\n"', '名 "q" \n'.encode()),
            ('"value":""', b""),
            ('"value":null', None),
            ('"value_base64":"w28BAA=="', b"\xc3\x6f\x01\x00"),
            ('"value_base64":""', b""),
            ('"value_base64":null', None),
            ('"value": {"b": 1.10, "a":[null] }', b'{"b": 1.10, "a":[null] }'),
            ('"value": [ 1e5 ]', b"[ 1e5 ]"),
        ],
    )
    def test_forms(self, path: Path, members: str, expected: bytes | None) -> None:
        """A value is text, bytes as base64, or null for a tombstone. Other JSON is the message itself, unchanged."""
        assert [expected] == [message.value for message in read(path, f"{{{members}}}")]

    @given(content=st.binary())
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_bytes(self, path: Path, content: bytes) -> None:
        """Any key and value survive the round trip as base64."""
        encoded = base64.b64encode(content).decode()
        (message,) = read(path, {"key_base64": encoded, "value_base64": encoded})
        assert (content, content) == (message.key, message.value)


class TestKey:
    @pytest.mark.parametrize(
        ("members", "expected"),
        [
            ({}, None),
            ({"key": None}, None),
            ({"key": ""}, b""),
            ({"key": "名"}, "名".encode()),
            ({"key_base64": "/w=="}, b"\xff"),
        ],
    )
    def test_forms(self, path: Path, members: dict[str, Any], expected: bytes | None) -> None:
        """A missing key is not an empty key."""
        assert [expected] == [message.key for message in read(path, {"value": "x", **members})]


class TestHeaders:
    @pytest.mark.parametrize(
        ("headers", "expected"),
        [
            (None, ()),
            ({}, ()),
            ({"b": "1", "a": None}, (("b", b"1"), ("a", None))),
            ([["a", "1"], ["a", "2"]], (("a", b"1"), ("a", b"2"))),
        ],
    )
    def test_forms(self, path: Path, headers: Any, expected: tuple[tuple[str, bytes | None], ...]) -> None:
        """Headers are an object, or a list of pairs if a name repeats. Their order is preserved."""
        assert [expected] == [message.headers for message in read(path, {"value": "x", "headers": headers})]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "truncated"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "value or value_base64 is required"),
        ('{"key":"x"}', "value or value_base64 is required"),
        ('{"value":"x","valu_base64":"eA=="}', "unknown field `valu_base64`"),
        ('{"value":"x","value_base64":"eA=="}', "value and value_base64 are both present"),
        ('{"value":"x","key":"k","key_base64":"eA=="}', "key and key_base64 are both present"),
        ('{"value_base64":"e"}', "valid base64"),
        ('{"value_base64":"eA==\\n"}', "valid base64"),
        ('{"value":"x","key_base64":"名"}', "valid base64"),
        ('{"value":"x","offset":"1"}', "Expected `int | null`, got `str`"),
        ('{"value":"x","offset":-1}', "`int` >= 0"),
        ('{"value":"x","offset":9223372036854775808}', "$.offset"),
        ('{"value":"x","partition":-1}', "`int` >= 0"),
        ('{"value":"x","timestamp":9223372036854776}', "`int` <= 9223372036854775"),
        ('{"data":[],"type":"INSERT"}', "--raw"),
        ('{"value":"x","key":1}', "Expected `str | null`, got `int`"),
        ('{"value":"x","headers":5}', "got `int`"),
        ('{"value":"x","headers":{"a":1}}', "got `int`"),
        ('{"value":"x","headers":[["a"]]}', "length 2"),
        ('{"value":' + "[" * 100_000 + "]" * 100_000 + "}", "recursion"),
        (b'{"value":"\xff"}', "utf-8"),
    ],
    ids=lambda part: ascii(part)[:40],
)
def test_not_a_record(path: Path, line: str | bytes, reason: str) -> None:
    """A malformed line is reported with its number from 1, the reason and the format of a record."""
    with pytest.raises(BadRecordFile) as caught:
        read(path, {"value": "x"}, line)
    assert str(caught.value).startswith(f"{path}: line 2 is not a record: ")
    assert reason in str(caught.value)
    assert '{"value": ...}' in str(caught.value)


def test_raw(path: Path) -> None:
    """The whole file, including line breaks, is the value of one message."""
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\n\n')
    assert Message("file", 0, 0, 0, None, b'\xef\xbb\xbf{"a":1}\n\n') == read_raw(path).message
