"""The four input formats. A fifth is one module, one line in each of these dictionaries, and its cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from translator.dialects.canal import Canal
from translator.dialects.canal import recognise as canal
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.dts_avro import recognise as dts_avro
from translator.dialects.qlik import Qlik
from translator.dialects.qlik import recognise as qlik
from translator.dialects.shareplex import SharePlex
from translator.dialects.shareplex import recognise as shareplex
from translator.errors import ConfigError, unknown
from translator.message import Dialect, Setup
from translator.proposals import Recogniser

DIALECTS: Mapping[str, Callable[[Setup, Mapping[str, Any]], Dialect]] = {
    "qlik": Qlik,
    "dts_avro": DtsAvro,
    "shareplex": SharePlex,
    "canal": Canal,
}

RECOGNISERS: Mapping[str, Recogniser] = {
    "qlik": Recogniser(({},), qlik.propose),
    "dts_avro": Recogniser(({},), dts_avro.propose),
    "shareplex": Recogniser(({"preset": "lenient"},), shareplex.propose),
    "canal": Recogniser(
        ({"profile": "auto"}, {"profile": "auto", "object_rows": True}, {"profile": "auto", "newline_batches": True}),
        canal.propose,
    ),
}


def build(name: str, setup: Setup, options: Mapping[str, Any]) -> Dialect:
    """The dialect of that name with its options.

    Raises:
        ConfigError: no such dialect, or an option that it does not know.
    """
    if name not in DIALECTS:
        raise ConfigError(unknown("dialect", name, DIALECTS))
    return DIALECTS[name](setup, options)
