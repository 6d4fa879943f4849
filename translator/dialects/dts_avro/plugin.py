"""The dialect's plug-in description, the target of its entry point."""

from __future__ import annotations

from translator.dialects._plugin import DialectPlugin
from translator.dialects.dts_avro.decode import DtsAvro
from translator.dialects.dts_avro.masked_copy import masked_copy
from translator.dialects.dts_avro.options import Options
from translator.dialects.dts_avro.recognise import propose
from translator.proposals import Recognizer

PLUGIN = DialectPlugin(
    name="dts_avro",
    api=1,
    build=DtsAvro,
    options=Options,
    recognizer=Recognizer(({},), propose),
    masked_value=masked_copy,
)
