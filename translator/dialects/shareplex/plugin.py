"""The dialect's plug-in description, the target of its entry point."""

from __future__ import annotations

from functools import partial

from translator.dialects._masked_json import masked_json
from translator.dialects._plugin import DialectPlugin
from translator.dialects.shareplex.decode import SharePlex
from translator.dialects.shareplex.masked_copy import part_of
from translator.dialects.shareplex.options import Options
from translator.dialects.shareplex.recognise import propose
from translator.proposals import Recognizer

PLUGIN = DialectPlugin(
    name="shareplex",
    api=1,
    build=SharePlex,
    options=Options,
    recognizer=Recognizer(({"preset": "lenient"},), propose),
    masked_value=partial(masked_json, part_of=part_of),
)
