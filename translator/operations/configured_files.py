"""Messages at hand, translated as the service would: a source of the configuration, with its masks."""

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
    """Return the translator of a source.

    Args:
        name: of the source; None where there is one.
        messages, say: as `FileTranslator`.

    Raises:
        ConfigError: there is no such source, or its configuration is wrong.
    """
    names = [source.name for source in settings.sources]
    if name is None and len(names) > 1:
        raise ConfigError(f"--source says which of the sources the files are of: {', '.join(names)}")
    wanted = names[0] if name is None else name
    if wanted not in names:
        raise ConfigError(unknown("source", wanted, names))
    catalog = MetadataCatalog()
    return FileTranslator(build_translators(settings, catalog)[wanted], catalog, messages, say)
