"""Read sections that the task has renamed or flattened (its Message Format; §1, variant V3).

Whatever the names in the task, the result is a body with the fields `data`, `beforeData` and `headers`.
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
"""The names that headers can have (§1, §4)."""

_ADDED = ("externalSchemaId", "schema", "table")
"""Headers that exist only if a user added them to the task."""

SEPARATOR = "_"
"""Separates a flattened section's name from the field name: `headers_operation`."""


class MessageFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """Section names as in the dialog "Message Format". A name that ends in `/` means that the section is an object with
    that name. Without the slash, the section is flattened: the name and `_` precede its fields. With an empty name, the
    section is flattened without a prefix.
    """

    data: str = "data/"
    before_data: str = "beforeData/"
    headers: str = "headers/"
    header_names: dict[str, str] = field(default_factory=dict)
    """Each header's name in the task."""


class Splitter:
    """Converts a message's sections to the default form.

    Raises:
        ConfigError: two sections share a name, or the fields of one section could belong to another.
    """

    def __init__(self, given: MessageFormat) -> None:
        sections = {DATA: given.data, BEFORE: given.before_data, HEADERS: given.headers}
        self._objects = {section: name[:-1] for section, name in sections.items() if name.endswith("/")}
        self._prefixes = {
            section: name + SEPARATOR if name else "" for section, name in sections.items() if not name.endswith("/")
        }
        header_of = {given.header_names.get(name, name): name for name in HEADER_NAMES}
        _check(given, self._objects, self._prefixes, header_of)
        self.columns_beside = "" in (self._prefixes.get(DATA), self._prefixes.get(BEFORE))
        """True if a row's columns are root fields, with any name."""
        if self.columns_beside and self._prefixes.get(HEADERS) == "":
            # In that case, columns cannot be distinguished from headers, and a column can be called `table`.
            for name in _ADDED:
                if name not in given.header_names:
                    del header_of[name]
        self._header_of = header_of
        self.rows = frozenset(self._objects[section] for section in (DATA, BEFORE) if section in self._objects)
        """Fields that contain rows."""
        self._flat_data = DATA in self._prefixes

    def section_of(self, name: str) -> str | None:
        """Return the section to which `split` moves a field with that name, or None if the field stays outside."""
        for section, own in self._objects.items():
            if name == own:
                return section
        for section, prefix in self._prefixes.items():
            if prefix and name.startswith(prefix) and name != prefix:
                return section
        if self._prefixes.get(HEADERS) == "" and name in self._header_of:
            return HEADERS
        return next((section for section in (DATA, BEFORE) if self._prefixes.get(section) == ""), None)

    def split(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields in the default form. Fields that belong to no section remain outside of the sections."""
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
                (
                    f"member {quote(stray)} does not belong to any section; declare the sections in the option "
                    "message_format"
                ),
            )
        if BEFORE in self._prefixes and not any(value is not None for value in made[BEFORE].values()):
            made[BEFORE] = None  # without a section object, null is written column by column
        headers = made.get(HEADERS)
        if isinstance(headers, dict):
            # A renamed header is not the same as another header that now has its name.
            named = {self._header_of[name]: value for name, value in headers.items() if name in self._header_of}
            made[HEADERS] = {**headers, **named}
        return {**rest, **made}


def _check(
    given: MessageFormat, objects: Mapping[str, str], prefixes: Mapping[str, str], header_of: Mapping[str, str]
) -> None:
    for name in given.header_names:
        if name not in HEADER_NAMES:
            raise ConfigError(f"qlik: message_format: {unknown('header', name, HEADER_NAMES)}")
    if len(header_of) < len(HEADER_NAMES):
        raise ConfigError("qlik: message_format: header_names gives two headers the same name")
    if "" in objects.values() or len(set(objects.values())) < len(objects):
        raise ConfigError("qlik: message_format: each section that is an object needs a unique name")
    if prefixes.get(DATA) == prefixes.get(BEFORE) == "":
        raise ConfigError("qlik: message_format: data and before_data cannot both be flattened without a name")
    named = [prefix for prefix in prefixes.values() if prefix]
    for prefix in named:
        others = [other for other in (*named, *objects.values()) if other.startswith(prefix)]
        if len(others) > 1:
            raise ConfigError(
                f"qlik: message_format: members of {prefix!r} cannot be distinguished from members of {others[-1]!r}"
            )


@lru_cache(maxsize=16)
def detected(headers: str, data: str, before_data: str) -> Splitter:
    """Return the splitter for a known form."""
    return Splitter(MessageFormat(headers=headers, data=data, before_data=before_data))


def detect(members: Mapping[str, Any]) -> Splitter | None:
    """Return the splitter for flattened fields if their form is unambiguous. Return None for any other form, and for
    Replicate's own form.

    In the known forms, each section is either an object or has its name as a prefix (`headers_operation`). A further
    form has `operation` next to rows that are objects. mongo-kafka looks for all of them. If rows are flattened without
    a prefix, columns cannot be told apart from headers.
    """
    if HEADERS in members and DATA in members and len(members) == 2 + (BEFORE in members):
        return None  # nearly every message
    before_data = _form(BEFORE, members)
    if HEADERS in members:
        data = _form(DATA, members)
        return None if data[-1] == before_data[-1] == "/" else detected("headers/", data, before_data)
    if f"{HEADERS}{SEPARATOR}operation" in members:
        return detected(HEADERS, "data/" if DATA in members else DATA, before_data)
    if "operation" in members and (DATA in members or BEFORE in members):
        return detected("", "data/", before_data)
    return None


def _form(section: str, members: Mapping[str, Any]) -> str:
    """Return the form in which a section is written. It is flattened if its fields are there but the section itself is
    not.
    """
    prefix = section + SEPARATOR
    return section if section not in members and any(name.startswith(prefix) for name in members) else f"{section}/"
