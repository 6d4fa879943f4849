"""What the dialects share: exact JSON within limits, fields, rows and declared tables."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.envelope import Column, Issue, TableSchema
from translator.dialects import DIALECTS, build
from translator.dialects._declared_tables import DeclaredTables
from translator.dialects._json import check_distinct, field, json_type, one_of, parse, parse_object, parse_sequence
from translator.dialects._rows import Columns, ConvertersOr, Findings, build_image
from translator.errors import ConfigError, ErrorCode, MessageError
from translator.message import DeclaredTable, Limits, Setup, TableName
from translator.values import Converter, converter, timestamptz_in

LIMITS = Limits()


def refused(value: bytes, limits: Limits = LIMITS) -> MessageError:
    """Return the error for a value that is not an object within the limits."""
    with pytest.raises(MessageError) as caught:
        parse_object(value, limits)
    return caught.value


def nested(depth: int, opening: bytes = b'{"a":', core: bytes = b"1", closing: bytes = b"}") -> bytes:
    """Return a JSON value with that many containers around its core."""
    return opening * depth + core + closing * depth


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("9223372036854775808", 9223372036854775808),
            ("-123456789012345678901234567890", -123456789012345678901234567890),
            ("1.10", Decimal("1.10")),
            ("0.1000000000000000055511151231257827", Decimal("0.1000000000000000055511151231257827")),
            ("1E+2", Decimal("1E+2")),
            ("-0.0", Decimal("-0.0")),
            ("1e999999999", Decimal("1E+999999999")),
        ],
    )
    def test_exact(self, text: str, expected: object) -> None:
        """A number is an int, or a Decimal with the original digits and exponent, but never a float."""
        found = parse_object(b'{"a":%s}' % text.encode(), LIMITS)["a"]
        assert (type(expected), str(expected)) == (type(found), str(found))

    @given(st.integers() | st.decimals(allow_nan=False, allow_infinity=False))
    def test_any(self, number: int | Decimal) -> None:
        """Any number is preserved as written."""
        assert number == parse(str(number).encode(), LIMITS)

    @pytest.mark.parametrize("text", ["1e99999999999999999999", "1" * 5_000], ids=["exponent", "digits"])
    def test_beyond_all_limits(self, text: str) -> None:
        """A number that is too large exceeds a limit. The JSON around it is not malformed."""
        assert ErrorCode.LIMIT_EXCEEDED == refused(b'{"a":%s}' % text.encode()).code


class TestParse:
    @pytest.mark.parametrize(
        "value",
        [
            b"",
            b"{",
            b'{"a":1',
            b'{"a":1}}',
            b'{"a":1} {"a":2}',
            b"{'a':1}",
            b'{"a":01}',
            b'{"a":1,}',
            b'{"a":NaN}',
            b'{"a":Infinity}',
            b'{"a":"\xff"}',
            b'{"\xff":1}',
            b'{"a":"\n"}',
            b'\xef\xbb\xbf\xef\xbb\xbf{"a":1}',
            b'{"a":1}\x00',
        ],
    )
    def test_malformed(self, value: bytes) -> None:
        """Anything but exactly one JSON value in UTF-8 is malformed."""
        assert ErrorCode.MALFORMED_JSON == refused(value).code

    def test_never_row_data(self) -> None:
        """The reason has the position of the error and not the text there."""
        error = refused(b'{"card":"4111-1111-1111-1111",}')
        assert "4111" not in str(error)
        assert "byte" in error.reason

    def test_byte_order_mark(self) -> None:
        """One byte order mark before the text is ignored."""
        assert {"a": 1} == parse_object(b'\xef\xbb\xbf{"a":1}', LIMITS)

    @pytest.mark.parametrize(
        ("value", "name"),
        [(b"[]", "array"), (b'"x"', "string"), (b"1", "number"), (b"true", "boolean"), (b"null", "null")],
    )
    def test_not_an_object(self, value: bytes, name: str) -> None:
        """If an object is expected, the error names the JSON type that was found."""
        error = refused(value)
        assert (ErrorCode.UNSUPPORTED_SHAPE, f"the value is a JSON {name}, not an object at $") == (
            error.code,
            str(error),
        )

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (b"", []),
            (b" \n ", []),
            (b'{"a":1}', [{"a": 1}]),
            (b'{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
            (b'{"a":1}{"a":2}', [{"a": 1}, {"a": 2}]),
            (b"\xef\xbb\xbf1\r\n[2]", [1, [2]]),
        ],
    )
    def test_sequence(self, value: bytes, expected: list[Any]) -> None:
        """A text can have several values, one per line or end to end, or none."""
        assert expected == parse_sequence(value, LIMITS)

    def test_sequence_is_whole(self) -> None:
        """An incomplete value invalidates the whole text."""
        with pytest.raises(MessageError) as caught:
            parse_sequence(b'{"a":1}\n{"a":', LIMITS)
        assert ErrorCode.MALFORMED_JSON == caught.value.code


class TestDepth:
    @pytest.mark.parametrize("limit", [2, 64, 500])
    @pytest.mark.parametrize("brackets", [(b'{"a":', b"1", b"}"), (b"[", b"", b"]"), (b'[{"a":0},{"a":', b"1", b"}]")])
    def test_limit(self, limit: int, brackets: tuple[bytes, bytes, bytes]) -> None:
        """Containers nested up to the limit are read. One more is LIMIT_EXCEEDED."""
        opening, _, closing = brackets
        levels = opening.count(b"[") + closing.count(b"}")
        value = nested(limit // levels, *brackets)
        parse(value, Limits(json_depth=limit))
        with pytest.raises(
            MessageError, match=rf"JSON is nested more than {limit} levels deep \(limits.json_depth\)"
        ) as caught:
            parse(b"[" + value + b"]", Limits(json_depth=limit))
        assert ErrorCode.LIMIT_EXCEEDED == caught.value.code

    def test_wide_is_not_deep(self) -> None:
        """A thousand containers side by side have depth three."""
        value = b'{"a":[' + b",".join([b"{}"] * 1000) + b"]}"
        assert 1000 == len(parse_object(value, Limits(json_depth=3))["a"])

    def test_brackets_in_text_do_not_count(self) -> None:
        """Brackets inside a string do not count as nesting."""
        assert {"a": "[" * 1000} == parse_object(b'{"a":"%s"}' % (b"[" * 1000), Limits(json_depth=1))

    @pytest.mark.parametrize("depth", [10_000, 1_000_000])
    def test_any_depth(self, depth: int) -> None:
        """Nesting beyond the parser's ability is rejected the same way and does not crash."""
        assert ErrorCode.LIMIT_EXCEEDED == refused(nested(depth)).code

    def test_sequence(self) -> None:
        """Each of several values has the whole depth."""
        limits = Limits(json_depth=2)
        assert 100 == len(parse_sequence(nested(2) * 100, limits))
        with pytest.raises(MessageError, match="nested more"):
            parse_sequence(nested(1) + nested(3), limits)


class TestDistinct:
    @pytest.mark.parametrize(
        "value",
        [
            b'{"a":1,"b":{"a":2}}',
            b'[{"a":1},{"a":2}]',
            b'{"a":1}{"a":2}',
            b'{"a":"\\"a\\":1,\\"a\\":2"}',
            b'{"a:":1,"a::":"a\\t:"}',
            b'\xef\xbb\xbf {"a" : 1, "b" : "a : b"}',
            b'{"":1}',
            b"[]",
            b"",
        ],
    )
    def test_clean(self, value: bytes) -> None:
        """The same name in two objects, or in a text, is not a duplicate."""
        check_distinct(value, parse_sequence(value, LIMITS))

    @pytest.mark.parametrize(
        "value",
        [
            b'{"a":1,"a":1}',
            b'{"a":1,"a":2}',
            b'{"b":[{"a":1 , "a" : 2}]}',
            b'{"a":{},"a":{}}',
            b'{"a":1,"\\u0061":2}',
            b'{"x":"y"}\n{"a":1,"a":2}',
        ],
    )
    def test_twice(self, value: bytes) -> None:
        """An object with a duplicate member is ambiguous."""
        with pytest.raises(MessageError, match=r"member 'a' twice at \$") as caught:
            check_distinct(value, parse_sequence(value, LIMITS))
        assert ErrorCode.INVALID_FIELD == caught.value.code

    @given(
        st.recursive(
            st.text('":\\ \t\na') | st.integers() | st.none(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text('":\\ \t\na', max_size=3), inner, max_size=3)
            ),
            max_leaves=12,
        ),
        st.sampled_from([None, 1]),
    )
    def test_never_a_false_alarm(self, value: Any, indent: int | None) -> None:
        """A valid value passes, whatever its texts and layout."""
        text = json.dumps(value, indent=indent).encode()
        check_distinct(text, parse_sequence(text, LIMITS))


PARENT = {"text": "x", "int": 1, "exact": Decimal("1.5"), "yes": True, "list": [], "object": {}, "null": None}


class TestField:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("text", str),
            ("int", int),
            ("exact", Decimal),
            ("yes", bool),
            ("list", list),
            ("object", dict),
            ("int", (str, int)),
        ],
    )
    def test_expected(self, name: str, expected: type | tuple[type, ...]) -> None:
        """A member of the expected type is returned unchanged."""
        assert PARENT[name] is field(PARENT, name, expected, "$")

    @pytest.mark.parametrize(
        ("name", "expected", "reason"),
        [
            ("text", int, "text is a JSON string, not integer at $.head.text"),
            ("int", str, "int is a JSON number, not string at $.head.int"),
            ("exact", int, "exact is a JSON number, not integer at $.head.exact"),
            ("yes", int, "yes is a JSON boolean, not integer at $.head.yes"),
            ("yes", (int, Decimal), "yes is a JSON boolean, not number at $.head.yes"),
            ("int", bool, "int is a JSON number, not boolean at $.head.int"),
            ("list", (dict, str), "list is a JSON array, not object or string at $.head.list"),
            ("object", list, "object is a JSON object, not array at $.head.object"),
        ],
    )
    def test_wrong_type(self, name: str, expected: type | tuple[type, ...], reason: str) -> None:
        """The error has the actual type, the allowed ones and the place. true is not a number."""
        with pytest.raises(MessageError, match=f"^{re.escape(reason)}$") as caught:
            field(PARENT, name, expected, "$.head", optional=True)
        assert ErrorCode.INVALID_FIELD == caught.value.code

    @pytest.mark.parametrize("name", ["null", "absent"])
    def test_missing(self, name: str) -> None:
        """A required member that is missing or null is reported. An optional one is None."""
        with pytest.raises(MessageError, match=rf"^{name} is missing or null at \$\.{name}$") as caught:
            field(PARENT, name, str, "$")
        assert ErrorCode.MISSING_FIELD == caught.value.code
        assert None is field(PARENT, name, str, "$", optional=True)

    @pytest.mark.parametrize(
        ("value", "name"),
        [
            ("", "string"),
            (True, "boolean"),
            (1, "number"),
            (Decimal(1), "number"),
            ([], "array"),
            ({}, "object"),
            (None, "null"),
        ],
    )
    def test_json_type(self, value: object, name: str) -> None:
        """Parsed values are described with their JSON type names."""
        assert name == json_type(value)

    def test_one_of(self) -> None:
        """A word of a closed list gives its value."""
        assert "u" == one_of("UPDATE", {"UPDATE": "u"}, "operation", "$.type", ErrorCode.UNKNOWN_OPERATION)

    def test_not_one_of(self) -> None:
        """The error for an unknown word has its place, the closest match and all allowed words."""
        with pytest.raises(MessageError) as caught:
            one_of("UPDAT", {"UPDATE": "u", "DELETE": "d"}, "operation", "$.type", ErrorCode.UNKNOWN_OPERATION)
        assert ErrorCode.UNKNOWN_OPERATION == caught.value.code
        expected = "unknown operation 'UPDAT' (did you mean UPDATE?); allowed: DELETE, UPDATE at $.type"
        assert expected == str(caught.value)

    def test_a_strange_word_is_bounded(self) -> None:
        """A word from a message is quoted up to 40 characters, with control characters escaped."""
        with pytest.raises(MessageError) as caught:
            one_of("\n" + "x" * 1000, {"a": 1}, "word", "$", ErrorCode.UNKNOWN_TYPE)
        assert f"unknown word '\\n{'x' * 39}…'; allowed: a at $" == str(caught.value)


class TestBuildImage:
    @staticmethod
    def build(*cells: tuple[str, object], issue_raw_chars: int = 256) -> tuple[dict[str, Any], list[Issue]]:
        """Return the image and the issues of cells whose column names are their types."""
        findings = Findings()
        converters = {name: converter(name) for name, value in cells if value is not None}
        image = build_image(cells, converters, findings, Limits(issue_raw_chars=issue_raw_chars))
        return image, list(findings.issues)

    def test_order_and_null(self) -> None:
        """Columns keep their order, null is a value, and nothing else is added."""
        image, issues = self.build(("string", "x"), ("int8", None), ("decimal(9,2)", "1"))
        assert [("string", "x"), ("int8", None), ("decimal(9,2)", "1.00")] == list(image.items())
        assert [] == issues

    def test_issue(self) -> None:
        """A value without a faithful form is absent from the image and reported with its raw text. Others are kept."""
        image, issues = self.build(("date", "0000-00-00"), ("bytes", b"\xff"), ("string", b"\xff"))
        assert {"bytes": "/w=="} == image
        assert [Issue("date", "ZERO_DATE", "0000-00-00"), Issue("string", "NOT_TEXT", "/w==")] == issues

    @pytest.mark.parametrize(("limit", "expected"), [(0, ""), (3, "xxx"), (10, "x" * 10), (11, "x" * 10)])
    def test_raw_is_bounded(self, limit: int, expected: str) -> None:
        """The raw text of an issue is truncated to its limit."""
        _, issues = self.build(("int8", "x" * 10), issue_raw_chars=limit)
        assert [expected] == [issue.raw for issue in issues]

    def test_null_needs_no_converter(self) -> None:
        """Null has no type, so no converter is called."""

        assert {"a": None} == build_image([("a", None)], {}, Findings(), LIMITS)

    def test_no_converter(self) -> None:
        """Without a converter, values are already canonical and are kept."""
        assert {"a": "\ud800"} == build_image([("a", "\ud800")], {"a": None}, Findings(), LIMITS)

    def test_assumption(self) -> None:
        """A value read with an assumption is kept, and the assumption is noted once with its column."""
        findings = Findings()
        cells = [("date", "0000-00-00"), ("at", "2024-10-27 02:30:00"), ("gone", "2024-03-31 02:30:00")]
        berlin = timestamptz_in("Europe/Berlin")
        converters = {"date": converter("date"), "at": berlin, "gone": berlin}
        for _ in range(2):
            image = build_image(cells, converters, findings, LIMITS)
            assert {"at": "2024-10-27T00:30:00Z", "gone": "2024-03-31T01:30:00Z"} == image
        assert ["TZ_OVERLAP=at", "TZ_GAP=gone"] == list(findings.notes)
        assert [Issue("date", "ZERO_DATE", "0000-00-00")] == list(findings.issues)


def _rows_of(names: list[str]) -> st.SearchStrategy[dict[str, str | None]]:
    cells = st.none() | st.sampled_from(["", "7", "x", "300", "2024-06-01 00:00:00", "2024-10-27 02:30:00"])
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, cells))


class TestColumns:
    """A row with all columns takes a fast path with the same result as `build_image`."""

    COLUMNS: Mapping[str, Converter | None] = {
        "text": None,
        "number": converter("int8"),
        "at": timestamptz_in("Europe/Berlin"),
        "other": None,
    }

    @given(st.permutations([*COLUMNS, "undeclared"]).flatmap(_rows_of))
    def test_is_build_image(self, row: dict[str, str | None]) -> None:
        """Full rows, partial rows and rows with more columns give the same image, order, issues and notes."""
        plain, found = Findings(), Findings()
        before = dict(row)
        image = Columns(self.COLUMNS, converter("unknown")).image(row, found, LIMITS)
        expected = build_image(row.items(), ConvertersOr(self.COLUMNS, converter("unknown")), plain, LIMITS)
        assert list(expected.items()) == list(image.items())
        assert (plain, before) == (found, row)


SHOP = TableName("shop", None, "orders")


def schema_of(table: TableName, *columns: Column, kind: str = "configured") -> TableSchema:
    """Return the schema of a declared table."""
    return TableSchema.of("source", table.db, table.schema, table.table, columns, kind)


class TestDeclaredTables:
    def test_columns_and_key(self) -> None:
        """A declaration with columns gives a schema with the columns in order and the configured key."""
        declared = DeclaredTable("shop.orders", ("b", "a"), {"a": "int64", "x": "decimal(9,2)", "b": "string"})
        expected = schema_of(
            SHOP, Column("a", "int64", key=2), Column("x", "decimal(9,2)"), Column("b", "string", key=1)
        )
        assert (declared, expected) == DeclaredTables("source", [declared]).find(SHOP)
        assert ("b", "a") == expected.key_columns

    def test_without_a_key(self) -> None:
        """Columns without a key give a schema without a key."""
        declared = DeclaredTable("shop.orders", (), {"a": "int64"})
        assert schema_of(SHOP, Column("a", "int64"), kind="none") == DeclaredTables("source", [declared]).find(SHOP)[1]

    def test_key_only(self) -> None:
        """A declaration without columns gives the key and no schema."""
        declared = DeclaredTable("shop.orders", ("id",))
        assert (declared, None) == DeclaredTables("source", [declared]).find(SHOP)

    def test_of_its_own_table(self) -> None:
        """Two tables under one pattern have separate schemas."""
        tables = DeclaredTables("source", [DeclaredTable("*", (), {"a": "int64"})])
        found = [tables.find(TableName("shop", None, name))[1] for name in ("a", "b", "a")]
        assert ["a", "b", "a"] == [schema.table for schema in found if schema]

    @pytest.mark.parametrize(
        ("pattern", "table", "matches"),
        [
            ("shop.orders", SHOP, True),
            ("orders", SHOP, False),
            ("*.orders", SHOP, True),
            ("shop.*", SHOP, True),
            ("shop.order?", SHOP, True),
            ("SHOP.ORDERS", SHOP, False),
            ("*", SHOP, True),
            ("shop.dbo.orders", TableName("shop", "dbo", "orders"), True),
            ("OWNER.T", TableName(None, "OWNER", "T"), True),
            ("T", TableName(None, None, "T"), True),
            ("log[1]", TableName(None, None, "log[1]"), True),
            ("log[1]", TableName(None, None, "log1"), False),
        ],
    )
    def test_pattern(self, pattern: str, table: TableName, matches: bool) -> None:
        """A pattern is compared with the whole dotted name, with case. Only * and ? are special."""
        declared = DeclaredTable(pattern, ("id",))
        assert (declared if matches else None, None) == DeclaredTables("source", [declared]).find(table)

    def test_first_wins(self) -> None:
        """The first matching pattern counts."""
        first, second = DeclaredTable("shop.*", ("a",)), DeclaredTable("*", ("b",))
        tables = DeclaredTables("source", [first, second])
        assert [first, second] == [tables.find(name)[0] for name in (SHOP, TableName("till", None, "orders"))]

    def test_many_tables(self) -> None:
        """A message can name any table, so the cache is bounded, and the results stay right."""
        declared = DeclaredTable("shop.*", ("id",))
        tables = DeclaredTables("source", [declared])
        for number in range(10_000):
            assert (declared, None) == tables.find(TableName("shop", None, f"t{number}"))
        assert (declared, None) == tables.find(TableName("shop", None, "t0"))

    @pytest.mark.parametrize(
        ("declared", "reason"),
        [
            (
                DeclaredTable("T", (), {"a": "varchar"}),
                "tables: T: column a: unknown type 'varchar'; expected boolean,",
            ),
            (DeclaredTable("T", ("a", "id"), {"a": "int8"}), "tables: T: key column id is missing from columns"),
            (DeclaredTable("T", ("id",), {}), "tables: T: columns is empty"),
            (DeclaredTable("T", ("a", "b", "a")), "tables: T: key lists a column more than once: a, b, a"),
        ],
    )
    def test_wrong(self, declared: DeclaredTable, reason: str) -> None:
        """An invalid declaration is reported at the start by table and column."""
        with pytest.raises(ConfigError) as caught:
            DeclaredTables("source", [DeclaredTable("U", ("id",)), declared])
        assert str(caught.value).startswith(reason)


class TestDictionary:
    @pytest.mark.parametrize("name", DIALECTS)
    def test_names(self, name: str) -> None:
        """A dialect has the same name in code, configuration, metrics and documents."""
        assert name == build(name, Setup("source"), {}).name

    def test_unknown(self) -> None:
        """The error for an unknown dialect has the closest match."""
        with pytest.raises(
            ConfigError, match=r"unknown dialect 'cannal' \(did you mean canal\?\); allowed: canal, dts_avro"
        ):
            build("cannal", Setup("source"), {})

    @pytest.mark.parametrize("name", DIALECTS)
    def test_unknown_option(self, name: str) -> None:
        """Every dialect rejects an unknown option in its own name."""
        with pytest.raises(ConfigError, match=rf"^{name}: unknown option 'no_such_option'"):
            build(name, Setup("source"), {"no_such_option": 1})
