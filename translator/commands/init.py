"""`translator init`: a configuration proposed from what topics, or files, hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from translator.commands.configuration import FILE
from translator.commands.record_file import read_files, read_raw
from translator.commands.remarks import say
from translator.commands.translate import parse_cli_options
from translator.config.setting_types import matches
from translator.config.settings import parse_kafka
from translator.errors import ConfigError
from translator.message import Message

if TYPE_CHECKING:  # at run time below: help starts without the dialects
    from translator.operations.recognition import TopicFinding

_BROKER_WAIT_SECONDS = 20.0


@click.command()
@click.option(
    "--kafka",
    "kafka_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting of the section kafka, such as bootstrap_servers=localhost:9092; repeatable. ${NAME} is taken from "
    "the environment, and stays ${NAME} in the file: passwords belong there.",
)
@click.option("--count", type=click.IntRange(2), default=200, show_default=True, help="Records to read of each topic.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read a file of messages or records (see `translate`) instead of a broker; repeatable.",
)
@click.option("--raw", is_flag=True, help="Each file is one message value.")
@click.option("--group", default="cdc-translator", show_default=True, help="Consumer group to write into the file.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    default=FILE,
    show_default=True,
    help="Where to write; - is standard output. A file that is there is left alone.",
)
@click.argument("topics", nargs=-1, metavar="TOPIC...")
def init(
    kafka_options: tuple[str, ...],
    count: int,
    files: tuple[Path, ...],
    raw: bool,
    group: str,
    output: Path,
    topics: tuple[str, ...],
) -> None:
    """Look at topics, recognise whose messages they hold, and propose a configuration with the evidence.

    TOPIC is a name or a pattern with * and ?. The oldest and the newest records are read, without a group. What the
    messages do not tell for certain stands as a comment in the file: zones, keys, the form of a legacy DTS instance.
    """
    if bool(topics) == bool(files):
        raise click.UsageError("give topics to read from a broker, or --file: one of them")
    kafka = parse_cli_options(kafka_options) or {"bootstrap_servers": "localhost:9092"}
    if str(output) != "-" and output.exists():
        raise ConfigError(f"{output} is there already, and stays as it is: -o names another file")
    samples = _from_files(files, raw=raw) if files else _from_topics(kafka, topics, count)
    from translator.operations.proposed_configuration import configuration
    from translator.operations.recognition import recognise

    findings = recognise(samples)
    text = configuration(findings, kafka, group)
    if str(output) == "-":
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
    _tell(findings, output)


def _from_files(files: Sequence[Path], *, raw: bool) -> dict[str, list[Message]]:
    """The messages by topic; those of a file that names none are under the name of the file."""
    samples: dict[str, list[Message]] = {}
    for file in files:
        for line in [read_raw(file)] if raw else read_files([file]):
            topic = file.stem if line.message.topic == "file" else line.message.topic
            samples.setdefault(topic, []).append(line.message)
    return samples


def _from_topics(kafka: Mapping[str, Any], wanted: Iterable[str], count: int) -> dict[str, list[Message]]:
    from translator.kafka import client_config
    from translator.kafka.admin import TopicAdmin
    from translator.kafka.topic_samples import samples

    client = client_config.librdkafka(parse_kafka(kafka, os.environ, "--kafka"))
    admin = TopicAdmin(client)
    admin.wait_for_broker(_BROKER_WAIT_SECONDS, say)
    there = sorted(admin.names())
    names = {entry: [topic for topic in there if matches(topic, entry)] for entry in wanted}
    for entry, found in names.items():
        if not found:
            raise ConfigError(f"no topic is named {entry}, or our user may not see it")
    facts = admin.describe(dict.fromkeys(topic for found in names.values() for topic in found))
    return dict(samples(client, facts, count))


def _tell(findings: Sequence[TopicFinding], output: Path) -> None:
    for finding in findings:
        dialect = "unknown" if finding.verdict is None else finding.verdict.dialect
        open_ = sum(proposal.certainty != "certain" for proposal in finding.proposals)
        left = f", {open_} options to confirm" if open_ else ""
        say(f"{finding.topic}: {dialect} ({finding.certainty}), {finding.messages} messages{left}")
    if str(output) != "-":
        say(f"{output} is written: read its comments, then `translator check -c {output}`")
