"""The errors of the reader. Neither holds values of rows."""

from __future__ import annotations

from cdc_core.errors import CdcError, FatalError


class ReadError(CdcError):
    """A record is not what this reader knows: keep it, and find out who wrote it."""


class UnknownSchema(ReadError):
    """An event names a table schema that was not learned: read the schemas topic to its end, then the record again."""


class ApplyError(FatalError):
    """A change cannot be applied, and those behind it would make wrong rows: stop."""
