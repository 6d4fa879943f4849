"""Translate given messages as the service would, using a configured source and its masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from translator.config.settings import Settings
from translator.errors import ConfigError, unknown
from translator.message import Message
from translator.operations.file_translator import FileTranslator
from translator.resolution.builders import build_translators
from translator.translation.metadata_catalog import MetadataCatalog


def of_source(
    settings: Settings, name: str | None, messages: Sequence[Message], say: Callable[[str], None]
) -> FileTranslator:
    """Return a source's translator.

    Args:
        name: the source's name, or None for the only source.
        messages: see `FileTranslator`.
        say: see `FileTranslator`.

    Raises:
        ConfigError: the source does not exist, or its configuration is invalid.
    """
    names = [source.name for source in settings.sources]
    if name is None and len(names) > 1:
        raise ConfigError(f"use --source to choose the source of the files: {', '.join(names)}")
    wanted = names[0] if name is None else name
    if wanted not in names:
        raise ConfigError(unknown("source", wanted, names))
    catalog = MetadataCatalog()
    return FileTranslator(build_translators(settings, catalog)[wanted], catalog, messages, say)
