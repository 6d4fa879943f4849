"""Run a query, possibly on a REST catalog, and print the rows. This program runs in the Python that has DuckDB."""

import json
import sys

import duckdb
from duckdb_extensions import import_extension

asked = json.load(sys.stdin)
connection = duckdb.connect()
for name in asked["extensions"]:
    import_extension(name)
    connection.load_extension(name)
if asked["endpoint"] is not None:
    connection.execute(
        f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{asked['endpoint']}', TOKEN '{asked['token']}')",
    )
json.dump(connection.execute(asked["query"]).fetchall(), sys.stdout)
