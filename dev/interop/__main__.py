"""`make interop`: the service writes a shop to topics, other people's readers read them, and their rows are compared.

Exits 0 when every reader ends with the rows of the shop. Takes a JDK and about a minute; the first time fetches 120 MB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from dev.broker import Broker
from dev.compare import differences
from dev.interop.jars import jars
from dev.interop.readers import PROJECTIONS, READERS, ReaderError
from dev.shop import ORDERS, Shop
from dev.sources import ShopSource
from dev.stack import Stack, wait_until
from dev.writers.canal import CanalWriter

SETTINGS = {"name": "canal", "dialect": "canal", "topics": ["raw.canal"], "options": {"profile": "oss"}}
SECONDS = 600.0


@click.command()
@click.option("--changes", default=1200, show_default=True, help="Changes of the shop.")
@click.option("--seed", default=77, show_default=True, help="Same seed, same shop.")
@click.option("--write-checksums", is_flag=True, help="Fetch the jars anew, and make what came the list.")
def main(changes: int, seed: int, write_checksums: bool) -> None:
    """Run the readers of docs/consumers.md that are not part of the tests."""
    jars(write_checksums=write_checksums)
    source = ShopSource("canal", SETTINGS, CanalWriter("raw.canal"), Shop(seed, (ORDERS,)), "-")
    messages = list(source.messages(changes, grow=False))
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        stack = Stack(broker.bootstrap, Path(folder), [source.settings], projections=PROJECTIONS)
        try:
            stack.create_raw_topics()
            stack.feed(messages)
            stack.start("translator")
            done = len(messages)
            wait_until("all is committed", SECONDS, lambda: sum(stack.committed().values()) == done, stack)
            stack.stop("translator")
            right = [_compare(name, source, stack) for name in READERS]
        finally:
            stack.close()
    sys.exit(0 if all(right) else 1)


def _compare(name: str, source: ShopSource, stack: Stack) -> bool:
    expected = source.shop.rows[ORDERS.name]
    try:
        found = READERS[name](stack, [column.name for column in ORDERS.columns])
    except ReaderError as error:
        print(f"{name}: {error}")
        return False
    wrong = differences(ORDERS, expected.values(), found)
    print(f"{name}: {len(found)} rows, {'equal to the source' if not wrong else f'{len(wrong)} differences'}")
    print("".join(f"  {line}\n" for line in wrong[:10]), end="")
    return not wrong


if __name__ == "__main__":
    main()
