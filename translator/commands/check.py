"""`translator check`: find out what `run` would reject, without connecting to brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import click
import msgspec

from cdc_core import deprecations
from cdc_core.command_line import json_option
from cdc_core.kafka_settings import tokens_of
from translator.commands.configuration import config_option
from translator.commands.output import say
from translator.config import settings as settings_module
from translator.config.setting_types import is_pattern
from translator.config.settings import Settings
from translator.config.unmatched_patterns import unmatched_sources
from translator.errors import FatalError
from translator.translation.metadata_catalog import MetadataCatalog

if TYPE_CHECKING:
    from translator.operations.sample_checks import Check


@runtime_checkable
class Hinting(Protocol):
    """A dialect that can report gaps in a valid configuration."""

    def hints(self, *, described: bool) -> list[str]:
        """Return a hint for everything that the configuration lacks.

        Args:
            described: whether the configuration provides descriptions of messages: metadata topics or a registry.
        """


@click.command()
@config_option
@click.option(
    "--connect",
    is_flag=True,
    help="Also query the brokers and the registry, and translate a few records from each raw topic.",
)
@click.option(
    "--count",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help=(
        "Number of records per topic to translate with --connect. Half of them come from the beginning of the topic, "
        "half from its end."
    ),
)
@json_option
def check(config: Path, connect: bool, count: int, as_json: bool) -> None:
    """Check a configuration file: settings, dialects, codecs, their options, and declared tables.

    Settings that are valid but incomplete cause a warning, and the exit code is still 0. With --connect, the command
    prints one line for each check of the brokers and the registry. The exit code is 1 if any check is WRONG. One
    example is a topic whose sampled records all become dead letters. The command writes nothing.
    """
    settings = settings_module.load(config)
    tokens_of(settings.kafka)
    # Imported here so that help and `translator translate` start without Kafka clients.
    from translator.kafka.subscription import resolve
    from translator.resolution.builders import build_codecs, build_translators

    warnings = deprecations.deprecated_settings(settings, deprecations.TRANSLATOR)
    translators = build_translators(settings, MetadataCatalog(), warnings.append)
    codecs = build_codecs(settings)
    for source in settings.sources:
        dialect, described = translators[source.name].dialect, bool(source.metadata_topics or settings.registry)
        hints = dialect.hints(described=described) if isinstance(dialect, Hinting) else ()
        warnings += [f"source {source.name}: {hint}" for hint in hints]
    _, claimed_twice = resolve(settings, [topic for topic in settings.raw_topics if not is_pattern(topic)])
    warnings += [f"{claim}; `translator run` rejects this configuration" for claim in claimed_twice]
    warnings += unmatched_sources(settings)
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
        raise FatalError(f"{wrong} checks are WRONG; `translator run` requires all of them to pass")


def _asked(settings: Settings, count: int) -> Iterator[Check]:
    from translator.operations.connection_checks import checks

    return checks(settings, count, say)
