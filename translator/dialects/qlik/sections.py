"""Renamed and flattened sections (Message Format of the task; formats/qlik.md section 1, variant V3).

Whatever the task calls its sections, what comes out is a body with the members `data`, `beforeData` and `headers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from translator.errors import ConfigError, ErrorCode, MessageError, quote, unknown

DATA, BEFORE, HEADERS = "data", "beforeData", "headers"

HEADER_NAMES = (
    "operation",
    "changeSequence",
    "timestamp",
    "streamPosition",
    "transactionId",
    "changeMask",
    "columnMask",
    "transactionEventCounter",
    "transactionLastEvent",
    "externalSchemaId",
    "schema",
    "table",
)
"""What may stand in the headers (sections 1 and 4)."""

SEPARATOR = "_"
"""Between the name of a flattened section and that of its member: `headers_operation`."""


class MessageFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """The names of the sections as in the dialog "Message Format": one that ends in `/` is an object of that name,
    one without is flattened, and its name and `_` stand before its members; an empty one is flattened without either.
    """

    data: str = "data/"
    before_data: str = "beforeData/"
    headers: str = "headers/"
    header_names: dict[str, str] = field(default_factory=dict)
    """Header -> the name that the task gives it."""


class Splitter:
    """Brings the sections of a message in their default form.

    Raises:
        ConfigError: two sections share a name, or the members of one could be those of another.
    """

    def __init__(self, given: MessageFormat) -> None:
        sections = {DATA: given.data, BEFORE: given.before_data, HEADERS: given.headers}
        self._objects = {section: name[:-1] for section, name in sections.items() if name.endswith("/")}
        self._prefixes = {
            section: name + SEPARATOR if name else "" for section, name in sections.items() if not name.endswith("/")
        }
        self._header_of = {given.header_names.get(name, name): name for name in HEADER_NAMES}
        self.rows = frozenset(self._objects[section] for section in (DATA, BEFORE) if section in self._objects)
        """Members that hold rows."""
        self._flat_data = DATA in self._prefixes
        _check(given, self._objects, self._prefixes, self._header_of)

    def split(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """The members in the default form; those of no section stay beside the sections."""
        rest = dict(members)
        made: dict[str, Any] = {}
        for section, name in self._objects.items():
            if name in rest:
                made[section] = rest.pop(name)
        for section, prefix in self._prefixes.items():
            if prefix:
                names = [name for name in rest if name.startswith(prefix) and name != prefix]
                made[section] = {name[len(prefix) :]: rest.pop(name) for name in names}
        if self._prefixes.get(HEADERS) == "":
            made[HEADERS] = {name: rest.pop(name) for name in self._header_of if name in rest}
        for section in (DATA, BEFORE):
            if self._prefixes.get(section) == "":
                made[section], rest = rest, {}
        if self._flat_data and rest.keys() - {"schema", "table"}:
            stray = next(name for name in rest if name not in ("schema", "table"))
            raise MessageError(
                ErrorCode.UNSUPPORTED_SHAPE,
                f"member {quote(stray)} belongs to no section; name the sections by the option message_format",
            )
        if BEFORE in self._prefixes and not any(value is not None for value in made[BEFORE].values()):
            made[BEFORE] = None  # where a section has no object of its own, null is spelled column by column
        headers = made.get(HEADERS)
        if isinstance(headers, dict):
            made[HEADERS] = {self._header_of.get(name, name): value for name, value in headers.items()}
        return {**rest, **made}


def _check(
    given: MessageFormat, objects: Mapping[str, str], prefixes: Mapping[str, str], header_of: Mapping[str, str]
) -> None:
    for name in given.header_names:
        if name not in HEADER_NAMES:
            raise ConfigError(f"qlik: message_format: {unknown('header', name, HEADER_NAMES)}")
    if len(header_of) < len(HEADER_NAMES):
        raise ConfigError("qlik: message_format: header_names gives two headers one name")
    if "" in objects.values() or len(set(objects.values())) < len(objects):
        raise ConfigError("qlik: message_format: a section that is an object needs a name of its own")
    if prefixes.get(DATA) == prefixes.get(BEFORE) == "":
        raise ConfigError("qlik: message_format: data and before_data cannot both be flattened without a name")
    named = [prefix for prefix in prefixes.values() if prefix]
    for prefix in named:
        others = [other for other in (*named, *objects.values()) if other.startswith(prefix)]
        if len(others) > 1:
            raise ConfigError(f"qlik: message_format: members of {prefix!r} could be those of {others[-1]!r}")


@lru_cache(maxsize=16)
def detected(headers_prefixed: bool, data_is_there: bool, before_is_there: bool) -> Splitter:
    """The splitter of a message whose headers are flattened, in one of the two forms that are known."""
    if not headers_prefixed:
        return Splitter(MessageFormat(headers=""))
    return Splitter(
        MessageFormat(
            data="data/" if data_is_there else "data",
            before_data="beforeData/" if before_is_there or data_is_there else "beforeData",
            headers="headers",
        )
    )


def detect(members: Mapping[str, Any]) -> Splitter | None:
    """The splitter for members of flattened headers, where their form leaves no doubt; None for any other form.

    Known are `headers_operation`, with rows as objects or flattened in the same way, and `operation` beside rows that
    are objects (mongo-kafka looks for both). With rows flattened without a prefix nothing tells columns from headers.
    """
    if HEADERS in members:
        return None
    if f"{HEADERS}{SEPARATOR}operation" in members:
        return detected(True, DATA in members, BEFORE in members)
    if "operation" in members and (DATA in members or BEFORE in members):
        return detected(False, True, True)
    return None
