"""The error hierarchy.

The caller's reaction depends only on the error class:

    CdcError
      MessageError       one message cannot be translated: write a dead letter and continue
      RetryableError     a dependency (broker, registry) is not ready: wait and retry, keep the offset
      FatalError         continuing would lose or invent data: stop with exit code 1, keep the offset
        ContradictionError  messages contradict the operator's configuration: the service stops only their source
        ConfigError      the operator must change the configuration or the call: exit code 2
"""

from __future__ import annotations

from enum import StrEnum

from cdc_core.errors import CdcError as CdcError
from cdc_core.errors import ConfigError as ConfigError
from cdc_core.errors import FatalError as FatalError
from cdc_core.errors import quote as quote
from cdc_core.errors import unknown as unknown


class ErrorCode(StrEnum):
    """The reason for a dead letter. The header `cdc-error-code` has one of these values."""

    FRAMING = "FRAMING"  # the first bytes match no layout that the dialect knows
    MALFORMED_JSON = "MALFORMED_JSON"
    MALFORMED_AVRO = "MALFORMED_AVRO"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"  # larger, deeper, wider or more than the configuration allows
    UNKNOWN_TYPE = "UNKNOWN_TYPE"  # an unknown message type, not an unknown row operation
    UNKNOWN_OPERATION = "UNKNOWN_OPERATION"
    MISSING_FIELD = "MISSING_FIELD"
    INVALID_FIELD = "INVALID_FIELD"
    TABLE_UNKNOWN = "TABLE_UNKNOWN"  # the message does not identify the row's table
    ROW_NOT_SENT = "ROW_NOT_SENT"  # the row changed, but its writer left the values out of the message
    SCHEMA_MISSING = "SCHEMA_MISSING"  # metadata that the message refers to was not learned in time
    AMBIGUOUS_VARIANT = "AMBIGUOUS_VARIANT"  # the message has different meanings depending on its writer
    CONTRADICTION = (
        "CONTRADICTION"  # shows that the source's options are wrong; a dead letter only if on_error holds the partition
    )
    UNSUPPORTED_SHAPE = "UNSUPPORTED_SHAPE"  # understood, but this release cannot translate it exactly
    KEY_MISSING = "KEY_MISSING"
    KEY_CHANGE_INCOMPLETE = "KEY_CHANGE_INCOMPLETE"
    HELD = "HELD"  # an earlier message for the table is a dead letter, and on_error holds the table
    TOO_LARGE = "TOO_LARGE"  # an event does not fit the output topic
    TOPIC_REFUSED = "TOPIC_REFUSED"  # a projection's topic for this table cannot be created or used
    DIALECT_FAILED = "DIALECT_FAILED"  # a dialect plug-in raised an unexpected exception, hung or broke its contract
    INTERNAL = "INTERNAL"  # an unexpected exception while translating this message, which is a bug in the translator


class MessageError(CdcError):
    """A message cannot be translated.

    Args:
        reason: what was found and what was expected, without row data.
        path: the position in the message, as a JSON path from `$` (also used for Avro fields).
    """

    def __init__(self, code: ErrorCode, reason: str, *, path: str = "$") -> None:
        super().__init__(f"{reason} at {path}")
        self.code = code
        self.reason = reason
        self.path = path


class Unmaskable(CdcError):
    """No masked copy of a record can be made, so the record is skipped. The error text gives the reason, without row
    data.
    """


class RetryableError(CdcError):
    """A required service does not respond. The same call may succeed later."""


class ContradictionError(FatalError):
    """Messages contradict the options that they were read with, so later messages would be misread."""
