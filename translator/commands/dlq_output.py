"""Dead letters and their replay as `translator dlq` tells of them, to people and to programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click
import msgspec

from translator.commands.listing import print_table
from translator.operations.duration import instant
from translator.operations.message_preview import preview, size_alone
from translator.operations.terminal_text import shown

if TYPE_CHECKING:  # help and `translator translate` start without Kafka clients
    from translator.operations.dlq.reader import StoredLetter
    from translator.operations.dlq.replay import ReplayReport
    from translator.state.table_holds import HeldTable, HoldMark

_GROUP = ("source", "code", "table", "only in", "letters", "replayed", "discarded", "first", "last")

_NAMED = 10
"""Letters that are named one by one."""


def facts(found: StoredLetter, *, masked: bool) -> dict[str, Any]:
    """Return the line for a letter: nothing out of the rows of its message; no names, either, where some are masked."""
    letter, message = found.letter, found.letter.message
    return {
        "partition": found.partition,
        "offset": found.offset,
        "time": instant(found.timestamp_ms),
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


def print_groups(letters: list[StoredLetter], masked_sources: Collection[str]) -> None:
    """The letters by what they have in common; below, the reason of one of each, as the arguments of `show` name it."""
    groups: dict[tuple[str, str, str, str], list[StoredLetter]] = {}
    for found in letters:
        letter = found.letter
        groups.setdefault((letter.source, letter.code, ", ".join(found.tables), letter.output or ""), []).append(found)
    rows: list[tuple[object, ...]] = []
    reasons = []
    for key, group in sorted(groups.items()):
        times = [found.timestamp_ms for found in group]
        example = group[0]
        replayed = sum(found.replayed and found.discarded is None for found in group)
        discarded = sum(found.discarded is not None for found in group)
        rows.append((*key, len(group), replayed, discarded, instant(min(times)), instant(max(times))))
        reason = _reason(example, masked=example.letter.source in masked_sources) or "not shown: columns are masked"
        reasons.append(f"dlq show {example.partition} {example.offset}: {reason}")
        reasons += sorted({f"  discarded: {found.discarded}" for found in group if found.discarded is not None})
    if rows:
        print_table(_GROUP, rows)
    for line in reasons:
        click.echo(shown(line))


def print_total(letters: list[StoredLetter]) -> None:
    discarded = sum(found.discarded is not None for found in letters)
    replayed = sum(found.replayed for found in letters) - discarded
    click.echo(f"letters={len(letters)} replayed={replayed} discarded={discarded}")


def print_held(held: Mapping[HeldTable, HoldMark]) -> None:
    for of, mark in sorted(held.items(), key=lambda item: item[0].name):
        click.echo(f"held: {shown(str(of))}, since offset {mark.since} ({mark.code})")


def still_held(blocked: Mapping[HeldTable, HoldMark]) -> str:
    """Give the lines about the tables that a replay leaves held."""
    named = [
        f"{shown(str(of))} (offset {mark.since}, {mark.code})"
        for of, mark in sorted(blocked.items(), key=lambda item: item[0].name)
    ]
    others = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return (
        f"still held: {'; '.join(named[:_NAMED])}{others}. Correct what keeps these messages dead and replay again, "
        "without filters; or give them up: replay with on_error: {CODE: dead_letter} for their codes"
    )


def letter_facts(found: StoredLetter, *, masked: bool) -> dict[str, Any]:
    """Return the letter whole, but for the message, of which the layout is there alone."""
    message = found.letter.message
    layout = [size_alone(message.value)] if masked else preview(message.value)
    headers = {name: None if value is None else len(value) for name, value in message.headers}
    key_bytes = None if message.key is None else len(message.key)
    return {**facts(found, masked=masked), "key_bytes": key_bytes, "header_bytes": headers, "layout": layout}


def report_facts(report: ReplayReport, *, execute: bool) -> dict[str, Any]:
    """Return a replay in counts, by source and code, and the tables that are held still."""
    return {
        "executed": execute,
        "before": report.before,
        "groups": [
            {"source": source, "code": code, **msgspec.to_builtins(group)}
            for (source, code), group in sorted(report.groups.items())
        ],
        "still_dead": [
            {"source": source, "code": code, "now": now, "letters": count}
            for (source, code, now), count in sorted(report.still.items())
        ],
        "refused": [
            {"output": output, "code": code, "events": count}
            for (output, code), count in sorted(report.refused.items())
        ],
        "impossible": [
            {"partition": found.partition, "offset": found.offset, "reason": reason}
            for found, reason in report.impossible
        ],
        "held": held_facts(report.blocked),
        "caught_up": sorted(str(of) for of in report.caught_up),
    }


def held_facts(held: Mapping[HeldTable, HoldMark]) -> list[dict[str, Any]]:
    """Return the tables that are held, and since which raw offset."""
    return [
        {"table": str(of), "since": mark.since, "code": mark.code}
        for of, mark in sorted(held.items(), key=lambda item: item[0].name)
    ]


def print_letter(found: StoredLetter, *, masked: bool) -> None:
    letter, message = found.letter, found.letter.message
    click.echo(
        f"dead letter at partition {found.partition}, offset {found.offset}, written {instant(found.timestamp_ms)}"
    )
    if found.discarded is None:
        click.echo(f"replayed: {'yes' if found.replayed else 'no'}")
    else:
        click.echo(shown(f"discarded: {found.discarded}"))
    for name, value in letter.ours:
        if masked and name == "cdc-error-message" and not letter.is_left_out:
            continue  # of a day before the masks, with what stood in the message
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        click.echo(shown(f"{name}: {text}"))
    if found.tables:
        click.echo(f"table: {shown(', '.join(found.tables))}")
    for name, value in message.headers:
        click.echo(f"header {shown(name)}: {'null' if value is None else f'{len(value)} bytes'}")
    for what, body in (("key", message.key), ("value", message.value)):
        click.echo(f"{what}: " + "\n".join([size_alone(body)] if masked else preview(body)))


def print_report(report: ReplayReport, *, execute: bool) -> None:
    counts = ("letters", "translated", "events", "skipped", "learned", "dead", "impossible", "repeated")
    rows = [(*key, *(getattr(group, name) for name in counts)) for key, group in sorted(report.groups.items())]
    if rows:
        print_table(("source", "code", *counts), rows, title=None if execute else "dry run: nothing is written")
    for (source, code, now), count in sorted(report.still.items()):
        click.echo(f"{source}: {count} of {code} stay dead as {now}")
    for (output, code), count in sorted(report.refused.items()):
        click.echo(f"{count} are missing in {output}, a new dead letter each: {code}")
    for found, reason in report.impossible[:_NAMED]:
        click.echo(f"partition {found.partition}, offset {found.offset} cannot be replayed: {reason}")
    if len(report.impossible) > _NAMED:
        click.echo(f"… and {len(report.impossible) - _NAMED} more")
    print_held(report.blocked)
    for of in sorted(report.caught_up, key=lambda of: of.name):
        hold = "the hold ends with the next message that the service reads there"
        click.echo(f"{shown(str(of))}: all is replayed; {hold}")
    totals = " ".join(f"{name}={sum(getattr(group, name) for group in report.groups.values())}" for name in counts)
    click.echo(f"{'replayed' if execute else 'dry run'}: {totals} before={report.before}")
