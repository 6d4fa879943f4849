"""`translator audit`: compare raw records with the events and dead letters written for them."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cdc_core.command_line import json_option
from translator.commands.configuration import config_option
from translator.commands.output import print_table, say
from translator.config import settings as settings_module
from translator.errors import ConfigError

if TYPE_CHECKING:
    from translator.operations.audit import AuditFindings, AuditReport


@click.command()
@config_option
@click.option("--topic", help="Audit only this raw topic.")
@click.option("--partition", type=click.IntRange(0), help="Audit only this partition. Requires --topic.")
@click.option(
    "--from", "first", type=click.IntRange(0), help="First offset to audit. Defaults to the beginning of the partition."
)
@click.option(
    "--to",
    "end",
    type=click.IntRange(0),
    help="Stop before this offset. Defaults to the offset that the group has committed.",
)
@click.option(
    "--strict", is_flag=True, help="Also exit with code 1 if a new translation would produce different events."
)
@json_option
def audit(
    config: Path,
    topic: str | None,
    partition: int | None,
    first: int | None,
    end: int | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Report what happened to every raw record, based on the contents of topics rather than counters.

    The command translates the records again. It does not join the consumer group and writes nothing. The exit code is 1
    if a record was lost or an event has no raw record.
    """
    if partition is not None and topic is None:
        raise ConfigError("--partition requires --topic")
    if partition is None and (first, end) != (None, None):
        raise ConfigError(
            "--from and --to require --topic and --partition, because an offset is valid only within one partition"
        )
    settings = settings_module.load(config)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.operations.audit import audit as audit_ranges
    from translator.operations.offline_translator import OfflineTranslator

    with closing(OfflineTranslator(settings, say)) as again:
        report = audit_ranges(again, topic, partition, first, end, say)
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        _print(report)
    if not report.sound or (strict and not report.same):
        sys.exit(1)


def _print(report: AuditReport) -> None:
    rows = []
    for account in report.accounts:
        range_ = (account.topic, account.partition, account.first, account.end)
        counts = (_sum(getattr(account, name)) for name in _COUNTS)
        rows.append((*range_, *counts, account.invented.count))
    print_table(("raw topic", "partition", "from", "to", *_COUNTS, "invented"), rows)
    for account in report.accounts:
        place = f"{account.topic}/{account.partition}"
        for what, by in (("dead", account.dead), ("skipped", account.skipped)):
            if by:
                click.echo(f"{place}: {what}: " + ", ".join(f"{name}={count}" for name, count in sorted(by.items())))
        for name in _REMARKS:
            if getattr(account, name):
                click.echo(f"{place}: {name}={getattr(account, name)}")
        _print_findings(f"{place}: LOST", account.lost)
        _print_findings(f"{place}: INVENTED", account.invented)
    _print_findings("INVENTED", report.nameless)
    for text in report.short:
        say(f"warning: {text}; records deleted before that point are counted as lost")
    totals = (f"{name}={sum(_sum(getattr(account, name)) for account in report.accounts)}" for name in _COUNTS)
    invented = sum(account.invented.count for account in report.accounts) + report.nameless.count
    click.echo(" ".join([*totals, f"invented={invented}", f"foreign={report.foreign}"]))


_COUNTS = (
    *("records", "translated", "dead", "skipped", "learned", "lost"),
    *("events", "duplicates", "different"),
)
_REMARKS = ("unequal", "misplaced", "revived", "compacted")


def _sum(value: int | dict[str, int] | AuditFindings) -> int:
    if isinstance(value, int):
        return value
    return sum(value.values()) if isinstance(value, dict) else value.count


def _print_findings(title: str, findings: AuditFindings) -> None:
    for finding in findings.first:
        click.echo(f"{title} offset {finding.offset}: {finding.what}")
    if findings.count > len(findings.first):
        click.echo(f"{title} and {findings.count - len(findings.first)} more")
