"""Render the playground page, either on a server or, from files, in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from translator.dialects import DIALECTS
from translator.errors import CdcError
from translator.web.playground import (
    ENCODINGS,
    RECOGNISE,
    MessageReading,
    PastedMessage,
    Sample,
    answer,
    samples,
)
from translator.web.templating import FILES, rendered


def asked(fields: Mapping[str, str]) -> PastedMessage:
    """Return the message in the fields of the form. A missing field is empty."""
    # Browsers send the lines of a text area with carriage returns.
    texts = {name: fields.get(name, "").replace("\r\n", "\n") for name in ("message", "options", "before", "key")}
    dialect, encoding = fields.get("dialect", RECOGNISE), fields.get("encoding", ENCODINGS[0])
    return PastedMessage(texts["message"], encoding, dialect, texts["options"], texts["before"], texts["key"])


def blank() -> dict[str, Any]:
    """Return the content of a page without a message."""
    return _content(PastedMessage(""))


def translated(question: PastedMessage) -> dict[str, Any]:
    """Return the content of the page that shows a message. `error` is set only if the input is invalid."""
    try:
        return _content(question, found=answer(question))
    except CdcError as error:
        return _content(question, error=str(error))


def translated_sample(sample: Sample) -> dict[str, Any]:
    """Return the content of a sample's page. If the sample has other options, the page also shows it read with
    these.
    """
    question = PastedMessage(sample.message, sample.encoding, sample.dialect, sample.options, sample.before)
    other = None
    if sample.other_options:
        other = answer(structs.replace(question, options=sample.other_options))
    content = _content(question, found=answer(question), chosen=sample.name)
    return {**content, "other": other, "other_options": sample.other_options}


def answer_in_files(fields: Mapping[str, str]) -> str:
    """Return the part of the page that shows a message, for a page that is a file."""
    return rendered("answer.html", FILES, **translated(asked(fields)))


def _content(
    question: PastedMessage, *, found: MessageReading | None = None, error: str | None = None, chosen: str = ""
) -> dict[str, Any]:
    return {
        "title": "Playground",
        "question": question,
        "found": found,
        "other": None,
        "other_options": "",
        "error": error,
        "chosen": chosen,
        "samples": samples(),
        "dialects": [RECOGNISE, *DIALECTS],
        "encodings": ENCODINGS,
    }
