"""`translator diff`: compare the events in two topics field by field."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cdc_core.command_line import json_option
from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module

if TYPE_CHECKING:
    from translator.operations.diff import Difference


@click.command()
@config_option
@click.option("--values", is_flag=True, help="Also print the values in the examples. These are row data.")
@json_option
@click.argument("topic_a")
@click.argument("topic_b")
def diff(config: Path, values: bool, as_json: bool, topic_a: str, topic_b: str) -> None:
    """Match the events of two topics by id, and report the fields that differ. The exit code is 1 if any field
    differs.
    """
    settings = settings_module.load(config)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.operations.diff import compare

    found = compare(settings, topic_a, topic_b, say, values=values)
    if as_json:
        click.echo(msgspec.json.encode(found))
        sys.exit(0 if found.same else 1)
    for name, difference in sorted(found.fields.items(), key=lambda item: -item[1].count):
        _print(name, difference)
    _print(f"only in {topic_a}", found.only_a)
    _print(f"only in {topic_b}", found.only_b)
    click.echo(
        f"equal={found.equal} different={found.different} only_a={found.only_a.count} only_b={found.only_b.count}"
        f" duplicates_a={found.duplicates[0]} duplicates_b={found.duplicates[1]}"
    )
    if not found.same:
        sys.exit(1)


def _print(what: str, difference: Difference) -> None:
    if difference.count:
        click.echo(f"{what}: {difference.count}")
    for example in difference.first:
        click.echo(f"  {example.id}")
        for side, value in zip("ab", example.values or (), strict=False):
            click.echo(f"    {side}: {value}")
