"""`python -m tests.chaos.hostile [--count N] [--seed S]` sends N hostile messages in each format, 10 000 by default."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from dev.servers.broker import Broker
from tests.chaos.hostile.run import run


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="Folder for logs and tables. They are deleted without it.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        verdict = run(broker, chosen.keep or Path(folder), chosen.count, chosen.seed)
    print(verdict)
    return int(bool(verdict.wrong))


if __name__ == "__main__":
    sys.exit(main())
