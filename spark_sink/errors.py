"""The errors of the sink: the class of an error, or the reason of a quarantined event, decides what goes on.

FatalError       going on would lose or invent something: the batch is not acknowledged, exit code 1
  ConfigError    the operator must change the configuration or the call: exit code 2
  Overtaken      somebody else wrote what only this sink may write
Refused          one table cannot take what its events ask for: it is parked with them, other tables go on
Reason           one event cannot be applied: it goes to quarantine, its table goes on
"""

from __future__ import annotations

from enum import StrEnum

from cdc_core.errors import ConfigError as ConfigError
from cdc_core.errors import FatalError as FatalError
from cdc_core.errors import unknown as unknown


class Overtaken(FatalError):
    """Somebody else wrote what only this sink may write, at the same time; nothing is lost by it.

    Args:
        what: was written, such as "the table shop.orders".
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"another sink or program wrote {what} at the same time. Run one sink of a configuration, and leave its "
            "tables to it; the next start goes on with what is there"
        )


class Refused(Exception):
    """A table cannot go on; the message says why, without row data.

    Args:
        reason: under which it is parked.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Reason(StrEnum):
    """The reason of an event in quarantine, or of a parked table: a closed list, the column `reason` of those
    tables."""

    UNDECODABLE = "UNDECODABLE"  # not the Avro of this envelope version
    TABLE_UNKNOWN = "TABLE_UNKNOWN"  # a row event that names no table
    OPERATION_UNKNOWN = "OPERATION_UNKNOWN"
    KEY_UNKNOWN = "KEY_UNKNOWN"  # no key, or a key column that is null
    KEY_DIFFERS = "KEY_DIFFERS"  # the event is keyed by other columns than its table
    KEY_INVALID = "KEY_INVALID"  # a key value that does not fit its column
    IMAGE_MISSING = "IMAGE_MISSING"  # the operation needs an `after` that is not there
    IMAGE_INVALID = "IMAGE_INVALID"  # `after` is not one JSON object
    COLUMN_UNKNOWN = "COLUMN_UNKNOWN"  # `after` names a column that its own schema does not have
    SCHEMA_UNKNOWN = "SCHEMA_UNKNOWN"  # its schema id is not in the schemas topic
    VALUE_INVALID = "VALUE_INVALID"  # a value that its column cannot hold exactly
    ROW_OUTLIVED = "ROW_OUTLIVED"  # another scope has deleted the row since, by the commit times of the source
    # The table cannot go on, and is parked with all its events from there:
    TABLE_CLASH = "TABLE_CLASH"  # another source table has its name in the lakehouse
    TABLE_REFUSED = "TABLE_REFUSED"  # it is no table that the sink can write
    SCHEMA_REFUSED = "SCHEMA_REFUSED"  # a schema asks for a change that the policy or the key forbids
    TRUNCATE_SCOPES = "TRUNCATE_SCOPES"  # a truncate, and several scopes feed the table
    RELOAD_UNANNOUNCED = "RELOAD_UNANNOUNCED"  # the table was loaded again under native order, without a new epoch
    ROWS_UNACCOUNTED = "ROWS_UNACCOUNTED"  # a statement changed rows of it that no event has
    TABLE_DROPPED = "TABLE_DROPPED"  # its source table was dropped
    TABLE_SET_BACK = "TABLE_SET_BACK"  # the table was restored to a state before what the manifest says it reached
    TABLE_GONE = "TABLE_GONE"  # the manifest names the table, and it does not exist any more
    REJECTED_MANY = "REJECTED_MANY"  # more of its events would go to quarantine in one batch than tables.park_rejected
    REBUILD = "REBUILD"  # it is being rebuilt from the topic
    COMMAND = "COMMAND"  # the operator parked it
