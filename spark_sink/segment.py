"""The events of a table between two barriers -> what to write. An event whose values do not fit is left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_sink.columns import arrow_type
from spark_sink.errors import Reason
from spark_sink.evolve import Shape
from spark_sink.fold import Event, Folded, Key, Mark, Row, fold
from spark_sink.intake import typed_keys
from spark_sink.quarantine import Rejected
from spark_sink.tables import INCOMPLETE, POS, SCOPE, SEEN, Changes, Table
from spark_sink.values import column, fits, image


@dataclass(frozen=True, slots=True)
class Settled:
    """What a segment comes to."""

    changes: Changes
    rejected: list[Rejected]
    folded: Folded


class _Unfit(Exception):
    """Rows that cannot be written, by key: some image of each holds what its column does not take."""

    def __init__(self, keys: set[Key]) -> None:
        self.keys = keys


def settle(events: Sequence[Event], table: Table, shape: Shape) -> Settled:
    """Fold the events onto the stored rows.

    Values are looked at where they would be written. If one does not fit, all events of its row are examined and the
    bad ones left out, as if they had never come, and the segment is folded again.
    """
    keys, wrong = typed_keys(events, shape)
    rejected = [Rejected(e.index, *why) for e in events if (why := wrong.get(e.key) or wrong.get(e.key_old or ""))]
    left_out = {one.event for one in rejected}
    marks = table.marks(set(keys.values()))
    while True:
        good = [event for event in events if event.index not in left_out] if left_out else events
        folded = fold(good, keys, marks)
        try:
            return Settled(_changes(folded, marks, shape, table), rejected, folded)
        except _Unfit as unfit:
            found = _examine(_suspects(good, keys, folded, unfit.keys), shape)
            if not found:
                raise AssertionError("a row does not fit although each of its images does") from None
            rejected += found
            left_out |= {one.event for one in found}


def _changes(folded: Folded, marks: Mapping[Key, Mark], shape: Shape, table: Table) -> Changes:
    live = {key: row for key, row in folded.rows.items() if row.exists}
    gone = [key for key, row in folded.rows.items() if not row.exists and key in marks]
    images = _images(live, shape)
    moved = {i: row.base for i, (key, row) in enumerate(live.items()) if row.base is not None and row.base != key}
    bases = table.rows(set(moved.values())) if moved else {}
    stays = [row.base == key for key, row in live.items()]
    unfit: set[Key] = set()
    columns: dict[str, pa.Array] = _key_columns(live, shape)
    kept: dict[str, pa.Array] = {}
    for name, sql in shape.types.items():
        if name in columns:
            continue
        values = [sent.get(name) for sent in images]
        try:
            array = column(values, sql)
        except ValueError:
            unfit |= {key for key, value in zip(live, values, strict=True) if not fits(value, sql)}
            continue
        written = [not stay or name in sent for stay, sent in zip(stays, images, strict=True)]
        if not all(written):
            kept[name] = pa.array(written)
        missing = {i: bases[base][name] for i, base in moved.items() if name not in images[i]}
        columns[name] = _filled(array, missing) if missing else array
    if unfit:
        raise _Unfit(unfit)
    rows = pa.table({**{name: columns[name] for name in shape.types}, **_meta_columns(live.values())})
    inserts_only = not gone and not any(key in marks for key in live)
    return Changes(rows, kept, pa.table(_key_columns(gone, shape)), inserts_only)


def _images(live: Mapping[Key, Row], shape: Shape) -> list[dict[str, Any]]:
    """The columns that each row is sent, later images over earlier ones."""
    allowed = shape.types.keys()
    images = []
    unfit = set()
    for key, row in live.items():
        sent: dict[str, Any] = {}
        try:
            for event in row.images:
                sent.update(image(event.after or ""))
        except ValueError:
            unfit.add(key)
        if not sent.keys() <= allowed:
            unfit.add(key)
        images.append(sent)
    if unfit:
        raise _Unfit(unfit)
    return images


def _key_columns(keys: Iterable[Key], shape: Shape) -> dict[str, pa.Array]:
    taken = list(keys)
    return {
        name: pa.array([key[i] for key in taken], arrow_type(shape.types[name])) for i, name in enumerate(shape.key)
    }


def _meta_columns(rows: Iterable[Row]) -> dict[str, pa.Array]:
    taken = list(rows)
    return {
        SCOPE: pa.array([row.scope for row in taken], pa.string()),
        POS: pa.array([row.positions[row.scope or ""] for row in taken], pa.string()),
        SEEN: pa.array([_other_scopes(row) for row in taken], pa.string()),
        INCOMPLETE: pa.array([row.incomplete for row in taken], pa.bool_()),
    }


def _other_scopes(row: Row) -> str | None:
    if len(row.positions) < 2:
        return None
    others = {scope: pos for scope, pos in row.positions.items() if scope != row.scope}
    return json.dumps(others, sort_keys=True, separators=(",", ":"))


def _filled(array: pa.Array, stored: Mapping[int, object]) -> pa.Array:
    """The column with stored values where the images of a moved row told nothing."""
    mask = pa.array([i in stored for i in range(len(array))])
    return pc.if_else(mask, pa.array([stored.get(i) for i in range(len(array))], array.type), array)


def _suspects(events: Sequence[Event], keys: Mapping[str, Key], folded: Folded, unfit: set[Key]) -> dict[int, Event]:
    """Every event that may be the reason: those of the rows themselves, and those that moved into them."""
    suspects = {event.index: event for key in unfit for event in folded.rows[key].images}
    return suspects | {event.index: event for event in events if keys[event.key] in unfit}


def _examine(suspects: Mapping[int, Event], shape: Shape) -> list[Rejected]:
    findings = ((index, _wrong_image(event, shape)) for index, event in sorted(suspects.items()))
    return [Rejected(index, *why) for index, why in findings if why is not None]


def _wrong_image(event: Event, shape: Shape) -> tuple[Reason, str] | None:
    if event.after is None or event.op == "d":
        return None
    try:
        sent = image(event.after)
    except ValueError:
        return Reason.IMAGE_INVALID, "the after image is not a JSON object"
    for name, value in sent.items():
        if name not in shape.types:
            return Reason.COLUMN_UNKNOWN, f"the column {name} is not in the schema of the event"
        if name not in shape.key and not fits(value, shape.types[name]):
            return Reason.VALUE_INVALID, f"the value of {name} does not fit {shape.types[name]} exactly"
    return None
