"""The errors of the reader. Their texts never contain row values."""

from __future__ import annotations

from cdc_core.errors import CdcError, FatalError


class ReadError(CdcError):
    """The reader does not know the format of a record. Keep the record and find out who wrote it."""


class UnknownSchema(ReadError):
    """An event refers to a table schema that was not learned.

    Read the whole schemas topic, then read the record again.
    """


class ApplyError(FatalError):
    """A change cannot be applied, and later changes would produce wrong rows. Stop."""
