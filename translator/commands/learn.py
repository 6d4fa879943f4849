"""`translator learn`: read the metadata messages of a backlog ahead of the data (Qlik)."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from cdc_core.command_line import json_option
from translator.commands.configuration import config_option
from translator.commands.output import print_table, say
from translator.config import settings as settings_module


@click.command()
@config_option
@click.option(
    "--source",
    "sources",
    multiple=True,
    help="Read only this source. Repeatable. Defaults to all sources that have metadata messages.",
)
@json_option
def learn(config: Path, sources: tuple[str, ...], as_json: bool) -> None:
    """Copy the metadata messages of all raw topics, from the beginning until now, to the metadata topic.

    Run this command before the service reads a backlog in which rows precede their metadata. The command does not join
    a consumer group and writes no events. You can repeat it at any time.
    """
    settings = settings_module.load(config)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.operations.learn import learn as learn_backlog

    reports = learn_backlog(settings, sources, say)
    if as_json:
        click.echo(msgspec.json.encode({"sources": reports}))
        return
    for backlog in reports:
        new = sum(not lesson.known for lesson in backlog.lessons)
        if backlog.lessons:
            rows = [
                (lesson.key, lesson.subject, lesson.version, "known" if lesson.known else "new")
                for lesson in backlog.lessons
            ]
            print_table(("id", "table", "version", "state"), rows, title=f"source {backlog.source}")
        click.echo(
            f"{backlog.source}: topics={len(backlog.topics)} records={backlog.records} metadata={backlog.messages}"
            f" ids={len(backlog.lessons)} new={new} refused={backlog.refused}"
        )
    if not reports:
        click.echo("no source has metadata messages")
