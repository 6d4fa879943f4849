"""A lone surrogate is an issue of its column in a cell, otherwise a dead letter. Reparsed JSON is the same."""

import json
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from translator.dialects._json import JsonObject, check_distinct, parse, parse_object, parse_sequence
from translator.dialects._json_members import check_names, decode_all, decode_one
from translator.errors import ErrorCode, MessageError
from translator.message import Limits
from translator.values import Unrepresentable, converter

LIMITS = Limits()
ROWS = frozenset({"$.data[*]", "$.key"})


def read(text: str, limits: Limits = LIMITS) -> JsonObject:
    """Return the object of a message in which `data` is a list of rows, and `key` is a row."""
    return parse_object(text.encode(), limits, ROWS)


def refused(text: bytes, limits: Limits = LIMITS) -> MessageError:
    """Return the error for such a message."""
    with pytest.raises(MessageError) as caught:
        parse_object(text, limits, ROWS)
    return caught.value


class TestCells:
    @pytest.mark.parametrize(
        ("escaped", "expected"),
        [
            (r"\ud800", "\ud800"),
            (r"\uDFFF", "\udfff"),
            (r"a\udc00z", "a\udc00z"),
            (r"\udc00\ud800", "\udc00\ud800"),
            (r"\ud800\ud83d\ude00", "\ud800😀"),
            (r"\ud800\\ude00", "\ud800\\ude00"),
            (r"\ud800é", "\ud800é"),
        ],
    )
    def test_kept(self, escaped: str, expected: str) -> None:
        """A cell keeps its lone surrogates, pairs are one character, and the converter makes the rest an issue."""
        cell = read(f'{{"data":[{{"a":"{escaped}"}}]}}')["data"][0]["a"]
        assert expected == cell
        with pytest.raises(Unrepresentable) as caught:
            converter("string")(cell)
        assert "LONE_SURROGATE" == caught.value.code
        assert caught.value.raw.encode()

    def test_the_rest_of_the_message(self) -> None:
        """The rest of the message is read as usual: exact numbers, other rows, the byte order mark."""
        text = r'{"data":[{"a":"\ud800","b":1.10},{"a":null}],"key":{"c":"\ud800"},"n":123456789012345678901234567890}'
        expected = {
            "data": [{"a": "\ud800", "b": Decimal("1.10")}, {"a": None}],
            "key": {"c": "\ud800"},
            "n": 123456789012345678901234567890,
        }
        assert repr(expected) == repr(read(text))
        assert expected == read("\ufeff" + text)

    def test_one_of_several(self) -> None:
        """One of several values in a text can have them."""
        text = rb'{"key":{"a":"\ud800"}} {"key":{"a":"b"}}'
        assert [{"key": {"a": "\ud800"}}, {"key": {"a": "b"}}] == parse_sequence(text, LIMITS, ROWS)


class TestElsewhere:
    @pytest.mark.parametrize(
        ("text", "path"),
        [
            (r'{"type":"\ud800"}', "$.type"),
            (r'{"sql":"x\udc00"}', "$.sql"),
            (r'{"data":"\ud800"}', "$.data"),
            (r'{"data":["\ud800"]}', "$.data[0]"),
            (r'{"data":[{},{"a":["\ud800"]}]}', "$.data[1].a[0]"),
            (r'{"data":[{"a":{"b":"\ud800"}}]}', "$.data[0].a.b"),
            (r'{"key":[{"a":"\ud800"}]}', "$.key[0].a"),
            (r'{"x":{"data":[{"a":"\ud800"}]}}', "$.x.data[0].a"),
            (r'{"data[*]":{"a":"\ud800"}}', "$.'data[*]'.a"),
            (r'{"\ud800":1}', "$"),
            (r'{"data":[{"\ud800":1}]}', "$.data[0]"),
            (r'{"a\n":{"b":"\ud800"}}', r"$.'a\n'.b"),
        ],
    )
    def test_refused(self, text: str, path: str) -> None:
        """If an event could not contain it, the message is rejected with the place but without the text."""
        error = refused(text.encode())
        assert (ErrorCode.INVALID_FIELD, path) == (error.code, error.path)
        assert str(error).encode()

    def test_long_names(self) -> None:
        """A path has only the beginning of a name, and for many values even less of it."""
        text = f'{{"{"n" * 20_000}":[{"[0]," * 2_000}"\\ud800"]}}'.encode()
        tracemalloc.start()
        error = refused(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert f"$.'{'n' * 40}…'[2000]" == error.path
        assert peak < 5_000_000

    def test_nowhere(self) -> None:
        """Without rows there are no cells, not even at the root."""
        for text in (rb'{"data":[{"a":"\ud800"}]}', rb'"\ud800"', rb'["\ud800"]'):
            with pytest.raises(MessageError, match="a lone surrogate"):
                parse(text, LIMITS)

    def test_which_of_several(self) -> None:
        """The path begins with the number of the value in the text."""
        with pytest.raises(MessageError, match=r"at \$\[1\]\.a"):
            parse_sequence(rb'{"key":{"a":"\ud800"}}{"a":"\ud800"}', LIMITS, ROWS)


class TestStillRefused:
    @pytest.mark.parametrize(
        ("text", "code"),
        [
            (rb'{"key":{"a":"\ud800"},}', "MALFORMED_JSON"),
            (rb'{"key":{"a":"\ud800"}} {}', "MALFORMED_JSON"),
            (rb'{"key":{"a":"\ud800"}', "MALFORMED_JSON"),
            (rb'{"key":{"a":"\ud800","b":NaN}}', "MALFORMED_JSON"),
            (rb'{"key":{"a":"\ud800","b":-Infinity}}', "MALFORMED_JSON"),
            (rb'{"key":{"a":"\ud800","b":01}}', "MALFORMED_JSON"),
            (b'{"key":{"a":"\\ud800\n"}}', "MALFORMED_JSON"),
            (b'{"key":{"a":"\\ud800\xff"}}', "MALFORMED_JSON"),
            (b'{"key":{"a":"\\ud800\xed\xa0\x80"}}', "MALFORMED_JSON"),
            (b'\xef\xbb\xbf\xef\xbb\xbf{"key":{"a":"\\ud800"}}', "MALFORMED_JSON"),
            (b'{"key":{"a":"\\ud800","b":%s}}' % (b"1" * 5000), "LIMIT_EXCEEDED"),
            (b'{"key":{"b":%s,"a":"\\ud800"}}' % (b"1" * 5000), "LIMIT_EXCEEDED"),
            (rb'{"key":{"a":"\ud800","b":1e99999999999999999999}}', "LIMIT_EXCEEDED"),
            (b'{"key":{"a":"\\ud800"},"b":%s}' % (b"[" * 65 + b"]" * 65), "LIMIT_EXCEEDED"),
            (b'{"key":{"a":"\\ud800"},"b":%s}' % (b"[" * 100_000 + b"]" * 100_000), "LIMIT_EXCEEDED"),
            (rb'["\ud800"]', "INVALID_FIELD"),
        ],
        ids=range(16),
    )
    def test_by_the_same_rules(self, text: bytes, code: str) -> None:
        """A lone surrogate hides no other problem: invalid JSON and exceeded limits keep their codes."""
        error = refused(text)
        assert code == error.code
        if code != "INVALID_FIELD":
            assert code == refused(text.replace(b"\\ud800", b"x")).code

    def test_members_named_twice(self) -> None:
        """Duplicate names are found in such texts too."""
        text = rb'{"key":{"a":"\ud800","a":"b"}}'
        with pytest.raises(MessageError, match=r"member 'a' twice at \$"):
            check_distinct(text, parse(text, LIMITS, ROWS))
        clean = rb'{"key":{"a":"\ud800\":","b":"b"}}'
        check_distinct(clean, parse(clean, LIMITS, ROWS))


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | FLOATS
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Generate JSON, escaped or not, with at most two characters removed, added or replaced."""
    text = json.dumps(draw(DOCUMENTS), ensure_ascii=draw(st.booleans()))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.text('019.eE+-"\\u[]{},: \n\x00\x0baNIé', max_size=1)) + text[place + 1 :]
    return text


def value_or_code(decode: Any, text: bytes) -> str:
    """Return the value with the types of its numbers, or the code of the refusal."""
    try:
        return repr(decode(text))
    except MessageError as error:
        return error.code


@given(documents())
@example("-0")
@example("[1E5, 1e+05, -0.0, 0e-0]")
@example("1" * 4300)
@example('"\\ud83d\\ude00\\/\\u0000\x7f"')
@example("\ufeff1")
@example('{"a":1,"a":2}')
@example("NaN")
def test_read_alike(text: str) -> None:
    """Both parsers read every text without a lone surrogate the same way, and reject the same texts."""
    value = text.encode()
    first = value_or_code(lambda data: parse(data, LIMITS), value)
    assume(first != ErrorCode.INVALID_FIELD)  # a lone surrogate, left over from a pair
    try:
        assert first == repr(decode_one(value.removeprefix(b"\xef\xbb\xbf"))[0])
    except (ValueError, MessageError):
        assert first in set(ErrorCode)


@given(st.lists(DOCUMENTS, max_size=4), st.sampled_from((" ", "\n", "\r\n", "\n\n\t")))
def test_sequences_read_alike(values: list[Any], separator: str) -> None:
    """The same holds for texts of several values."""
    text = separator.join(map(json.dumps, values)).encode()
    assert repr(parse_sequence(text, LIMITS)) == repr(decode_all(text))


def test_names_of_all_values() -> None:
    """Names are compared in every value of a text. Whitespace around values is ignored."""
    check_names(' {"a":1} \n{"a":2}\t')
    with pytest.raises(MessageError, match="twice"):
        check_names('{"a":1}\n{"a":1,"a":2}')
