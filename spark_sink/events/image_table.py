"""Images of many events read at once, by Arrow's JSON reader: exactly as `images` reads each, or not at all.

Arrow reads more than JSON is, and does not tell a column that is absent from one that is null. So only images are given
to it that are flat and compact objects, whose names are written without escapes. In such an image every quote inside a
text is escaped, so that `"name":` stands in it where the column is named, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from spark_sink.events.arrow_values import text_column
from spark_sink.schema.column_types import arrow_type

_TEXT = r'"(?:[^"\\\x00-\x1f]|\\.)*"'
_MEMBER = rf'"[^"\\\x00-\x1f]*":(?:{_TEXT}|-?[0-9][0-9.eE+-]*|true|false|null)'
_FLAT = rf"^\{{(?:{_MEMBER}(?:,{_MEMBER})*)?\}}$"

# A name that could not be found as a text: it holds what JSON escapes, or begins with what follows the end of a text.
HIDDEN_NAME = re.compile(r'["\\\x00-\x1f]|^[,:}]|^$')

# What is read as a JSON number or literal; of other columns the text is read, and converted as everywhere.
_READ_AS: Mapping[str, pa.DataType] = {
    **{sql: arrow_type(sql) for sql in ("boolean", "tinyint", "smallint", "int", "bigint")},
    "float": pa.float64(),
    "double": pa.float64(),
}

_BLOCK_BYTES = 16 * 2**20


class NotInColumns(Exception):
    """Events that are left to be folded one by one."""


def read_images(images: pa.BinaryArray, types: Mapping[str, str]) -> dict[str, pa.Array]:
    """Return the columns of images, none of which is null: a value, or null, for each image.

    Args:
        types: Spark SQL type by column; an image may leave columns out, and has no others.

    Raises:
        NotInColumns: an image, or a value, is not of the kind that this way reads.
    """
    if not len(images):
        return {name: pa.array([], arrow_type(sql)) for name, sql in types.items()}
    schema = pa.schema([(name, _READ_AS.get(sql, pa.string())) for name, sql in types.items()])
    try:
        pc.cast(images, pa.string())  # which is where bytes that are no UTF-8 are found
        if not pc.all(pc.match_substring_regex(images, _FLAT)).as_py():
            raise NotInColumns
        read = pj.read_json(
            pa.BufferReader(_lines(images)),
            pj.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
        )
        if read.num_rows != len(images):
            raise NotInColumns
        return {name: _typed(read.column(name).combine_chunks(), sql) for name, sql in types.items()}
    except (pa.ArrowException, ValueError):
        raise NotInColumns from None


def names_column(images: pa.BinaryArray, name: str) -> pa.BooleanArray:
    """Tell which images name a column, of images that `read_images` reads, or empty texts.

    Raises:
        NotInColumns: its name cannot be looked for.
    """
    if HIDDEN_NAME.search(name):
        raise NotInColumns
    return pc.match_substring(images, f'"{name}":')


def _lines(images: pa.BinaryArray) -> pa.Buffer:
    """An image a line."""
    joined = pc.binary_join_element_wise(images, pa.scalar(b"", pa.binary()), pa.scalar(b"\n", pa.binary()))
    return joined.buffers()[2]


def _typed(read: pa.Array, sql: str) -> pa.Array:
    if pa.types.is_string(read.type):
        return text_column(read, sql)
    if not pa.types.is_floating(read.type):
        return read
    # By way of the double, as one value is read.
    array = read.cast(arrow_type(sql), safe=False)
    if pc.any(pc.is_inf(array), min_count=0).as_py():
        raise NotInColumns
    return array
