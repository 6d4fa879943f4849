"""Write the demo's shops to topics with the service, read these topics with third-party programs, and compare the rows:
`make interop`.

The exit code is 0 if every reader ends up with the correct rows for every table. A run needs a JDK, PostgreSQL from the
machine's packages, and a few minutes. The first run downloads 700 MB, most of it for ClickHouse.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click
import yaml

from dev.demo.compare import differences
from dev.demo.sources import ShopSource, interleaved
from dev.interop.jars import JARS
from dev.interop.readers import READERS
from dev.interop.results import ReaderError
from dev.interop.tables import PROJECTIONS, SourceTable, sources, tables
from dev.servers.broker import Broker
from dev.servers.registry import RegistryServer
from dev.servers.server import ServerError
from dev.servers.stack import Stack, wait_until

SECONDS = 600.0


@click.command()
@click.option("--changes", default=1200, show_default=True, help="Number of changes per shop.")
@click.option("--seed", default=77, show_default=True, help="Seed for the random shops.")
@click.option("--reader", "wanted", multiple=True, help="Run only readers whose name contains this text. Repeatable.")
@click.option("--write-checksums", is_flag=True, help="Download the jars again, and write their checksums.")
def main(changes: int, seed: int, wanted: Sequence[str], write_checksums: bool) -> None:
    """Run those readers in docs/consumers.md that are not part of the tests."""
    JARS.folder(write_checksums=write_checksums)
    names = [name for name in READERS if not wanted or any(part in name for part in wanted)]
    shops = sources(seed)
    with tempfile.TemporaryDirectory() as folder, Broker() as broker, RegistryServer() as registry:
        stack = Stack(broker.bootstrap, Path(folder), [shop.settings for shop in shops], projections=PROJECTIONS)
        try:
            _name_registry(stack, registry.url)
            _write(stack, shops, changes)
            written = tables(stack, shops)
            right = [_compare(name, stack, written, registry.url) for name in names]
        finally:
            stack.close()
    sys.exit(0 if all(right) else 1)


def _name_registry(stack: Stack, url: str) -> None:
    file = stack.directory / "translator.yaml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    file.write_text(yaml.safe_dump({**settings, "registry": {"url": url}}), encoding="utf-8")


def _write(stack: Stack, shops: Sequence[ShopSource], changes: int) -> None:
    messages = list(interleaved([shop.messages(changes, grow=True) for shop in shops]))
    stack.create_raw_topics()
    stack.feed(messages)
    stack.start("translator")
    done = len(messages)
    wait_until("all is committed", SECONDS, lambda: sum(stack.committed().values()) == done, stack)
    stack.stop("translator")
    print(f"{len(shops)} shops with {changes} changes each, {done} messages")


def _compare(name: str, stack: Stack, written: Sequence[SourceTable], registry: str) -> bool:
    begun = time.monotonic()
    try:
        found = READERS[name](stack, written, registry)
    except (ReaderError, ServerError) as error:
        print(f"{name}: {error}")
        return False
    wrong = [
        f"{table.source} {line}"
        for table in written
        for line in differences(table.shape, table.rows, found[table.levels])
    ]
    count, seconds = sum(map(len, found.values())), time.monotonic() - begun
    verdict = "equal to the sources" if not wrong else f"{len(wrong)} differences"
    print(f"{name}: {count} rows of {len(written)} tables, {verdict} ({seconds:.0f} s)", flush=True)
    print("".join(f"  {line}\n" for line in wrong[:10]), end="")
    return not wrong


if __name__ == "__main__":
    main()
