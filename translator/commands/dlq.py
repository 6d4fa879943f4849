"""`translator dlq`: dead letters by code, source and time; one of them; and their replay."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cdc_core.command_line import CommandGroup, json_option
from translator.commands.configuration import config_option
from translator.commands.dlq_output import (
    facts,
    held_facts,
    letter_facts,
    print_groups,
    print_held,
    print_letter,
    print_report,
    print_total,
    report_facts,
    still_held,
)
from translator.commands.record_file import record_line
from translator.commands.remarks import say
from translator.config import settings as settings_module
from translator.errors import ConfigError, ErrorCode, FatalError, unknown

if TYPE_CHECKING:  # at run time below: help and `translator translate` start without Kafka clients
    from translator.operations.dlq.reader import LetterFilter, StoredLetter

Command = TypeVar("Command", bound=Callable[..., Any])


class _Time(click.ParamType):
    """A time as milliseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-04-13T20:00:00Z", param, ctx)
        if time.tzinfo is None:
            self.fail(f"{value!r} has no zone: add Z or an offset", param, ctx)
        return int(time.timestamp() * 1000)


@click.group(cls=CommandGroup)
def dlq() -> None:
    """Dead letters: what could not be translated, why, and translating it again."""


def _filters(command: Command) -> Command:
    """The options that `_wanted` reads."""
    for option in (
        click.option("--limit", type=click.IntRange(min=1), help="Only the first so many, in the order of replay."),
        click.option("--until", type=_Time(), help="Only letters written before this time."),
        click.option("--since", type=_Time(), help="Only letters written at this time or later."),
        click.option(
            "--table", "tables", multiple=True, help="Only of this table, where messages name theirs; repeatable."
        ),
        click.option("--topic", "topics", multiple=True, help="Only of this raw topic; repeatable."),
        click.option("--source", "sources", multiple=True, help="Only of this source; repeatable."),
        click.option("--code", "codes", multiple=True, help="Only with this code; repeatable."),
    ):
        command = option(command)
    return command


def _wanted(
    codes: tuple[str, ...],
    sources: tuple[str, ...],
    topics: tuple[str, ...],
    tables: tuple[str, ...],
    since: int | None,
    until: int | None,
    limit: int | None,
) -> LetterFilter:
    from translator.operations.dlq.reader import LetterFilter

    for code in codes:
        if code not in set(ErrorCode):
            raise ConfigError(unknown("code", code, ErrorCode))
    return LetterFilter(codes, sources, topics, tables, since, until, limit)


@dlq.command()
@config_option
@_filters
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each letter, for programs.")
def ls(config: Path, as_json: bool, **filters: Any) -> None:
    """List dead letters by source, code and table, with counts and times."""
    settings = settings_module.load(config)
    from translator.operations.dlq.reader import look

    dead = look(settings, _wanted(**filters), say)
    if as_json:
        for found in dead.letters:
            click.echo(json.dumps(facts(found, masked=found.letter.source in settings.masked_sources)))
    else:
        print_groups(dead.letters, settings.masked_sources)
        print_total(dead.letters)
        print_held(dead.held)
    if dead.foreign:
        say(f"{dead.foreign} records of {settings.output.dead_letter_topic} are no dead letters of ours")


@dlq.command()
@config_option
@click.option(
    "--raw",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the message, values and all, as a line of a record file for `translator translate`.",
)
@json_option
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
def show(config: Path, raw: Path | None, as_json: bool, partition: int, offset: int) -> None:
    """Show one dead letter by its place in the dead-letter topic: why, from where, and what form it has.

    Values of the message are never shown; key, value and its own headers are given as structure and lengths.
    """
    settings = settings_module.load(config)
    from translator.operations.dlq.reader import LetterFilter, look

    letters = look(settings, LetterFilter(), say).letters
    found = next((found for found in letters if (found.partition, found.offset) == (partition, offset)), None)
    if found is None:
        topic = settings.output.dead_letter_topic
        raise ConfigError(f"no dead letter at partition {partition}, offset {offset} of {topic}")
    masked = found.letter.source in settings.masked_sources
    if as_json:
        click.echo(json.dumps(letter_facts(found, masked=masked)))
    else:
        print_letter(found, masked=masked)
    if raw is not None and masked:
        raise ConfigError(f"source {found.letter.source} has masks, and masks.messages says leave_out: no --raw")
    if raw is not None:
        _write_raw(found, raw)


@dlq.command()
@config_option
@_filters
@click.option("--execute", is_flag=True, help="Write the events. Without it nothing is written.")
@json_option
def replay(config: Path, execute: bool, as_json: bool, **filters: Any) -> None:
    """Translate dead letters again, with the configuration as it is now and their original coordinates.

    Without --execute it only says what would become of them. Letters that were replayed before are left out. With
    --execute the exit code is 1 where a table is still held because something of it is left to replay.
    """
    settings = settings_module.load(config)
    from translator.operations.dlq.replay import replay as replay_letters
    from translator.service import log_setup

    log_setup.configure(settings.log_format, settings.log_level)
    report = replay_letters(settings, _wanted(**filters), say, execute=execute)
    if as_json:
        click.echo(json.dumps(report_facts(report, execute=execute)))
    else:
        print_report(report, execute=execute)
    if execute and report.blocked:
        say(still_held(report.blocked))
        sys.exit(1)


@dlq.command()
@config_option
@_filters
@click.option("--reason", required=True, help="Why they are given up; it stands in the list beside them.")
@click.option("--execute", is_flag=True, help="Mark them. Without it nothing is written.")
@json_option
def discard(config: Path, reason: str, execute: bool, as_json: bool, **filters: Any) -> None:
    """Give dead letters up, for a reason: they stay in their topic, and are not replayed any more.

    Without --execute it only says which. A hold whose letters are all replayed or discarded ends with the next
    `dlq replay --execute`. Readers of the canonical topic never get what these messages said.
    """
    settings = settings_module.load(config)
    from translator.operations.dlq.discard import discard as discard_letters

    dead = discard_letters(settings, _wanted(**filters), reason, say, execute=execute)
    if as_json:
        letters = [facts(found, masked=found.letter.source in settings.masked_sources) for found in dead.letters]
        counts = {"executed": execute, "before": dead.replayed}
        click.echo(json.dumps({**counts, "letters": letters, "held": held_facts(dead.held)}))
        return
    print_groups(dead.letters, settings.masked_sources)
    print_held(dead.held)
    click.echo(f"{'discarded' if execute else 'dry run'}: letters={len(dead.letters)} before={dead.replayed}")


def _write_raw(found: StoredLetter, file: Path) -> None:
    if found.letter.body_bytes is not None:
        raise FatalError("the letter does not hold the body of its message, which did not fit; --raw writes nothing")
    try:
        file.write_bytes(record_line(found.letter.message))
    except OSError as error:
        raise FatalError(f"cannot write {file}: {error.strerror}") from None
