"""The dialect's plug-in description, the target of its entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from translator.dialects._masked_json import masked_json
from translator.dialects._plugin import DialectPlugin
from translator.dialects.canal.decode import Canal
from translator.dialects.canal.masked_copy import part_of
from translator.dialects.canal.options import Options
from translator.dialects.canal.recognise import propose
from translator.proposals import Recognizer

_ATTEMPTS: Sequence[Mapping[str, str | bool]] = (
    {"profile": "auto"},
    {"profile": "auto", "object_rows": True},
    {"profile": "auto", "newline_batches": True},
)

PLUGIN = DialectPlugin(
    name="canal",
    api=1,
    build=Canal,
    options=Options,
    recognizer=Recognizer(_ATTEMPTS, propose),
    masked_value=partial(masked_json, part_of=part_of),
)
