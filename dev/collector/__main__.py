"""Build the collector and print its path: `python -m dev.collector`."""

from __future__ import annotations

import sys

from dev.collector import CollectorError, build

if __name__ == "__main__":
    try:
        print(build())
    except CollectorError as error:
        sys.exit(f"collector: {error}")
