"""`translator retranslate`: translate a raw range again into a separate topic."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.commands.translate import dead_letter_line
from translator.config import settings as settings_module

if TYPE_CHECKING:
    from translator.message import Message
    from translator.translation.dead_letter import DeadLetter


@click.command()
@config_option
@click.option("--topic", required=True, help="Raw topic to read.")
@click.option("--partition", type=click.IntRange(0), required=True, help="Partition of the raw topic.")
@click.option("--from", "first", type=click.IntRange(0), required=True, help="First offset to translate.")
@click.option("--to", "end", type=click.IntRange(0), required=True, help="Stop before this offset.")
@click.option(
    "--table", help="Write only the events of tables whose db.schema.table matches this pattern with * and ?."
)
@click.option(
    "--output",
    required=True,
    metavar="TOPIC",
    help="Topic to write to. It must not be a topic that the service itself uses.",
)
def retranslate(config: Path, topic: str, partition: int, first: int, end: int, table: str | None, output: str) -> None:
    """Translate a range of a raw topic just as the service would, and write the events to a separate topic.

    Dead letters are printed on standard error instead of being written to a topic. They have the format of `translate`.
    """
    settings = settings_module.load(config)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.operations.offline_translator import OfflineTranslator
    from translator.operations.retranslate import Selection
    from translator.operations.retranslate import retranslate as retranslate_range

    def bury(message: Message, dead: DeadLetter) -> None:
        click.echo(dead_letter_line(message, dead), err=True)

    with closing(OfflineTranslator(settings, say)) as again:
        counts = retranslate_range(again, Selection(topic, partition, first, end, output, table), say, bury)
    names = ("records", "translated", "dead", "skipped", "learned", "events")
    click.echo(" ".join(f"{name}={counts[name]}" for name in names) + f" output={output}")
