"""`translator upgrade-check`: compare this release with the one that is running, before an upgrade."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cdc_core import deprecations
from cdc_core.command_line import json_option
from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module

if TYPE_CHECKING:
    from translator.operations.upgrade_check import UpgradeReport


@click.command()
@config_option
@click.option("--from", "since", required=True, metavar="RELEASE", help="The release that you are running now.")
@click.option(
    "--count",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help=(
        "Number of records to translate from each raw partition. The newest records that the group has committed are "
        "used."
    ),
)
@json_option
def upgrade_check(config: Path, since: str, count: int, as_json: bool) -> None:
    """Translate the newest raw records with this release, and compare the results with those of the running release.

    Install the new release, and run this command with the configuration that you want to use. The command checks the
    configuration, does not join the consumer group, writes nothing, and prints no row data. It lists the steps that the
    releases since then call for. The exit code is 1 if results differ in a way that no release announces.
    """
    settings = settings_module.load(config)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.operations.offline_translator import OfflineTranslator
    from translator.operations.release_notes import releases_after
    from translator.operations.upgrade_check import upgrade_check as check_upgrade

    notes = releases_after(since)
    for warning in deprecations.deprecated_settings(settings, deprecations.TRANSLATOR):
        say(f"warning: {warning}")
    with closing(OfflineTranslator(settings, say)) as again:
        report = check_upgrade(again, since, notes, count, say)
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        _print(report)
    if not report.as_announced:
        sys.exit(1)


def _print(report: UpgradeReport) -> None:
    for step in report.steps:
        click.echo(f"step: {step}")
    for group in report.groups:
        word = "announced" if group.announced else "NOT ANNOUNCED"
        fields = ", ".join(group.fields)
        click.echo(f"{word}: source {group.source} ({group.dialect}): {fields}: {group.count} record(s)")
        for place in group.first:
            click.echo(f"  {place}")
    if not report.records:
        say("warning: nothing was compared, because no record that the group has committed still exists")
    if report.not_found:
        say(f"warning: the output of {report.not_found} record(s) no longer exists; compare newer records")
    counts = ("records", "equal", "different", "not_found", "not_compared")
    click.echo(" ".join(f"{name}={getattr(report, name)}" for name in counts))
