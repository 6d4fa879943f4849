"""The error tree. The class is the decision that the caller takes; nothing else decides.

CdcError
  MessageError       one message cannot be translated: dead letter, go on
  RetryableError     the world is not ready (broker, registry): wait and try again, the offset stays
  FatalError         going on would lose or invent something: stop with exit code 1, the offset stays
    ContradictionError  messages contradict what the operator declared
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
    """The reason for a dead letter: a closed list, the value of the header `cdc-error-code`."""

    FRAMING = "FRAMING"  # the first bytes belong to no layout that the dialect knows
    MALFORMED_JSON = "MALFORMED_JSON"
    MALFORMED_AVRO = "MALFORMED_AVRO"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"  # larger, deeper or wider than the configuration allows
    UNKNOWN_TYPE = "UNKNOWN_TYPE"  # a message type, not a row operation, that nobody has seen yet
    UNKNOWN_OPERATION = "UNKNOWN_OPERATION"
    MISSING_FIELD = "MISSING_FIELD"
    INVALID_FIELD = "INVALID_FIELD"
    TABLE_UNKNOWN = "TABLE_UNKNOWN"  # nothing says which table the row belongs to
    ROW_NOT_SENT = "ROW_NOT_SENT"  # the row changed, and its writer left its values out of the message
    SCHEMA_MISSING = "SCHEMA_MISSING"  # the metadata that the message names was not learned in time
    AMBIGUOUS_VARIANT = "AMBIGUOUS_VARIANT"  # two writers would mean different things by it
    CONTRADICTION = "CONTRADICTION"  # it shows that the source's declaration is wrong; only where on_error holds for it
    UNSUPPORTED_SHAPE = "UNSUPPORTED_SHAPE"  # understood, but this release has no faithful translation
    KEY_MISSING = "KEY_MISSING"
    KEY_CHANGE_INCOMPLETE = "KEY_CHANGE_INCOMPLETE"
    HELD = "HELD"  # an earlier message of the table is a dead letter and the operator asked to hold
    TOO_LARGE = "TOO_LARGE"  # an event does not fit the output topic
    INTERNAL = "INTERNAL"  # an unexpected exception inside the translation of this message: our bug


class MessageError(CdcError):
    """One message cannot be translated.

    Args:
        reason: what came and what was allowed, without row data.
        path: where in the message, as a JSON path from `$` (also used for Avro fields).
    """

    def __init__(self, code: ErrorCode, reason: str, *, path: str = "$") -> None:
        super().__init__(f"{reason} at {path}")
        self.code = code
        self.reason = reason
        self.path = path


class Unmaskable(CdcError):
    """No masked copy can be made of a record: the copy goes on without it. The text says why, without row data."""


class RetryableError(CdcError):
    """A service that is needed does not answer; the same call may succeed later."""


class ContradictionError(FatalError):
    """Messages contradict the declaration that they were read by: what comes next would be read wrong."""
