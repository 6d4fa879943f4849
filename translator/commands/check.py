"""`translator check`: what `run` would refuse, without brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import click
import msgspec

from cdc_core.command_line import json_option
from translator.commands.configuration import config_option
from translator.commands.remarks import say
from translator.config import settings as settings_module
from translator.config.setting_types import is_pattern
from translator.config.settings import Settings
from translator.errors import FatalError
from translator.translation.metadata_catalog import MetadataCatalog

if TYPE_CHECKING:
    from translator.operations.connection_checks import Check


@runtime_checkable
class Hinting(Protocol):
    """A dialect that can say what a configuration, though valid, leaves out."""

    def hints(self, *, described: bool) -> list[str]:
        """Say what is left out.

        Args:
            described: the configuration names where descriptions of messages come from: metadata topics, a registry.
        """


@click.command()
@config_option
@click.option(
    "--connect", is_flag=True, help="Ask brokers and registry, too, and translate some records of each raw topic."
)
@click.option(
    "--count",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="With --connect: records to translate of each topic, the oldest and the newest.",
)
@json_option
def check(config: Path, connect: bool, count: int, as_json: bool) -> None:
    """Check a configuration file: settings, dialects, codecs, their options, declared tables.

    What is valid but leaves something out is a warning, and the exit code stays 0. With --connect each question to the
    world is a line, and the exit code is 1 where an answer is WRONG. Nothing is written anywhere.
    """
    settings = settings_module.load(config)
    # Here, not above: help and `translator translate` start without Kafka clients.
    from translator.kafka.subscription import resolve
    from translator.resolution.builders import build_codecs, build_translators

    warnings: list[str] = []
    translators = build_translators(settings, MetadataCatalog(), warnings.append)
    codecs = build_codecs(settings)
    for source in settings.sources:
        dialect, described = translators[source.name].dialect, bool(source.metadata_topics or settings.registry)
        hints = dialect.hints(described=described) if isinstance(dialect, Hinting) else ()
        warnings += [f"source {source.name}: {hint}" for hint in hints]
    _, claimed_twice = resolve(settings, [topic for topic in settings.raw_topics if not is_pattern(topic)])
    warnings += [f"{claim}; `translator run` refuses that" for claim in claimed_twice]
    masked = [name for name, translator in translators.items() if translator.masks is not None]
    answers = _asked(settings, count) if connect else iter(())
    if as_json:
        told = list(answers)
        facts = {
            "sources": list(translators),
            "writes": {topic: codec.name for topic, codec in codecs.items()},
            "masked": masked,
            "warnings": warnings,
            "answers": msgspec.to_builtins(told),
        }
        click.echo(json.dumps(facts))
        wrong = sum(found.state == "WRONG" for found in told)
    else:
        click.echo(f"{config}: ok, {len(settings.sources)} source(s)")
        for topic, codec in codecs.items():
            click.echo(f"  writes {topic} as {codec.name}")
        for name in masked:
            click.echo(f"  masks columns of {name}")
        for warning in warnings:
            say(f"warning: {warning}")
        wrong = 0
        for found in answers:
            wrong += found.state == "WRONG"
            click.echo(f"{found.state:<5}  {found.subject}: {found.text}")
    if wrong:
        raise FatalError(f"{wrong} answers are WRONG; `translator run` needs all of them right")


def _asked(settings: Settings, count: int) -> Iterator[Check]:
    from translator.operations.connection_checks import checks

    return checks(settings, count, say)
