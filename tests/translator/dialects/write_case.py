"""Make a case from a record in a raw topic, with masked values: `make case`.

The folder gets the message, the options and declared tables of its source, its metadata, and the result. The last
argument describes what is special about it. Review `expected.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.translator.dialects.case import CASES, EXPECTED, outcome_of
from translator.config import settings as settings_module
from translator.config.settings import Settings, Source
from translator.dialects import build
from translator.errors import CdcError, MessageError
from translator.kafka.offset_ranges import records_of
from translator.message import Message, Setup
from translator.operations.masked_copy import RecordMasker
from translator.operations.offline_translator import OfflineTranslator


def main(arguments: Sequence[str], cases: Path = CASES) -> Path:
    """Return the folder.

    Raises:
        CdcError: the record or its masked copy does not exist, or the case would not show what the record does.
    """
    given = _parser().parse_args(arguments)
    settings = settings_module.load(given.config)
    (message,) = records_of(settings, given.topic, given.partition, given.offset, given.offset + 1, 1, _say)
    translator = OfflineTranslator(settings, _say)
    try:
        source = next(found for found in settings.sources if found.name == translator.raw_topics[given.topic])
        copy = RecordMasker(translator.translate).copy(message, translator.translator(given.topic).dialect)
        folder = cases / source.dialect / given.name
        folder.mkdir()
        _write(folder, copy, source, _documents(settings, source, translator, copy))
        (folder / "about.md").write_text(given.about.strip() + "\n", encoding="utf-8")
        found = outcome_of(folder)
    finally:
        translator.close()
    (folder / EXPECTED).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make case CASE_ARGS=...", description=__doc__)
    parser.add_argument("-c", "--config", type=Path, required=True, help="configuration of the service")
    parser.add_argument("topic")
    parser.add_argument("partition", type=int)
    parser.add_argument("offset", type=int)
    parser.add_argument("name", help="of the case, a folder")
    parser.add_argument("about", help="what is special about it, and who wrote such messages")
    return parser


def _write(folder: Path, message: Message, source: Source, documents: dict[str, str]) -> None:
    value = message.value or b""
    try:
        value.decode()
        suffix = "json"
    except UnicodeDecodeError:
        suffix = "bin"
    (folder / f"message.{suffix}").write_bytes(value)
    if message.key is not None:
        (folder / "key.txt").write_bytes(message.key)
    for name, content in (
        ("options", source.options),
        ("tables", msgspec.to_builtins([table.declared() for table in source.tables])),
        ("documents", documents),
    ):
        if content:
            text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
            (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _documents(settings: Settings, source: Source, translator: OfflineTranslator, message: Message) -> dict[str, str]:
    """Return the documents that the message needs: names and types, without row data."""
    asked: dict[str, str] = {}
    look = translator.catalog.lookup(source.name)

    def lookup(key: str) -> object | None:
        document = translator.catalog.document(source.name, key)
        if document is not None:
            asked[key] = document.decode()
        return look(key)

    tables = tuple(table.declared() for table in source.tables)
    dialect = build(source.dialect, Setup(source.name, settings.limits.limits(), tables, lookup), source.options)
    with contextlib.suppress(MessageError):  # a dead letter is also a case
        dialect.decode(message)
    return asked


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    try:
        print(main(sys.argv[1:]))
    except (CdcError, FileExistsError) as error:
        sys.exit(f"make case: {error}")
