"""Reader errors. Their messages never contain values from rows."""

from __future__ import annotations

from cdc_core.errors import CdcError, FatalError


class ReadError(CdcError):
    """A record has an unknown format. Keep the record, and find out which program wrote it."""


class UnknownSchema(ReadError):
    """An event refers to a table schema that has not been learned.

    Read the whole schemas topic, and then read the record again.
    """


class ApplyError(FatalError):
    """A change cannot be applied. Later changes would therefore produce wrong rows. Stop reading."""
