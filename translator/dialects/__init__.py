"""The four input formats. To add another format, write a module, add a line to each of these dictionaries, and add test
cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, runtime_checkable

from msgspec.structs import replace

from translator.dialects._masked_json import masked_json, masked_key
from translator.dialects._masked_values import MaskedValues as MaskedValues
from translator.dialects.canal import Canal
from translator.dialects.canal.masked_copy import part_of as part_of_canal
from translator.dialects.canal.options import check_declared as check_declared_canal
from translator.dialects.canal.recognise import propose as propose_canal
from translator.dialects.dts_avro import DtsAvro
from translator.dialects.dts_avro.masked_copy import masked_copy as masked_dts_avro
from translator.dialects.dts_avro.recognise import propose as propose_dts_avro
from translator.dialects.qlik import Qlik
from translator.dialects.qlik.recognise import propose as propose_qlik
from translator.dialects.shareplex import SharePlex
from translator.dialects.shareplex.masked_copy import part_of as part_of_shareplex
from translator.dialects.shareplex.recognise import propose as propose_shareplex
from translator.errors import ConfigError, unknown
from translator.message import Dialect, Message, Setup
from translator.proposals import Recogniser

DIALECTS: Mapping[str, Callable[[Setup, Mapping[str, Any]], Dialect]] = {
    "qlik": Qlik,
    "dts_avro": DtsAvro,
    "shareplex": SharePlex,
    "canal": Canal,
}

RECOGNISERS: Mapping[str, Recogniser] = {
    "qlik": Recogniser(({},), propose_qlik),
    "dts_avro": Recogniser(({},), propose_dts_avro),
    "shareplex": Recogniser(({"preset": "lenient"},), propose_shareplex),
    "canal": Recogniser(
        ({"profile": "auto"}, {"profile": "auto", "object_rows": True}, {"profile": "auto", "newline_batches": True}),
        propose_canal,
    ),
}


MASKED_VALUES: Mapping[str, Callable[[bytes, MaskedValues], bytes]] = {
    "dts_avro": masked_dts_avro,
    "shareplex": partial(masked_json, part_of=part_of_shareplex),
    "canal": partial(masked_json, part_of=part_of_canal),
}
"""The function that replaces the row values in a non-empty message value, for each dialect.

It raises Unmaskable if it cannot find them.
"""


@runtime_checkable
class MasksItself(Protocol):
    """A dialect that needs its options and learned metadata to distinguish values from other text."""

    def masked_copy(self, message: Message, masked: MaskedValues) -> Message: ...


def masked_copy(dialect: Dialect, message: Message, masked: MaskedValues) -> Message:
    """Return a copy of a record with different row values. Headers are left out, because no dialect reads any.

    Raises:
        Unmaskable: the record's values cannot be distinguished from other text.
    """
    if isinstance(dialect, MasksItself):
        return dialect.masked_copy(message, masked)
    value = message.value and MASKED_VALUES[dialect.name](message.value, masked)
    return replace(message, key=masked_key(message.key, masked), value=value, headers=())


_CHECK_DECLARED: Mapping[str, Callable[[Mapping[str, Any]], None]] = {"canal": check_declared_canal}


def check_declared(name: str, options: Mapping[str, Any]) -> None:
    """Reject a configured source that leaves out facts that only its operator can know.

    Raises:
        ConfigError: an option has no default that is safe for a service.
    """
    if name in _CHECK_DECLARED:
        _CHECK_DECLARED[name](options)


def build(name: str, setup: Setup, options: Mapping[str, Any]) -> Dialect:
    """Return the dialect with this name and these options.

    Raises:
        ConfigError: the dialect does not exist, or does not know an option.
    """
    if name not in DIALECTS:
        raise ConfigError(unknown("dialect", name, DIALECTS))
    return DIALECTS[name](setup, options)
