"""The name in the lakehouse of a source table: a pattern, the folder names that it gives, and exceptions."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass

from cdc_core.table_id import TableId

FIELDS = ("source", "db", "schema", "table")
# The folder of our own tables (quarantine); a pattern that starts with it would write among them.
RESERVED = "_cdc"


@dataclass(frozen=True)
class TablePattern:
    """A table name pattern such as `{source}_{db}_{schema}.{table}`.

    A part that the source does not have is left out together with the text before it. A dot of the pattern separates
    folders; parts never add one: every character of a part that is no letter, digit, `_` or `-` becomes `~` and its
    hexadecimal code, so that a name can neither leave the warehouse nor look like another.

    Args:
        renamed: patterns of source tables that have a name instead; the first one that fits counts.
    """

    parts: tuple[tuple[str, str], ...]
    renamed: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str, renamed: Mapping[str, str] | None = None) -> TablePattern:
        """The pattern in `text`.

        Raises:
            ValueError: it names unknown parts, lacks `{table}`, or has text that no folder name should hold.
        """
        parts = []
        for literal, field, spec, conversion in string.Formatter().parse(text):
            if field is None:
                raise ValueError("a table name pattern ends with a part in braces")
            if field not in FIELDS or spec or conversion:
                raise ValueError(f"unknown part {{{field}}}; allowed: {', '.join(f'{{{name}}}' for name in FIELDS)}")
            if not re.fullmatch(r"[\w.-]*", literal):
                raise ValueError("text between the parts may hold letters, digits, `_`, `-` and `.`")
            parts.append((literal, field))
        if "table" not in (field for _, field in parts):
            raise ValueError("a table name pattern needs {table}")
        if text.startswith((RESERVED, ".")) or ".." in text:
            raise ValueError(f"a table name pattern may not start with {RESERVED} or a dot, nor hold two dots together")
        return cls(tuple(parts), tuple((renamed or {}).items()))

    def target(self, table: TableId) -> str:
        """The table's name in the lakehouse, such as `shop_sales.orders`."""
        for pattern, name in self.renamed:
            if table.fits(pattern):
                return name
        named = table._asdict()
        written = (literal + _folder(named[field]) for literal, field in self.parts if named[field] is not None)
        return "".join(written)

    def route_sql(self) -> str:
        """A Spark expression over the columns source, db, schema, table: equal wherever targets are equal but for case.

        It may be equal for two targets that differ (parts are not escaped here); it only decides who meets in a task.
        """
        texts = (f"ifnull(concat('{literal}', {field}), '')" for literal, field in self.parts)
        plain = f"concat({', '.join(texts)})"
        cases = " ".join(f"WHEN {_fits_sql(pattern)} THEN '{name}'" for pattern, name in self.renamed)
        return f"lower(CASE {cases} ELSE {plain} END)" if cases else f"lower({plain})"


def plain_name(text: str) -> str:
    """A name of a table that is given as such. It has no other characters than the text of a pattern between its parts,
    so that what tasks meet by (`route_sql`) is equal where it equals a name that the pattern gives.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", text) or text.startswith(RESERVED):
        raise ValueError(
            f"a table name has letters, digits, `_`, `-`, and dots between folders; it does not start with {RESERVED}"
        )
    return text


def _folder(part: str) -> str:
    return "".join(c if c.isalnum() or c in "_-" else f"~{ord(c):x}~" for c in part)


_TABLE_SQL = "concat_ws('/', " + ", ".join(f"ifnull({field}, '')" for field in FIELDS) + ")"


def _fits_sql(pattern: str) -> str:
    """`TableId.fits` as a Spark condition."""
    wild = {"*": ".*", "?": "."}
    regex = "".join(wild.get(c) or (c if c.isalnum() else f"\\\\x{{{ord(c):x}}}") for c in pattern)
    return f"{_TABLE_SQL} RLIKE '(?s)^{regex}\\\\z'"
