"""The dialect's plug-in description, the target of its entry point."""

from __future__ import annotations

from translator.dialects._plugin import DialectPlugin
from translator.dialects.qlik.decode import Options, Qlik
from translator.dialects.qlik.recognise import propose
from translator.proposals import Recognizer

PLUGIN = DialectPlugin(
    name="qlik",
    api=1,
    build=Qlik,
    options=Options,
    recognizer=Recognizer(({},), propose),
)
