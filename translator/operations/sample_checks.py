"""Check a sample of each raw topic. Account for every record, and name the product if it is not the configured one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from cdc_core.table_id import joined_name
from translator.config.masks import MasksSettings
from translator.config.settings import Settings
from translator.config.unmatched_patterns import SeenTables, unmatched_in
from translator.message import Message, RowChange
from translator.operations.counted import counted
from translator.operations.recognition import Verdict, judge, recognise, teach
from translator.resolution.builders import build_translators
from translator.translation.metadata_catalog import MetadataCatalog

State: TypeAlias = Literal["ok", "note", "WRONG"]
"""The levels of a result. The operator must judge each `note`, but it does not prevent `run` from starting."""


class Check(Struct, frozen=True):
    """A result, in one line."""

    subject: str
    state: State
    text: str


def sample_checks(
    settings: Settings, sources: Mapping[str, str], samples: Mapping[str, Sequence[Message]]
) -> list[Check]:
    """Translate the samples as the service would.

    Args:
        sources: the name of each topic's source.
        samples: records by topic.
    """
    catalog = MetadataCatalog()
    translators = build_translators(settings, catalog)
    for topic, messages in samples.items():
        teach(translators[sources[topic]], catalog, messages)
    verdicts = {topic: judge(translators[sources[topic]], messages, {}) for topic, messages in samples.items()}
    registry = settings.registry is not None
    unread = {topic for topic, verdict in verdicts.items() if _is_unreadable(verdict, registry=registry)}
    # Recognition translates all records with every dialect, so it runs only if something has to be explained.
    looks = {finding.topic: finding.dialect for finding in recognise(samples)} if unread else {}
    found: list[Check] = []
    for topic, verdict in verdicts.items():
        found += _account(f"topic {topic}", verdict, len(samples[topic]), registry=registry)
        if topic in unread:
            found.append(_unreadable(f"source {sources[topic]}", topic, verdict, looks[topic]))
    seen = _seen_tables(settings, catalog, sources, samples)
    found += [Check("configuration", "note", text) for text in unmatched_in(settings, seen)] if seen else []
    return found


def _seen_tables(
    settings: Settings, catalog: MetadataCatalog, sources: Mapping[str, str], samples: Mapping[str, Sequence[Message]]
) -> SeenTables:
    """Return the tables and columns in the samples as they were before masking, because masks may remove columns."""
    unmasked = build_translators(settings.model_copy(update={"masks": MasksSettings()}), catalog)
    seen: dict[tuple[str, str], dict[str, str | None]] = {}
    for topic, messages in samples.items():
        for read in judge(unmasked[sources[topic]], messages, {}).sample:
            for change in read.changes:
                if isinstance(change, RowChange):
                    name = joined_name(change.table.db, change.table.schema, change.table.table)
                    seen.setdefault((sources[topic], name), {}).update(_columns(change))
    return seen


def _columns(change: RowChange) -> dict[str, str | None]:
    types: dict[str, str | None] = dict.fromkeys([*(change.before or {}), *(change.after or {})])
    types.update(change.types or {})
    if change.schema is not None:
        types.update({column.name: column.type for column in change.schema.columns})
    return types


def _is_unreadable(verdict: Verdict, *, registry: bool) -> bool:
    """Return whether the topic has messages but none of them can be read, even with metadata from earlier records."""
    pending = verdict.waiting + (verdict.unregistered if registry else 0)
    return not verdict.understood and not pending and bool(verdict.unregistered + verdict.rejected)


def _unreadable(subject: str, topic: str, verdict: Verdict, looks_like: str | None) -> Check:
    records = verdict.unregistered + verdict.rejected
    if looks_like is None or looks_like == verdict.dialect:
        text = f"none of {records} records of {topic} can be translated"
    else:
        text = f"none of {records} records of {topic} is {verdict.dialect}; they look like {looks_like}"
    return Check(subject, "WRONG", text)


def _account(subject: str, verdict: Verdict, records: int, *, registry: bool) -> Iterator[Check]:
    """Return lines with counts that add up to the number of records."""
    if not records:
        yield Check(subject, "note", "it is empty, so there was nothing to test")
        return
    skipped = f", {verdict.skipped} skipped (without a value)" if verdict.skipped else ""
    said = f"{records} records: {verdict.translated} translated, {verdict.learned} learned{skipped}"
    yield Check(subject, "ok" if verdict.understood else "note", said)
    if verdict.waiting:
        why = "wait for metadata that is not in the sampled records; `translator learn` reads all records"
        yield Check(subject, "note", f"{verdict.waiting} {why}")
    if verdict.unregistered:
        why = (
            "which this check does not request"
            if registry
            else "but the configuration has none; add a `registry` section"
        )
        yield Check(subject, "note", f"{verdict.unregistered} need a schema from the schema registry, {why}")
    for refused in verdict.refusals:
        yield Check(subject, "note", f"{counted(refused.count, 'dead letter')} {refused.code}: {refused.reason}")
