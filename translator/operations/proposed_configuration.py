"""Turn findings about topics into a configuration file. Facts from the sample become settings. Everything else becomes
a comment.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import yaml

from translator.operations.counted import counted
from translator.operations.recognition import KeylessTable, TopicFinding, Verdict
from translator.proposals import Certainty

_WIDTH = 110

_COLUMNS = 12
"""Maximum number of columns to list for a table without a key."""

_SAYS: Mapping[Certainty, str] = {
    "certain": "certain",
    "likely": "likely but not certain; please confirm",
    "unknown": "CANNOT KNOW: please decide",
}

Group: TypeAlias = Sequence[TopicFinding]
"""One source's topics."""


def configuration(findings: Sequence[TopicFinding], kafka: Mapping[str, object], group: str) -> str:
    """Return the file. Topics with the same dialect and options form one source. Unrecognized topics become comments.

    Args:
        kafka: the `kafka` section, as given by the operator.
    """
    lines = [
        *_comment(
            "Proposed by `translator init` from a sample of messages. Read the comments, make the remaining decisions,"
        ),
        *_comment("and run `translator check`."),
        f"group: {group}",
        "kafka:",
        *(f"  {name}: {_scalar(value)}" for name, value in kafka.items()),
    ]
    groups = _grouped(findings)
    if groups:
        lines += ["", *_comment(_HOW_TO_CUT), "sources:"]
    for name, topics in groups.items():
        lines += _source(name, topics)
    for finding in findings:
        if finding.verdict is None:
            lines += ["", *_comment(f"topic {finding.topic}: {_SAYS['unknown']}. {finding.why}")]
    return "\n".join([*lines, ""])


_HOW_TO_CUT = (
    "Each source is one replication task. Its name is part of every event, so choose it now. If the topics belong "
    "to several tasks, define a source for each task."
)


def _grouped(findings: Iterable[TopicFinding]) -> dict[str, list[TopicFinding]]:
    """Return each source's findings, by a proposed name. Metadata topics reveal no options. They are added to the
    topics with rows.
    """
    by_kind: dict[tuple[str, tuple[tuple[str, object], ...]], list[TopicFinding]] = {}
    alone: list[tuple[Verdict, TopicFinding]] = []
    for finding in findings:
        if finding.verdict is None:
            continue
        if _is_metadata(finding):
            alone.append((finding.verdict, finding))
        else:
            by_kind.setdefault((finding.verdict.dialect, tuple(finding.options.items())), []).append(finding)
    for verdict, finding in alone:
        fitting = [topics for (dialect, _), topics in by_kind.items() if dialect == verdict.dialect]
        if fitting:
            fitting[0].append(finding)
        else:
            by_kind[verdict.dialect, ()] = [finding]
    names: dict[str, list[TopicFinding]] = {}
    for (dialect, _), topics in by_kind.items():
        count = sum(name.startswith(dialect) for name in names)
        names[f"{dialect}_{count + 1}" if count else dialect] = topics
    return names


def _is_metadata(finding: TopicFinding) -> bool:
    return finding.verdict is not None and 0 < finding.verdict.learned == finding.messages


def _source(name: str, topics: Group) -> Iterator[str]:
    verdicts = [topic.verdict for topic in topics if topic.verdict is not None]
    yield f"  - name: {name}"
    yield f"    dialect: {verdicts[0].dialect}"
    for topic in topics:
        yield from _comment(f"topic {topic.topic}: {_SAYS[topic.certainty]}. {topic.why}", 4)
        yield from _troubles(topic)
    yield f"    topics: {_flow([topic.topic for topic in topics])}"
    if metadata := [topic.topic for topic in topics if _is_metadata(topic)]:
        yield f"    metadata_topics: {_flow(metadata)}"
    yield from _options(topics)
    yield from _tables(topics)


def _troubles(finding: TopicFinding) -> Iterator[str]:
    """Return comments on the sample messages for which the unchanged file would not produce events."""
    verdict = finding.verdict
    if verdict is None:
        return
    if verdict.waiting:
        why = "for metadata messages; add their topic to topics and metadata_topics"
        waiting = "message waits" if verdict.waiting == 1 else "messages wait"
        yield from _comment(f"{verdict.waiting} {waiting} {why}", 4)
    if verdict.unregistered:
        need = "message needs" if verdict.unregistered == 1 else "messages need"
        yield from _comment(f"{verdict.unregistered} {need} a schema registry; add the section `registry`", 4)
    for refusals in verdict.refusals:
        yield from _comment(f"{counted(refusals.count, 'dead letter')} {refusals.code}: {refusals.reason}", 4)


def _options(topics: Group) -> Iterator[str]:
    proposals = {proposal.option: proposal for topic in topics for proposal in topic.proposals}
    options = {option: value for topic in topics for option, value in topic.options.items()}
    if options:
        yield "    options:"
    for option, value in options.items():
        if option in proposals:
            yield from _comment(f"{_SAYS[proposals[option].certainty]}. {proposals[option].why}", 6)
        yield f"      {option}: {_scalar(value)}"
    for proposal in proposals.values():
        if proposal.value is None:
            yield from _comment(f"option {proposal.option}: {_SAYS['unknown']}. {proposal.why}", 6 if options else 4)


def _tables(topics: Group) -> Iterator[str]:
    keyless: dict[str, KeylessTable] = {table.name: table for topic in topics for table in topic.keyless}
    if not keyless:
        return
    yield from _comment(
        "The keys of these tables cannot be determined reliably from the messages. Without a key, rows cannot be "
        "updated. Replace the question mark with the key columns, and remove the leading #.",
        4,
    )
    yield "    # tables:"
    for table in keyless.values():
        more = "" if len(table.columns) <= _COLUMNS else f" and {len(table.columns) - _COLUMNS} more"
        yield f"    #   - {{table: {_scalar(table.name)}, key: [?]}}"
        yield from _comment(f"      columns seen: {', '.join(table.columns[:_COLUMNS])}{more}", 4)


def _comment(text: str, indent: int = 0) -> Iterator[str]:
    """Return a comment that its content cannot end early. The names of topics, tables and columns are untrusted."""
    printable = "".join(char if char.isprintable() else "?" for char in text)
    margin = f"{' ' * indent}# "
    hanging = " " * (len(printable) - len(printable.lstrip()))
    yield from textwrap.wrap(
        printable,
        _WIDTH,
        initial_indent=margin,
        subsequent_indent=margin + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _scalar(value: object) -> str:
    """Return a value on one line, whatever characters it contains."""
    if isinstance(value, str) and not value.isprintable():
        return json.dumps(value)  # JSON strings are also YAML strings
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=sys.maxsize)
    return text.removesuffix("\n...\n").strip()


def _flow(names: Sequence[str]) -> str:
    return f"[{', '.join(_scalar(name) for name in names)}]"
