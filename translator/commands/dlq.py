"""`translator dlq`: list dead letters by code, source and time, show one, and replay them."""

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
from translator.commands.output import say
from translator.commands.record_file import record_line
from translator.config import settings as settings_module
from translator.errors import ConfigError, ErrorCode, FatalError, unknown

if TYPE_CHECKING:  # imported at run time below, so that help and `translator translate` start without Kafka clients
    from translator.operations.dlq.reader import LetterFilter, StoredLetter

Command = TypeVar("Command", bound=Callable[..., Any])


class _Time(click.ParamType):
    """A time from the command line, converted to milliseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-04-13T20:00:00Z", param, ctx)
        if time.tzinfo is None:
            self.fail(f"{value!r} has no time zone; add Z or an offset", param, ctx)
        return int(time.timestamp() * 1000)


class _Place(click.IntRange):
    """A partition or an offset in the dead-letter topic. It differs from the position of the original message, which
    operators may enter by mistake.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"{value!r} is not a whole number of 0 or more; enter the partition and offset in the dead-letter "
                "topic, as `dlq ls` shows them",
                param,
                ctx,
            )


@click.group(cls=CommandGroup)
def dlq() -> None:
    """List, show, replay and discard dead letters, which are messages that could not be translated."""


def _filters(command: Command) -> Command:
    """Add the filter options that `_wanted` reads."""
    for option in (
        click.option(
            "--limit", type=click.IntRange(min=1), help="Select only the first N dead letters, in replay order."
        ),
        click.option("--until", type=_Time(), help="Select only dead letters that were written before this time."),
        click.option("--since", type=_Time(), help="Select only dead letters that were written at or after this time."),
        click.option(
            "--table",
            "tables",
            multiple=True,
            help="Select only dead letters whose message is known to belong to this table. Repeatable.",
        ),
        click.option(
            "--topic", "topics", multiple=True, help="Select only dead letters from this raw topic. Repeatable."
        ),
        click.option(
            "--source", "sources", multiple=True, help="Select only dead letters from this source. Repeatable."
        ),
        click.option(
            "--code", "codes", multiple=True, help="Select only dead letters with this error code. Repeatable."
        ),
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per dead letter.")
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
        say(f"{dead.foreign} records in {settings.output.dead_letter_topic} were not written by the translator")


@dlq.command()
@config_option
@click.option(
    "--raw",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the message, including its values, to FILE as one line of a record file for `translator translate`.",
)
@json_option
@click.argument("partition", type=_Place(min=0))
@click.argument("offset", type=_Place(min=0))
def show(config: Path, raw: Path | None, as_json: bool, partition: int, offset: int) -> None:
    """Show the reason, the origin and the form of one dead letter. Its partition and offset in the dead-letter topic
    identify it.

    The message's values are never shown. The command shows only the structure and the lengths of its key, value and
    headers.
    """
    settings = settings_module.load(config)
    from translator.operations.dlq.reader import LetterFilter, look

    letters = look(settings, LetterFilter(), say).letters
    found = next((found for found in letters if (found.partition, found.offset) == (partition, offset)), None)
    if found is None:
        topic = settings.output.dead_letter_topic
        raise ConfigError(f"there is no dead letter at partition {partition}, offset {offset} of {topic}")
    masked = found.letter.source in settings.masked_sources
    if as_json:
        click.echo(json.dumps(letter_facts(found, masked=masked)))
    else:
        print_letter(found, masked=masked)
    if raw is not None and masked:
        raise ConfigError(
            f"--raw is not allowed because source {found.letter.source} has masks and masks.messages: leave_out"
        )
    if raw is not None:
        _write_raw(found, raw)


@dlq.command()
@config_option
@_filters
@click.option("--execute", is_flag=True, help="Write the events. Without this option, the command changes nothing.")
@json_option
def replay(config: Path, execute: bool, as_json: bool, **filters: Any) -> None:
    """Translate dead letters again, using the current configuration and the original coordinates.

    Without --execute, the command only reports what would happen. Dead letters that were already replayed are skipped.
    With --execute, the exit code is 1 if a table is still held because some of its dead letters have not been replayed.
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
@click.option(
    "--reason",
    required=True,
    help="Reason for discarding the dead letters. The list of dead letters shows this reason.",
)
@click.option(
    "--execute", is_flag=True, help="Mark the dead letters as discarded. Without this option, nothing is written."
)
@json_option
def discard(config: Path, reason: str, execute: bool, as_json: bool, **filters: Any) -> None:
    """Discard dead letters and record the reason. They stay in their topic but are never replayed.

    Without --execute, the command only lists the dead letters. Once all dead letters of a held table are replayed or
    discarded, the next `dlq replay --execute` releases the table. Readers of the canonical topic never receive the
    changes in discarded messages.
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
        raise FatalError("the dead letter does not contain the message because it was too large; --raw wrote nothing")
    try:
        file.write_bytes(record_line(found.letter.message))
    except OSError as error:
        raise FatalError(f"cannot write {file}: {error.strerror}") from None
