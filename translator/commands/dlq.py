"""`translator dlq`: dead letters by code, source and time; one of them; and their replay."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from cdc_core.command_line import CommandGroup
from translator import settings as settings_module
from translator.commands.configuration import config_option
from translator.commands.record_file import record_line
from translator.errors import ConfigError, ErrorCode, FatalError, unknown
from translator.operations.message_preview import preview, size_alone

if TYPE_CHECKING:  # at run time below: help and `translator translate` start without Kafka clients
    from translator.operations.dlq.reader import LetterFilter, StoredLetter
    from translator.operations.dlq.replay import ReplayReport
    from translator.state.table_holds import HeldTable, HoldMark

Command = TypeVar("Command", bound=Callable[..., Any])

_NAMED = 10
"""Letters that are named one by one."""


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

    dead = look(settings, _wanted(**filters), _say)
    if as_json:
        for found in dead.letters:
            click.echo(json.dumps(_facts(found, masked=found.letter.source in settings.masked_sources)))
    else:
        _print_groups(dead.letters, settings.masked_sources)
        _print_total(dead.letters)
        _print_held(dead.held)
    if dead.foreign:
        _say(f"{dead.foreign} records of {settings.output.dead_letter_topic} are no dead letters of ours")


@dlq.command()
@config_option
@click.option(
    "--raw",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the message, values and all, as a line of a record file for `translator translate`.",
)
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
def show(config: Path, raw: Path | None, partition: int, offset: int) -> None:
    """Show one dead letter by its place in the dead-letter topic: why, from where, and what form it has.

    Values of the message are never shown; key, value and its own headers are given as structure and lengths.
    """
    settings = settings_module.load(config)
    from translator.operations.dlq.reader import LetterFilter, look

    letters = look(settings, LetterFilter(), _say).letters
    found = next((found for found in letters if (found.partition, found.offset) == (partition, offset)), None)
    if found is None:
        topic = settings.output.dead_letter_topic
        raise ConfigError(f"no dead letter at partition {partition}, offset {offset} of {topic}")
    masked = found.letter.source in settings.masked_sources
    _print_letter(found, masked=masked)
    if raw is not None and masked:
        raise ConfigError(f"source {found.letter.source} has masks, and masks.messages says leave_out: no --raw")
    if raw is not None:
        _write_raw(found, raw)


@dlq.command()
@config_option
@_filters
@click.option("--execute", is_flag=True, help="Write the events. Without it nothing is written.")
def replay(config: Path, execute: bool, **filters: Any) -> None:
    """Translate dead letters again, with the configuration as it is now and their original coordinates.

    Without --execute it only says what would become of them. Letters that were replayed before are left out. With
    --execute the exit code is 1 where a table is still held because something of it is left to replay.
    """
    settings = settings_module.load(config)
    from translator.operations.dlq.replay import replay as replay_letters
    from translator.service import log_setup

    log_setup.configure(settings.log_format, settings.log_level)
    report = replay_letters(settings, _wanted(**filters), _say, execute=execute)
    _print_report(report, execute=execute)
    if execute and report.blocked:
        _say(_still_held(report.blocked))
        sys.exit(1)


@dlq.command()
@config_option
@_filters
@click.option("--reason", required=True, help="Why they are given up; it stands in the list beside them.")
@click.option("--execute", is_flag=True, help="Mark them. Without it nothing is written.")
def discard(config: Path, reason: str, execute: bool, **filters: Any) -> None:
    """Give dead letters up, for a reason: they stay in their topic, and are not replayed any more.

    Without --execute it only says which. A hold whose letters are all replayed or discarded ends with the next
    `dlq replay --execute`. Readers of the canonical topic never get what these messages said.
    """
    settings = settings_module.load(config)
    from translator.operations.dlq.discard import discard as discard_letters

    dead = discard_letters(settings, _wanted(**filters), reason, _say, execute=execute)
    _print_groups(dead.letters, settings.masked_sources)
    _print_held(dead.held)
    click.echo(f"{'discarded' if execute else 'dry run'}: letters={len(dead.letters)} before={dead.replayed}")


def _say(text: str) -> None:
    click.echo(f"translator: {text}", err=True)


def _time(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _facts(found: StoredLetter, *, masked: bool) -> dict[str, Any]:
    """Return the line for a letter: nothing out of the rows of its message; no names, either, where some are masked."""
    letter, message = found.letter, found.letter.message
    return {
        "partition": found.partition,
        "offset": found.offset,
        "time": _time(found.timestamp_ms),
        "code": letter.code,
        "reason": _reason(found, masked=masked),
        "source": letter.source,
        "tables": found.tables,
        "output": letter.output,
        "replayed": found.replayed and found.discarded is None,
        "discarded": found.discarded,
        "version": letter.version,
        "origin": {
            "topic": message.topic,
            "topic_id": message.topic_id,
            "partition": message.partition,
            "offset": message.offset,
            "timestamp": message.timestamp_ms,
        },
    }


def _reason(found: StoredLetter, *, masked: bool) -> str | None:
    """The reason of a letter; one of a day before the masks may name what is masked now."""
    return None if masked and not found.letter.is_left_out else found.letter.reason


def _print_groups(letters: list[StoredLetter], masked_sources: Collection[str]) -> None:
    """The letters by what they have in common; below, the reason of one of each, as the arguments of `show` name it."""
    groups: dict[tuple[str, str, str, str], list[StoredLetter]] = {}
    for found in letters:
        letter = found.letter
        groups.setdefault((letter.source, letter.code, ", ".join(found.tables), letter.output or ""), []).append(found)
    table = Table("source", "code", "table", "only in", "letters", "replayed", "discarded", "first", "last")
    reasons = []
    for key, group in sorted(groups.items()):
        times = [found.timestamp_ms for found in group]
        example = group[0]
        table.add_row(
            *key,
            str(len(group)),
            str(sum(found.replayed and found.discarded is None for found in group)),
            str(sum(found.discarded is not None for found in group)),
            _time(min(times)),
            _time(max(times)),
        )
        reason = _reason(example, masked=example.letter.source in masked_sources) or "not shown: columns are masked"
        reasons.append(f"dlq show {example.partition} {example.offset}: {reason}")
        reasons += sorted({f"  discarded: {found.discarded}" for found in group if found.discarded is not None})
    if groups:
        _console().print(table)
    for line in reasons:
        click.echo(line)


def _print_total(letters: list[StoredLetter]) -> None:
    discarded = sum(found.discarded is not None for found in letters)
    replayed = sum(found.replayed for found in letters) - discarded
    click.echo(f"letters={len(letters)} replayed={replayed} discarded={discarded}")


def _print_held(held: Mapping[HeldTable, HoldMark]) -> None:
    for of, mark in sorted(held.items(), key=lambda item: item[0].name):
        click.echo(f"held: {of}, since offset {mark.since} ({mark.code})")


def _still_held(blocked: Mapping[HeldTable, HoldMark]) -> str:
    """Give the lines about the tables that a replay leaves held."""
    named = [
        f"{of} (offset {mark.since}, {mark.code})"
        for of, mark in sorted(blocked.items(), key=lambda item: item[0].name)
    ]
    others = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return (
        f"still held: {'; '.join(named[:_NAMED])}{others}. Correct what keeps these messages dead and replay again, "
        "without filters; or give them up: replay with on_error: {CODE: dead_letter} for their codes"
    )


def _print_letter(found: StoredLetter, *, masked: bool) -> None:
    letter, message = found.letter, found.letter.message
    click.echo(
        f"dead letter at partition {found.partition}, offset {found.offset}, written {_time(found.timestamp_ms)}"
    )
    if found.discarded is None:
        click.echo(f"replayed: {'yes' if found.replayed else 'no'}")
    else:
        click.echo(f"discarded: {found.discarded}")
    for name, value in letter.ours:
        if masked and name == "cdc-error-message" and not letter.is_left_out:
            continue  # of a day before the masks, with what stood in the message
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        click.echo(f"{name}: {text}")
    if found.tables:
        click.echo(f"table: {', '.join(found.tables)}")
    for name, value in message.headers:
        click.echo(f"header {name}: {'null' if value is None else f'{len(value)} bytes'}")
    for what, body in (("key", message.key), ("value", message.value)):
        click.echo(f"{what}: " + "\n".join([size_alone(body)] if masked else preview(body)))


def _write_raw(found: StoredLetter, file: Path) -> None:
    if found.letter.body_bytes is not None:
        raise FatalError("the letter does not hold the body of its message, which did not fit; --raw writes nothing")
    try:
        file.write_bytes(record_line(found.letter.message))
    except OSError as error:
        raise FatalError(f"cannot write {file}: {error.strerror}") from None


def _print_report(report: ReplayReport, *, execute: bool) -> None:
    counts = ("letters", "translated", "events", "skipped", "learned", "dead", "impossible", "repeated")
    table = Table("source", "code", *counts, title=None if execute else "dry run: nothing is written")
    for key, group in sorted(report.groups.items()):
        table.add_row(*key, *(str(getattr(group, name)) for name in counts))
    if report.groups:
        _console().print(table)
    for (source, code, now), count in sorted(report.still.items()):
        click.echo(f"{source}: {count} of {code} stay dead as {now}")
    for (output, code), count in sorted(report.refused.items()):
        click.echo(f"{count} are missing in {output}, a new dead letter each: {code}")
    for found, reason in report.impossible[:_NAMED]:
        click.echo(f"partition {found.partition}, offset {found.offset} cannot be replayed: {reason}")
    if len(report.impossible) > _NAMED:
        click.echo(f"… and {len(report.impossible) - _NAMED} more")
    _print_held(report.blocked)
    for of in sorted(report.caught_up, key=lambda of: of.name):
        click.echo(f"{of}: all is replayed; the hold ends with the next message that the service reads there")
    totals = " ".join(f"{name}={sum(getattr(group, name) for group in report.groups.values())}" for name in counts)
    click.echo(f"{'replayed' if execute else 'dry run'}: {totals} before={report.before}")


def _console() -> Console:
    """As wide as it needs to be where nobody looks: a program or a file gets whole names."""
    console = Console()
    return console if console.is_terminal else Console(width=300)
