"""Run a real REST catalog for Iceberg tables, for tests and manual use. It is based on Iceberg's own handlers. The
server listens on loopback only.

    with RestCatalogServer(warehouse) as catalog:
        load_catalog("any", type="rest", uri=catalog.url, token=TOKEN)

`python -m dev.iceberg.rest_catalog` runs a catalog until Ctrl-C. When the catalog stops, its tables are lost.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from dev.iceberg.java_program import JavaProgram
from dev.servers.broker import LOOPBACK
from dev.servers.server import ServerError, run_until_interrupted

SOURCE = Path(__file__).with_name("RestCatalogServer.java")

# The server rejects requests without this token.
TOKEN = "cdc-token-of-the-tests"  # noqa: S105 - of a server of the tests


class RestCatalogError(ServerError):
    """Raised if the catalog is not running."""


class RestCatalogServer(JavaProgram):
    """A catalog with one warehouse.

    Args:
        warehouse: the folder or URL for the tables. Defaults to a folder in the catalog's own directory.
        hadoop: Hadoop settings for an object store (`fs.…`).
    """

    name: ClassVar[str] = "rest_catalog"
    error = RestCatalogError

    def __init__(
        self,
        port: int | None = None,
        directory: Path | None = None,
        *,
        warehouse: str | None = None,
        hadoop: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(port, directory)
        self.warehouse = warehouse or str(self.directory / "warehouse")
        self._hadoop = dict(hadoop or {})

    @property
    def url(self) -> str:
        """Return the address of the catalog, and of other catalogs on the server, which clients select by name."""
        return f"http://{LOOPBACK}:{self.settled_port()}"

    def start(self) -> None:
        self._run(SOURCE, self._hadoop, [self.warehouse], {"CDC_CATALOG_TOKEN": TOKEN})


def main() -> int:
    return run_until_interrupted(RestCatalogServer, "REST catalog of Iceberg tables", lambda catalog: catalog.url)


if __name__ == "__main__":
    sys.exit(main())
