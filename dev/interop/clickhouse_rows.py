"""Run statements in ClickHouse. Standard input: JSON lines with `levels` and `statements`. Output: levels and rows."""

from __future__ import annotations

import json
import sys

from chdb import session


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        clickhouse = session.Session()
        *before, last = asked["statements"]
        for statement in before:
            clickhouse.query(statement)
        rows = str(clickhouse.query(last, "JSONEachRow")).splitlines()
        clickhouse.close()
        print(f'{{"levels": {json.dumps(asked["levels"])}, "rows": [{",".join(row for row in rows if row)}]}}')


if __name__ == "__main__":
    main()
