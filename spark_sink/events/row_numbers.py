"""Number the rows in a batch, so that events can be matched by integers instead of keys."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.events.arrow_values import counting
from spark_sink.events.image_table import NotInColumns, read_images
from spark_sink.schema.evolution import TableShape

# A composite key's number is computed from products of the column numbers.
_LARGEST = 2**62


class RowNumbers(NamedTuple):
    """Row numbers, starting at 0.

    Args:
        of_events: each event's row.
        before: the row that the event removes by changing its key; null for all other events.
        keys: each row's typed key, by table column.
    """

    of_events: pa.Int64Array
    before: pa.Int64Array
    keys: pa.RecordBatch

    def of_stored(self, stored: pa.Table) -> pa.Int64Array:
        """Return the number of each row in a table with the key columns. Rows without events have null."""
        return places([column.combine_chunks() for column in stored.columns], self.keys.columns)


def places(stored: Sequence[pa.Array], keys: Sequence[pa.Array]) -> pa.Int64Array:
    """Return the index of each stored key among the keys. It is null if the key is not among them. Null is equal to
    null.

    Args:
        stored, keys: one array for each key column.
    """
    wanted, found = _numbered(keys[0], stored[0])
    for key, column in zip(keys[1:], stored[1:], strict=True):
        codes = _numbered(key, column)
        # The numbers of the columns so far are smaller than the number of keys, so the product cannot overflow.
        wanted, found = _numbered(
            *(pc.add(pc.multiply(of, len(keys[0])), code) for of, code in zip((wanted, found), codes, strict=True))
        )
    return pc.index_in(found, value_set=wanted).cast(pa.int64())


def _numbered(keys: pa.Array, stored: pa.Array) -> tuple[pa.Int64Array, pa.Int64Array]:
    """Number the distinct keys, and return the numbers for both arrays. If a value is not a key, its number is null."""
    known = pc.unique(keys)
    return tuple(pc.index_in(values, value_set=known).cast(pa.int64()) for values in (keys, stored))


def number_rows(keys: pa.StringArray, keys_old: pa.StringArray, shape: TableShape) -> RowNumbers:
    """Number the events' rows by their current and previous keys as text.

    Raises:
        NotInColumns: a key cannot be read in columns.
    """
    texts = pa.concat_arrays([keys, keys_old]) if keys_old.null_count < len(keys_old) else keys
    coded = texts.dictionary_encode()
    by_text, typed = _rows_of(coded.dictionary, shape)
    numbers = by_text.take(coded.indices)
    before = numbers.slice(len(keys)) if len(texts) > len(keys) else pa.nulls(len(keys), pa.int64())
    return RowNumbers(numbers.slice(0, len(keys)), before, typed)


def _rows_of(texts: pa.StringArray, shape: TableShape) -> tuple[pa.Int64Array, pa.RecordBatch]:
    """Return each string's row number, and the keys by row number. Several strings may stand for the same key."""
    types = {sent: shape.types[name] for sent, name in zip(shape.key_sent_as, shape.key, strict=True)}
    read = read_images(texts.cast(pa.binary()), types)
    columns = [read[name] for name in shape.key_sent_as]
    # NaN is not a key, and zero has two representations.
    if any(column.null_count or pa.types.is_floating(column.type) for column in columns):
        raise NotInColumns
    coded = [column.dictionary_encode() for column in columns]
    rows = _combined([one.indices for one in coded], [one.dictionary for one in coded]).dictionary_encode()
    numbers = rows.indices.cast(pa.int64())
    places = pa.table({"number": numbers, "place": counting(len(texts))})
    first = places.group_by("number").aggregate([("place", "min")]).sort_by("number").column("place_min")
    keys = pa.RecordBatch.from_pydict(dict(zip(shape.key, columns, strict=True)))
    return numbers, keys.take(first.combine_chunks())


def _combined(codes: Sequence[pa.Array], values: Sequence[pa.Array]) -> pa.Int64Array:
    """Combine the numbers from all columns into one number per row. It is null if any of the numbers is."""
    if prod(map(len, values)) > _LARGEST:
        raise NotInColumns
    whole: pa.Array = pa.array([0] * len(codes[0]), pa.int64())
    for column, of in zip(codes, values, strict=True):
        whole = pc.add(pc.multiply(whole, len(of)), column.cast(pa.int64()))
    return whole
