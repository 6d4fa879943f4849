"""The sink's errors. The class of an error, or the reason for quarantining an event, determines which work continues.

    FatalError       continuing would lose or invent data: the batch is not acknowledged, exit code 1
      ConfigError    the operator must change the configuration or the call: exit code 2
      Overtaken      another process wrote something that only this sink may write
    Refused          one table cannot accept its events: it is parked with them, and other tables continue
    Reason           one event cannot be applied: it goes to quarantine, and its table continues

An unexpected error that affects one table also parks this table, as long as the storage responds
(`tables/table_errors.py`).
"""

from __future__ import annotations

from enum import StrEnum

from cdc_core.errors import ConfigError as ConfigError
from cdc_core.errors import FatalError as FatalError
from cdc_core.errors import unknown as unknown


class Overtaken(FatalError):
    """Another process wrote something that only this sink may write. Nothing is lost.

    Args:
        what: a description of what was written, such as "the table shop.orders".
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"another sink or program wrote {what} at the same time. Run only one sink with this configuration, do "
            "not let other programs write to its tables, and restart the sink to continue"
        )


class Refused(Exception):
    """A table cannot accept more events. The message gives the reason, but no row data.

    Args:
        reason: why the table is parked.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Reason(StrEnum):
    """The reasons why an event is in quarantine or a table is parked. This list is complete. The quarantine table and
    `_cdc.parked` store the reason in the column `reason`.
    """

    UNDECODABLE = "UNDECODABLE"  # not an Avro record in this envelope version
    TABLE_UNKNOWN = "TABLE_UNKNOWN"  # a row event without a table
    OPERATION_UNKNOWN = "OPERATION_UNKNOWN"
    KEY_UNKNOWN = "KEY_UNKNOWN"  # no key, or a key column that is null
    KEY_DIFFERS = "KEY_DIFFERS"  # the event's key columns differ from the table's
    KEY_INVALID = "KEY_INVALID"  # a key value that does not fit its column
    IMAGE_MISSING = "IMAGE_MISSING"  # the operation needs an `after` image, which is missing
    IMAGE_INVALID = "IMAGE_INVALID"  # `after` is not a single JSON object
    COLUMN_UNKNOWN = "COLUMN_UNKNOWN"  # `after` has a column that its own schema does not have
    SCHEMA_UNKNOWN = "SCHEMA_UNKNOWN"  # the event's schema id is missing from the schemas topic
    VALUE_INVALID = "VALUE_INVALID"  # a value that its column cannot hold exactly
    ROW_OUTLIVED = "ROW_OUTLIVED"  # another scope deleted the row later, according to the source's commit times
    # In all cases below, the table cannot accept more events, and is parked with all following events:
    TABLE_CLASH = "TABLE_CLASH"  # another source table has this table's name in the lakehouse
    TABLE_REFUSED = "TABLE_REFUSED"  # the sink cannot write such a table
    SCHEMA_REFUSED = "SCHEMA_REFUSED"  # a schema change that the policy or the key forbids
    TRUNCATE_SCOPES = "TRUNCATE_SCOPES"  # a truncate of a table that several scopes feed
    RELOAD_UNANNOUNCED = "RELOAD_UNANNOUNCED"  # the table was loaded again under native order, without a new epoch
    ROWS_UNACCOUNTED = "ROWS_UNACCOUNTED"  # a statement changed rows without events
    TABLE_DROPPED = "TABLE_DROPPED"  # the source table was dropped
    TABLE_SET_BACK = "TABLE_SET_BACK"  # the table was restored to a state before the one in the manifest
    TABLE_GONE = "TABLE_GONE"  # the manifest has the table, but the table no longer exists
    TABLE_DAMAGED = "TABLE_DAMAGED"  # the table cannot be opened, read, written or changed
    REJECTED_MANY = "REJECTED_MANY"  # in one batch, more events than tables.park_rejected would go to quarantine
    CONTRACT_BROKEN = "CONTRACT_BROKEN"  # a schema or an event breaks the table's contract
    REBUILD = "REBUILD"  # the table is being rebuilt from the topic
    RELOAD = "RELOAD"  # the table is being reloaded, and readers see its old rows until the load is complete
    RELOAD_ENDED = "RELOAD_ENDED"  # its reload ended or was canceled, but events that waited for it still wait
    RELAYOUT = "RELAYOUT"  # the table's files are being rewritten in another layout
    COMMAND = "COMMAND"  # an operator parked the table
