"""`translator init`: propose a configuration from the contents of topics or files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from translator.commands.configuration import FILE
from translator.commands.output import say
from translator.commands.record_file import read_files, read_raw
from translator.commands.translate import parse_cli_options
from translator.config.setting_types import matches
from translator.config.settings import parse_kafka
from translator.dialects import with_recognizer
from translator.errors import ConfigError, FatalError
from translator.message import Message
from translator.operations.counted import counted

if TYPE_CHECKING:  # imported at run time below, so that help starts without the dialects
    from translator.operations.recognition import TopicFinding

_BROKER_WAIT_SECONDS = 20.0


@click.command()
@click.option(
    "--kafka",
    "kafka_options",
    multiple=True,
    metavar="NAME=VALUE",
    help=(
        "A setting for the `kafka` section, such as bootstrap_servers=localhost:9092. Repeatable. For passwords, "
        "write ${NAME}: the command reads the variable from the environment, but copies ${NAME} into the file."
    ),
)
@click.option(
    "--count", type=click.IntRange(2), default=200, show_default=True, help="Number of records to read per topic."
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read messages or records from a file (see `translate`) instead of from a broker. Repeatable.",
)
@click.option("--raw", is_flag=True, help="Treat each file as one message value.")
@click.option("--group", default="cdc-translator", show_default=True, help="Consumer group to put into the file.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    default=FILE,
    show_default=True,
    help="Output file, or - for standard output. An existing file is never overwritten.",
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
    """Inspect topics, recognize which product wrote their messages, and propose a configuration.

    TOPIC is a name or a pattern with * and ?. The command reads the oldest and the newest records, and does not join a
    group. For each question that the messages leave open, the file contains a comment. Examples are time zones, keys,
    and the format of a legacy DTS instance.
    """
    if bool(topics) == bool(files):
        raise click.UsageError("specify either topics to read from a broker, or --file")
    kafka = parse_cli_options(kafka_options) or {"bootstrap_servers": "localhost:9092"}
    if str(output) != "-" and output.exists():
        raise ConfigError(f"{output} already exists and was not changed; choose another file with -o")
    if str(output) != "-" and not output.parent.is_dir():
        raise ConfigError(f"{output}: the folder {output.parent} does not exist")
    samples = _from_files(files, raw=raw) if files else _from_topics(kafka, topics, count)
    from translator.operations.proposed_configuration import configuration
    from translator.operations.recognition import recognise

    findings = recognise(samples, with_recognizer(say))
    if all(finding.verdict is None for finding in findings):
        reasons = (
            "; ".join(f"{finding.topic}: {finding.why}" for finding in findings) or "the files contain no messages"
        )
        raise FatalError(f"nothing was written, because no source was recognized: {reasons}")
    text = configuration(findings, kafka, group)
    if str(output) == "-":
        click.echo(text, nl=False)
    else:
        _write(output, text)
    _tell(findings, output)


def _write(output: Path, text: str) -> None:
    """Write the whole new file, or leave no file behind."""
    try:
        with output.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                output.unlink()
                raise
    except OSError as error:
        raise FatalError(f"cannot write {output}: {error.strerror}") from None


def _from_files(files: Sequence[Path], *, raw: bool) -> dict[str, list[Message]]:
    """Return the messages by topic. Messages without a topic are listed under the name of their file."""
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
            raise ConfigError(f"topic {entry} does not exist or is not visible to this user")
    facts = admin.describe(dict.fromkeys(topic for found in names.values() for topic in found))
    return dict(samples(client, facts, count))


def _tell(findings: Sequence[TopicFinding], output: Path) -> None:
    for finding in findings:
        dialect = "unknown" if finding.verdict is None else finding.verdict.dialect
        open_ = sum(proposal.certainty != "certain" for proposal in finding.proposals)
        left = f", {counted(open_, 'option')} to confirm" if open_ else ""
        say(f"{finding.topic}: {dialect} ({finding.certainty}), {counted(finding.messages, 'message')}{left}")
    if str(output) != "-":
        say(f"wrote {output}: read its comments, then run `translator check -c {output}`")
