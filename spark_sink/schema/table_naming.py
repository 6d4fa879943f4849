"""Map source tables to lakehouse names: patterns, folder names, and explicit names."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cdc_core.table_id import TableId

FIELDS = ("source", "db", "schema", "table")
# The folder for the sink's own tables. A pattern that starts with this name would put other tables into the same
# folder.
RESERVED = "_cdc"

# The folder for the tables that a reload fills, until they replace the tables that readers see.
_RELOADED = f"{RESERVED}.reload."

# Folders that a table format or Spark keeps in a table, in lower case.
_IN_TABLES = frozenset({"_delta_log", "_change_data", "_sidecars", "_staged_commits", "_temporary", "_spark_metadata"})

# The longest folder name that a file system accepts, and the length to which a longer name is cut, both in bytes of
# UTF-8.
_MAX_FOLDER, _KEPT = 255, 200

CUT = "~~"
"""The sign marks a folder name that was cut, and stands for an empty part."""


@dataclass(frozen=True)
class TablePattern:
    """A table name pattern such as `{source}_{db}_{schema}.{table}`.

    If the source does not have a level, that level and the text before it are left out. A dot in the pattern separates
    folders. Parts never add a folder. In each part, any character other than a letter, digit, `_` or `-` becomes `~`
    and its hexadecimal code. An empty part becomes `~~`. If the name of a folder has another meaning, it is changed to
    begin with such a code. A folder name that is too long for a file system is cut, and ends in `~~` and a hash of the
    whole name. A name can therefore never point outside the warehouse or imitate another name.

    Args:
        renamed: the explicit names, keyed by a pattern for source tables. The first match counts.
    """

    parts: tuple[tuple[str, str], ...]
    renamed: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str, renamed: Mapping[str, str] | None = None) -> TablePattern:
        """Parse a pattern.

        Raises:
            ValueError: the pattern has an unknown part, lacks `{table}`, or has text that is not allowed in the name of
                a folder.
        """
        parts = []
        for literal, field, spec, conversion in string.Formatter().parse(text):
            if field is None:
                raise ValueError("a table name pattern must end with a part in braces")
            if field not in FIELDS or spec or conversion:
                raise ValueError(f"unknown part {{{field}}}; allowed: {', '.join(f'{{{name}}}' for name in FIELDS)}")
            if not re.fullmatch(r"[\w.-]*", literal):
                raise ValueError("text between the parts can contain letters, digits, `_`, `-` and `.`")
            parts.append((literal, field))
        if "table" not in (field for _, field in parts):
            raise ValueError("a table name pattern must contain {table}")
        if text.startswith((RESERVED, ".")) or ".." in text:
            raise ValueError(
                f"a table name pattern must not start with {RESERVED} or a dot, or contain two consecutive dots"
            )
        return cls(tuple(parts), tuple((renamed or {}).items()))

    def target(self, table: TableId) -> str:
        """Return the table's name in the lakehouse, such as `shop_sales.orders`."""
        for pattern, name in self.renamed:
            if table.fits(pattern):
                return name
        named = table._asdict()
        written = "".join(literal + _escaped(named[field]) for literal, field in self.parts if named[field] is not None)
        first, *others = written.lstrip(".").split(".")
        return ".".join((_folder(first, _IN_TABLES | {RESERVED}), *(_folder(one, _IN_TABLES) for one in others)))

    def route_sql(self) -> str:
        """Return a Spark expression over the columns source, db, schema and table. Its value is the same for all tables
        whose lakehouse names differ at most in case.

        Parts are not escaped here, so tables with different names may also share a value. It only determines which
        events are in the same task.
        """
        texts = (f"ifnull(concat('{literal}', {field}), '')" for literal, field in self.parts)
        # As in `target`, the dot before the first folder that has a value is left out. A renamed table has no such dot.
        plain = f"trim(LEADING '.' FROM concat({', '.join(texts)}))"
        cases = " ".join(f"WHEN {_fits_sql(pattern)} THEN '{name}'" for pattern, name in self.renamed)
        return f"lower(CASE {cases} ELSE {plain} END)" if cases else f"lower({plain})"


def shadow_of(name: str) -> str:
    """Return the name of the table that a reload of this table fills."""
    return _RELOADED + name


def shown_name(name: str) -> str:
    """Return the name of the table that a shadow will replace. Other names stay the same."""
    return name.removeprefix(_RELOADED)


def plain_name(text: str) -> str:
    """Check an explicit table name. The name is limited to the characters that a pattern allows between its parts. If
    it equals a name from the pattern, the values of `route_sql` are therefore equal, too.

    Raises:
        ValueError: the name is not valid.
    """
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", text) or text.startswith(RESERVED):
        raise ValueError(
            "a table name can contain letters, digits, `_`, `-`, and dots between folders; it must "
            f"not start with {RESERVED}"
        )
    return text


def _escaped(part: str) -> str:
    return "".join(c if c.isalnum() or c in "_-" else f"~{ord(c):x}~" for c in part) or CUT


def _folder(name: str, reserved: Collection[str]) -> str:
    """Return a folder name that file systems accept and that has no other meaning."""
    if name.lower() in reserved:
        return f"~{ord(name[0]):x}~{name[1:]}"
    encoded = name.encode()
    if len(encoded) <= _MAX_FOLDER:
        return name
    return f"{encoded[:_KEPT].decode(errors='ignore')}{CUT}{hashlib.sha256(encoded).hexdigest()[:16]}"


_TABLE_SQL = "concat_ws('/', " + ", ".join(f"ifnull({field}, '')" for field in FIELDS) + ")"


def _fits_sql(pattern: str) -> str:
    """Return `TableId.fits` as a Spark condition."""
    wild = {"*": ".*", "?": "."}
    regex = "".join(wild.get(c) or (c if c.isalnum() else f"\\\\x{{{ord(c):x}}}") for c in pattern)
    return f"{_TABLE_SQL} RLIKE '(?s)^{regex}\\\\z'"
