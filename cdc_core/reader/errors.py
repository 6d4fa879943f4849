"""Reader errors. Their messages never contain row values."""

from __future__ import annotations

from cdc_core.errors import CdcError, FatalError


class ReadError(CdcError):
    """A record has an unknown format. Keep the record, and find out which program wrote it."""


class UnknownSchema(ReadError):
    """An event refers to a table schema that has not been learned.

    Read the whole schemas topic, then read the record again.
    """


class ApplyError(FatalError):
    """A change cannot be applied, so later changes would produce wrong rows. Stop reading."""
