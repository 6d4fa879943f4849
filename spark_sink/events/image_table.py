"""Read the images of many events in one call to Arrow's JSON reader. The call either returns the same result as
`images` or fails.

Arrow accepts more than JSON, and does not distinguish an absent column from a null one. Only images that are flat,
compact objects without escapes in their names are therefore passed to Arrow. In these images, every quote inside a
string is escaped, so `"name":` occurs only where the image contains the column.
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

# A name that cannot be searched for as text, because it contains characters that JSON escapes, or begins with a
# character that can follow a text.
HIDDEN_NAME = re.compile(r'["\\\x00-\x1f]|^[,:}]|^$')

# Types that are read as JSON numbers or literals. Columns of other types are read as text and converted as usual.
_READ_AS: Mapping[str, pa.DataType] = {
    **{sql: arrow_type(sql) for sql in ("boolean", "tinyint", "smallint", "int", "bigint")},
    "float": pa.float64(),
    "double": pa.float64(),
}

_BLOCK_BYTES = 16 * 2**20


class NotInColumns(Exception):
    """These events must be folded one by one."""


def read_images(images: pa.BinaryArray, types: Mapping[str, str]) -> dict[str, pa.Array]:
    """Return the columns of the images. Each column has a value or null for each image. No image may be null.

    Args:
        types: Spark SQL type by column. An image may lack some of these columns, but it must not have others.

    Raises:
        NotInColumns: this function cannot read one of the images or values.
    """
    if not len(images):
        return {name: pa.array([], arrow_type(sql)) for name, sql in types.items()}
    schema = pa.schema([(name, _READ_AS.get(sql, pa.string())) for name, sql in types.items()])
    try:
        pc.cast(images, pa.string())  # this also detects bytes that are not UTF-8
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
    """Return, for each image, whether it contains a column. `read_images` must be able to read the images, unless they
    are empty.

    Raises:
        NotInColumns: the name cannot be searched for as text.
    """
    if HIDDEN_NAME.search(name):
        raise NotInColumns
    return pc.match_substring(images, f'"{name}":')


def _lines(images: pa.BinaryArray) -> pa.Buffer:
    """Join images, one per line."""
    joined = pc.binary_join_element_wise(images, pa.scalar(b"", pa.binary()), pa.scalar(b"\n", pa.binary()))
    return joined.buffers()[2]


def _typed(read: pa.Array, sql: str) -> pa.Array:
    if pa.types.is_string(read.type):
        return text_column(read, sql)
    if not pa.types.is_floating(read.type):
        return read
    # The conversion of single values goes through a double as well.
    array = read.cast(arrow_type(sql), safe=False)
    if pc.any(pc.is_inf(array), min_count=0).as_py():
        raise NotInColumns
    return array
