"""The layout of a message (§1), and the parts that all layouts share."""

from __future__ import annotations

from msgspec import Struct

from translator.dialects._json import ONE_A_RECORD, JsonObject, check_distinct, field, one_of, parse_object
from translator.dialects._source_text import SentJson
from translator.dialects.qlik.sections import BEFORE, HEADERS, Splitter, detect
from translator.dialects.qlik.sections import DATA as ROW
from translator.errors import ErrorCode, MessageError, quote
from translator.message import Limits

MAGIC = "atMSG"
DATA, METADATA = "DT", "MD"
_TYPES = {DATA: DATA, METADATA: METADATA}

MAX_SCHEMA_ID_CHARS = 128
"""Maximum length of a messageSchemaId. A valid id has 32 hex digits and is used as a Kafka key, so longer ids are
rejected.
"""


class Frame(Struct, frozen=True):
    """A message in any layout. `body` contains data, beforeData and headers. `path` is the position of `body`.

    `sent` is the text of a JSON message.
    """

    variant: str
    type: str
    schema_id: str | None
    body: JsonObject
    path: str
    basis: str = "certain"
    sent: SentJson | None = None


# -- by first bytes (§3a, detection)

JSON, ENVELOPED_AVRO, CONFLUENT_AVRO = "json", "enveloped_avro", "confluent_avro"

_MAGIC_BYTES = MAGIC.encode("ascii")
_JSON_BLANKS = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


def framing(value: bytes) -> str:
    """Return the framing indicated by the first bytes of a non-empty value.

    Raises:
        MessageError: FRAMING.
    """
    if value.startswith(b"{"):
        return JSON
    if value.startswith(_MAGIC_BYTES):
        return ENVELOPED_AVRO
    if value.startswith(b"\x00"):
        return CONFLUENT_AVRO
    if value.removeprefix(_BOM).lstrip(_JSON_BLANKS).startswith(b"{"):
        return JSON
    reason = f"unknown framing: the first byte is {value[0]:02x}; expected 7b (JSON object), 61 (atMSG) or 00 (Avro)"
    if value.removeprefix(_BOM).lstrip(_JSON_BLANKS).startswith(b"["):
        reason += f". Is it an array of messages? {ONE_A_RECORD}"
    raise MessageError(ErrorCode.FRAMING, reason)


# -- JSON, by its fields

_ROWS = frozenset({"$.data", "$.beforeData", "$.message.data", "$.message.beforeData"})


def open_json(value: bytes, limits: Limits, splitter: Splitter | None) -> Frame:
    """Return the frame for a JSON value. `splitter` is set if the operator declared how the sections are written.

    Raises:
        MessageError: FRAMING for an unknown layout, UNSUPPORTED_SHAPE for a layout that is not supported.
    """
    rows = _ROWS
    if splitter is not None:
        rows = frozenset(f"{parent}.{name}" for parent in ("$", "$.message") for name in splitter.rows)
    root = parse_object(value, limits, rows)
    check_distinct(value, root, members=_members(root))
    if "magic" in root and not _is_column(root.get("message"), splitter):
        return _enveloped(root, splitter, SentJson(value, (root,)))
    return _bare(root, splitter, SentJson(value, (root,)))


def _is_column(member: object, splitter: Splitter | None) -> bool:
    """Return whether a root field can be a cell. If columns are root fields, they can have any name."""
    return splitter is not None and splitter.columns_beside and not isinstance(member, dict)


def _members(root: JsonObject) -> int:
    """Return the minimum number of fields in the objects of a data message. The objects may have more fields."""
    body = root.get("message", root)
    if type(body) is not dict:
        return -1
    sections = [section for section in (body.get(ROW), body.get(BEFORE), body.get(HEADERS)) if type(section) is dict]
    return sum(map(len, sections), len(body) if body is root else len(root) + len(body))


def _enveloped(root: JsonObject, splitter: Splitter | None, sent: SentJson) -> Frame:
    magic = field(root, "magic", str, "$")
    if magic != MAGIC:
        raise MessageError(ErrorCode.INVALID_FIELD, f"unknown magic {quote(magic)}; expected {MAGIC}", path="$.magic")
    kind = read_type(field(root, "type", str, "$"))
    body: JsonObject = field(root, "message", dict, "$")
    schema_id = read_schema_id(root, "messageSchemaId", "$")
    found = None if kind == METADATA else splitter or detect(body)
    if found is None:
        return Frame("enveloped_json", kind, schema_id, body, "$.message", sent=sent)
    return _custom(kind, schema_id, body, "$.message", found, sent, declared=splitter is not None)


def read_type(text: str) -> str:
    """Return DATA or METADATA.

    Raises:
        MessageError: UNKNOWN_TYPE.
    """
    kind: str = one_of(text, _TYPES, "message type", "$.type", ErrorCode.UNKNOWN_TYPE)
    return kind


def _custom(
    kind: str,
    schema_id: str | None,
    body: JsonObject,
    path: str,
    splitter: Splitter,
    sent: SentJson,
    *,
    declared: bool,
) -> Frame:
    basis = "declared" if declared else "inferred"
    return Frame("custom_json", kind, schema_id, splitter.split(body), path, basis, sent)


def _bare(root: JsonObject, splitter: Splitter | None, sent: SentJson) -> Frame:
    """Read an object without magic bytes, because the envelope is optional (§1)."""
    sectioned = HEADERS in root and (ROW in root or BEFORE in root)
    found = splitter or detect(root)
    if sectioned and found is None:
        return Frame("bare_json", DATA, None, root, "$", sent=sent)
    if "lineage" in root and "tableStructure" in root and not _is_column(root["lineage"], splitter):
        return Frame("bare_json", METADATA, None, root, "$", sent=sent)
    if "op" in root and isinstance(root.get(ROW), list):
        raise MessageError(
            ErrorCode.UNSUPPORTED_SHAPE, "the legacy flat JSON format from 2016 is not supported in this release"
        )
    record = root.get("message")
    body, path = (root, "$") if sectioned or not isinstance(record, dict) else (record, "$.message")
    if body is record:
        found = splitter or detect(body)
    if found is not None:
        schema_id = None
        if body is not root or not _is_column(root.get("messageSchemaId"), splitter):
            schema_id = read_schema_id(root, "messageSchemaId", "$")
        return _custom(DATA, schema_id, body, path, found, sent, declared=bool(splitter))
    if path != "$" and HEADERS in body:
        return Frame("custom_json", DATA, read_schema_id(root, "messageSchemaId", "$"), body, path, "inferred", sent)
    raise MessageError(
        ErrorCode.FRAMING,
        "the JSON object has an unknown layout; expected magic, or headers with data or beforeData. If the sections "
        "have other names, declare them in the option message_format",
    )


def read_schema_id(parent: JsonObject, name: str, path: str) -> str | None:
    """Return a schema id, or None if it is missing, null or empty because the task publishes no metadata."""
    schema_id: str | None = field(parent, name, str, path, optional=True)
    if schema_id and len(schema_id) > MAX_SCHEMA_ID_CHARS:
        raise MessageError(
            ErrorCode.INVALID_FIELD,
            f"{name} has {len(schema_id)} characters, but only {MAX_SCHEMA_ID_CHARS} are allowed",
            path=f"{path}.{name}",
        )
    check_schema_id(schema_id, f"{path}.{name}")
    return schema_id or None


REGISTRY = "registry/"
"""Key prefix for learned registry schemas. A messageSchemaId never begins with it."""


def check_schema_id(schema_id: str | None, path: str) -> None:
    """Reject an id that collides with the keys for registry schemas.

    Raises:
        MessageError: INVALID_FIELD.
    """
    if schema_id and schema_id.startswith(REGISTRY):
        raise MessageError(ErrorCode.INVALID_FIELD, f"{quote(schema_id)} is not a schema id", path=path)
