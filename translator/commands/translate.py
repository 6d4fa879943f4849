"""`translator translate`: translate files without Kafka, using the same core as the service."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click
import yaml

from translator import dialects
from translator.commands.output import say
from translator.commands.record_file import Line, read_files, read_raw
from translator.errors import ConfigError, FatalError
from translator.message import Learned, Message, Skip
from translator.operations.file_translator import FileTranslator, of_dialect
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events


@click.command()
@click.option("-d", "--dialect", help=f"One of {', '.join(dialects.DIALECTS)}, or an installed plug-in.")
@click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A dialect option, or tables=... to declare tables. The value is YAML. Repeatable.",
)
@click.option(
    "-c",
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=(
        "Configuration file. Use this instead of -d and -o. Messages are then read as configured for the source, "
        "including its masks."
    ),
)
@click.option("--source", help="Name of the source. [default: file; with -c, the only source]")
@click.option(
    "--schemas",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with registry schemas: a JSON object that maps each schema ID to a schema or to its text.",
)
@click.option("--lines", is_flag=True, help="Treat each line of FILE as one message value, whatever it contains.")
@click.option("--raw", is_flag=True, help="Treat the whole of FILE as one message value.")
@click.option("--strict", is_flag=True, help="Exit with code 1 if any message became a dead letter.")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
)
def translate(
    dialect: str | None,
    options: tuple[str, ...],
    config: Path | None,
    source: str | None,
    schemas: Path | None,
    lines: bool,
    raw: bool,
    strict: bool,
    files: tuple[Path, ...],
) -> None:
    """Translate files of messages. Events go to standard output. Dead letters and a summary go to standard error.

    A FILE (or - for standard input) has one message per line. The first line determines the format of all lines:

    \b
    messages  the JSON value of a message, as a console consumer prints it
    records   a JSON object with the field value or value_base64, and
              optionally what else is known about the message:

    \b
    value           the message: JSON, or its text as a JSON string; null: none
    value_base64    instead of value: the bytes of the message, as base64
    key             key of the message, as text; or key_base64; default: none
    topic           default: file
    partition       default: 0
    offset          default: the line number, from 0, counted over all files of
                    the call
    timestamp       milliseconds since 1970; default: 0
    headers         {"name": "text"} or [["name", "text"]]; or headers_base64,
                    pairs with base64 values; default: none

    `translator capture` and `translator dlq show --raw` write records.
    """
    if raw and lines:
        raise click.UsageError(
            "--raw and --lines cannot be combined; --raw reads each file as one message, and --lines reads "
            "each line as one message"
        )
    given = [read_raw(file, offset) for offset, file in enumerate(files)] if raw else read_files(files, bare=lines)
    messages = [line.message for line in given]
    if config is not None:
        if dialect is not None or options:
            raise click.UsageError("-c determines the dialect and its options; remove -d and -o")
        translator = _configured(config, source, messages)
    elif dialect is None:
        raise click.UsageError("choose the dialect with -d, or use the source's configuration with -c")
    else:
        translator = of_dialect(dialect, parse_cli_options(options), source or "file", messages, say)
    for key, text in read_schemas(schemas).items() if schemas else ():
        translator.teach(key, text)
    account = _Account(translator)
    try:
        for line in given:
            account.take(line, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # a reader such as `head` closed the pipe; click exits silently
    except OSError as error:
        raise FatalError(f"cannot write to standard output: {error.strerror}") from None
    click.echo(account.summary(), err=True)
    if strict and account.counts["dead"]:
        sys.exit(1)


def _configured(config: Path, source: str | None, messages: Sequence[Message]) -> FileTranslator:
    # Imported here because translating files without a configuration needs no Kafka clients.
    from translator.config import settings
    from translator.operations.configured_files import of_source

    return of_source(settings.load(config), source, messages, say)


def parse_cli_options(given: Iterable[str]) -> dict[str, Any]:
    """Parse `name=value` pairs. A value is YAML, so both `profile=dts` and `instance={created: ...}` work.

    Raises:
        ConfigError: a pair has no `=`, or its value is not YAML.
    """
    options: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"option {pair!r} is not in the form NAME=VALUE")
        try:
            # BaseLoader keeps dates and numbers as text; the dialect's option types read them
            options[name] = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  it makes strings, lists, mappings only
        except yaml.YAMLError:
            raise ConfigError(f"option {name}: the value is not valid YAML") from None
    return options


def read_schemas(file: Path) -> dict[str, bytes]:
    """Return the schemas of a registry in the form in which a dialect learns them: the key `registry/<id>` and the
    text.

    Raises:
        ConfigError: the file is not a JSON object of schemas by id.
    """
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        raise ConfigError(f"--schemas: {file} is not valid JSON") from None
    if not isinstance(found, dict) or not all(_is_id(name) for name in found):
        raise ConfigError(f'--schemas: {file} is not a JSON object of the form {{"<id>": schema}}')
    return {
        f"registry/{int(name)}": (schema if isinstance(schema, str) else json.dumps(schema)).encode()
        for name, schema in found.items()
    }


def _is_id(name: str) -> bool:
    return name.isascii() and name.isdigit() and int(name) < 1 << 32


class _Account:
    """One run over files. Prints the result of each message and counts the totals."""

    def __init__(self, translator: FileTranslator) -> None:
        self._translator = translator
        self.counts: Counter[str] = Counter()

    def take(self, line: Line, out: BinaryIO) -> None:
        """Translate one message and print the result."""
        message = line.message
        self.counts["records"] += 1
        translation = self._translator.translate(message)
        out.writelines((record.value or b"") + b"\n" for record in translation.canonical)
        self.counts["events"] += len(translation.canonical)
        match translation.outcome:
            case DeadLetter() as dead:
                self.counts["dead"] += 1
                click.echo(dead_letter_line(message, dead, file=str(line.file), line=line.number), err=True)
            case Skip():
                self.counts["skipped"] += 1
            case Learned():
                self.counts["learned"] += 1
            case Events():
                self.counts["translated"] += 1

    def summary(self) -> str:
        """The summary line."""
        names = ("records", "translated", "dead", "skipped", "learned", "events")
        return " ".join(f"{name}={self.counts[name]}" for name in names)


def dead_letter_line(message: Message, dead: DeadLetter, **where: str | int | None) -> str:
    """Return a dead letter as a line for standard error. `where` adds its message's position."""
    origin = {"topic": message.topic, "partition": message.partition, "offset": message.offset}
    told = {name: value for name, value in where.items() if value is not None}
    return json.dumps({"code": dead.code, "message": dead.reason, "origin": origin, **told})
