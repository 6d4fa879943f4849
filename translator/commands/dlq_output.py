"""Print dead letters and replay reports from `translator dlq`, for people and for programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click
import msgspec

from translator.commands.output import print_table
from translator.operations.counted import counted
from translator.operations.duration import instant
from translator.operations.message_preview import preview, size_alone
from translator.operations.terminal_text import shown

if TYPE_CHECKING:  # imported at run time, so that help and `translator translate` start without Kafka clients
    from translator.operations.dlq.reader import StoredLetter
    from translator.operations.dlq.replay import ReplayReport
    from translator.state.table_holds import HeldTable, HoldMark

_GROUP = ("source", "code", "table", "only in", "letters", "replayed", "discarded", "first", "last")

_NAMED = 10
"""Maximum number of dead letters or tables that are listed one by one."""


def facts(found: StoredLetter, *, masked: bool) -> dict[str, Any]:
    """Return the facts about a dead letter as JSON. They never include row data, and no table names if columns are
    masked.
    """
    letter, message = found.letter, found.letter.message
    return {
        "partition": found.partition,
        "offset": found.offset,
        "time": instant(found.timestamp_ms),
        "code": letter.code,
        "reason": letter.reason_without_values(masked=masked),
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


def print_groups(letters: list[StoredLetter], masked_sources: Collection[str]) -> None:
    """Print the dead letters in groups. Then print the reason of one dead letter per group, with its arguments for `dlq
    show`.
    """
    groups: dict[tuple[str, str, str, str], list[StoredLetter]] = {}
    for found in letters:
        letter = found.letter
        groups.setdefault((letter.source, letter.code, ", ".join(found.tables), letter.output or ""), []).append(found)
    rows: list[tuple[object, ...]] = []
    reasons = []
    for key, group in sorted(groups.items()):
        times = [found.timestamp_ms for found in group]
        example = next((found for found in group if not found.replayed), group[0])
        replayed = sum(found.replayed and found.discarded is None for found in group)
        discarded = sum(found.discarded is not None for found in group)
        rows.append((*key, len(group), replayed, discarded, instant(min(times)), instant(max(times))))
        reason = (
            example.letter.reason_without_values(masked=example.letter.source in masked_sources)
            or "not shown because columns are masked"
        )
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
    """Return the text of the error about tables that are still held after a replay."""
    named = [
        f"{shown(str(of))} (offset {mark.since}, {mark.code})"
        for of, mark in sorted(blocked.items(), key=lambda item: item[0].name)
    ]
    others = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return (
        f"still held: {'; '.join(named[:_NAMED])}{others}. Fix the cause of these dead letters and replay them "
        "again without filters. To discard them instead, replay them with on_error: {CODE: dead_letter} for their "
        "codes"
    )


def letter_facts(found: StoredLetter, *, masked: bool) -> dict[str, Any]:
    """Return everything about a dead letter, but only the structure of its message."""
    message = found.letter.message
    layout = [size_alone(message.value)] if masked else preview(message.value)
    headers = {name: None if value is None else len(value) for name, value in message.headers}
    key_bytes = None if message.key is None else len(message.key)
    return {**facts(found, masked=masked), "key_bytes": key_bytes, "header_bytes": headers, "layout": layout}


def report_facts(report: ReplayReport, *, execute: bool) -> dict[str, Any]:
    """Return a replay as counts by source and code, with the tables that are still held."""
    return {
        "executed": execute,
        "before": report.before,
        "groups": [
            {"source": source, "code": code, **msgspec.to_builtins(group)}
            for (source, code), group in sorted(report.groups.items())
        ],
        "still_dead": [
            {"source": source, "code": code, "now": now, "letters": count, "reason": reason}
            for (source, code, now), count in sorted(report.still.items())
            for _, reason in [report.reasons.get((source, code, now), (None, None))]
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
    """Return the held tables, each with the raw offset at which its hold began."""
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
            continue  # predates the masks and may quote the message
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
        print_table(("source", "code", *counts), rows, title=None if execute else "dry run: nothing was written")
    for (source, code, now), count in sorted(report.still.items()):
        which, reason = report.reasons.get((source, code, now), (None, None))
        letters = f"{counted(count, 'letter')} with {code}"
        click.echo(f"{source}: {letters} still cannot be translated, now with {now}")
        if which is not None:
            click.echo(shown(f"  for example partition {which.partition}, offset {which.offset}: {reason}"))
    for (output, code), count in sorted(report.refused.items()):
        click.echo(f"{count} events could not be written to {output} and became new dead letters: {code}")
    for found, reason in report.impossible[:_NAMED]:
        click.echo(
            f"the dead letter at partition {found.partition}, offset {found.offset} cannot be replayed: {reason}"
        )
    if len(report.impossible) > _NAMED:
        click.echo(f"… and {len(report.impossible) - _NAMED} more")
    print_held(report.blocked)
    for of in sorted(report.caught_up, key=lambda of: of.name):
        hold = "the service releases the hold when it reads the next message of that partition"
        click.echo(f"{shown(str(of))}: all letters have been replayed; {hold}")
    totals = " ".join(f"{name}={sum(getattr(group, name) for group in report.groups.values())}" for name in counts)
    click.echo(f"{'replayed' if execute else 'dry run'}: {totals} before={report.before}")
