"""The four input formats. A fifth is one module, one line in this dictionary, and its cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from translator.dialects.canal import Canal
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.qlik import Qlik
from translator.dialects.shareplex import SharePlex
from translator.errors import ConfigError, unknown
from translator.message import Dialect, Setup

DIALECTS: Mapping[str, Callable[[Setup, Mapping[str, Any]], Dialect]] = {
    "qlik": Qlik,
    "dts_avro": DtsAvro,
    "shareplex": SharePlex,
    "canal": Canal,
}


def build(name: str, setup: Setup, options: Mapping[str, Any]) -> Dialect:
    """The dialect of that name with its options.

    Raises:
        ConfigError: no such dialect, or an option that it does not know.
    """
    if name not in DIALECTS:
        raise ConfigError(unknown("dialect", name, DIALECTS))
    return DIALECTS[name](setup, options)
