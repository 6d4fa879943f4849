"""Check a table's events against the contracts of its source tables (docs/sink/contracts.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow.compute as pc

from cdc_core.envelope import TableSchema
from cdc_core.errors import quote
from cdc_core.table_contract import TableContract, breaches
from spark_sink.errors import Reason, Refused
from spark_sink.events.event_columns import EventColumns, schema_ids, without_schema
from spark_sink.events.grouping import NEED_AFTER
from spark_sink.events.image_table import HIDDEN_NAME
from spark_sink.model.event import Event
from spark_sink.schema.catalog import SchemaCatalog

_SHOWN = 3


def check_contracts(contracts: Sequence[TableContract], events: Sequence[Event], catalog: SchemaCatalog) -> None:
    """Make sure that a table's events fulfill the contracts.

    Args:
        contracts: the contracts of the table's source tables; usually none or one.

    Raises:
        Refused: a schema or a value breaks a contract. The message contains no value.
    """
    for contract in contracts:
        latest = catalog.latest(contract.table)
        schemas: dict[str | None, TableSchema] = {}
        for id in schema_ids(events):
            if (schema := catalog.find(contract.table, id)) is not None:
                schemas[id] = schema
        if latest is not None and len(without_schema(events)):
            schemas[None] = latest
        found: dict[str, None] = {}
        for schema in schemas.values():
            older = schema is not latest
            found |= dict.fromkeys(breaches(contract, schema.column_types, schema.key_columns, older=older))
        if not found:
            nulls = _null_columns(events, contract.required, {*schemas, None})
            found = {f"an event has NULL in the required column {quote(name)}": None for name in nulls}
        if found:
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            raise Refused(
                Reason.CONTRACT_BROKEN,
                f"the contract for {contract.table} (tables.contract) is broken: {'; '.join([*found][:_SHOWN])}{more}",
            )


def _null_columns(events: Sequence[Event], names: Sequence[str], ids: set[str | None]) -> list[str]:
    """Return the columns that are NULL in an after image of an event with one of these schemas."""
    if not names:
        return []
    hidden = any(HIDDEN_NAME.search(name) for name in names)
    # Images contain no spaces between tokens. The pattern only selects images to decode.
    pattern = ":null" if hidden else rf'"(?:{"|".join(map(re.escape, names))})":null'
    found: set[str] = set()
    for image in _images(events, pattern, ids):
        try:
            sent = msgspec.json.decode(image, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue  # quarantined when the event's values are read
        found |= {name for name in names if name in sent and bytes(sent[name]) == b"null"}
    return [name for name in names if name in found]


def _images(events: Sequence[Event], pattern: str, ids: set[str | None]) -> Iterator[bytes]:
    if isinstance(events, EventColumns):
        matches = pc.fill_null(pc.match_substring_regex(events.columns["after"], pattern), False)
        events = events.where(matches)
    wanted = re.compile(pattern.encode())
    for event in events:
        if event.op in NEED_AFTER and event.after is not None and event.schema_id in ids and wanted.search(event.after):
            yield event.after
