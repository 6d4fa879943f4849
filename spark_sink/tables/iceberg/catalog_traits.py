"""Store the traits that a catalog for Iceberg tables has shown."""

from __future__ import annotations

import hashlib
import math
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import pyarrow.fs as fs
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from spark_sink.config.iceberg_catalog import CatalogAccess
from spark_sink.schema.table_naming import RESERVED


@dataclass(frozen=True)
class CatalogTraits:
    """A catalog's traits. The defaults are the traits that the sink prefers. Folders have them.

    Args:
        format_version: the format version of the tables that the catalog creates.
        keeps_snapshots: whether previous versions can be read.
        can_expire: whether the catalog allows snapshot expiry.
    """

    format_version: int = 3
    keeps_snapshots: bool = True
    can_expire: bool = True


class _Remembered(msgspec.Struct):
    asked_at: float
    traits: CatalogTraits


@dataclass(frozen=True)
class TraitsMemory:
    """The stored test result for one catalog. It is in the folder of the warehouse that is reserved for the sink."""

    warehouse: str
    access: CatalogAccess

    @property
    def id(self) -> str:
        """The id of this catalog and warehouse, which all pipelines share. The id is part of the file name."""
        told = (self.warehouse, self.access.name, self.access.address, self.access.reader.get("warehouse", ""))
        return hashlib.sha256("\0".join(told).encode()).hexdigest()[:12]

    def recall(self, seconds: float = math.inf) -> CatalogTraits | None:
        """Return the stored result, or None if there is none or it is too old."""
        try:
            with self._files.open_input_stream(self._path) as stored:
                found = msgspec.json.decode(stored.read(), type=_Remembered)
        except (OSError, TableNotFoundError, msgspec.MsgspecError):
            return None  # the warehouse may not exist yet; in that case, the catalog is tested again
        return found.traits if time.time() - found.asked_at < seconds else None

    def keep(self, traits: CatalogTraits) -> None:
        """Store the result. The warehouse must exist."""
        content = msgspec.json.encode({"asked_at": time.time(), "traits": asdict(traits)})
        with tempfile.TemporaryDirectory() as scratch:
            written = Path(scratch, "traits.json")
            written.write_bytes(content)
            fs.copy_files(str(written), self._path, destination_filesystem=self._files)

    @property
    def _files(self) -> fs.FileSystem:
        return fs.PyFileSystem(DeltaStorageHandler(self.warehouse))

    @property
    def _path(self) -> str:
        return f"{RESERVED}/catalogs/{self.id}.json"
