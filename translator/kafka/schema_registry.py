"""Ask the schema registry for the id of our own schema, once at startup, and for writers' schemas by id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import httpx2
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from translator.config.settings import Registry
from translator.errors import ConfigError, ErrorCode, MessageError, RetryableError, quote
from translator.kafka.retry import retry_until

Answer = TypeVar("Answer")

_TIMEOUT = 10.0

# The range of ids that fits into a record's header.
_IDS = range(1, 1 << 31)

# Statuses that a retry can fix. All other statuses persist until somebody changes something.
_PASSING = frozenset({408, 429, *range(500, 600)})

_UNKNOWN_SUBJECT_VERSION_OR_SCHEMA = frozenset({40401, 40402, 40403})

# Statuses that concern the schema and not this client.
_OF_SCHEMA = frozenset({409, 422})

# What the operator can do, by status.
_REMEDIES: Mapping[int, str] = {
    401: "check registry.username and registry.password",
    403: "this user is not permitted: grant the permission, or register the schema another way and set "
    "registry.auto_register: false",
    404: "check registry.url: it must be the root of a Confluent-compatible API, such as https://host/apis/ccompat/v7",
    409: "a version of this subject is not compatible with this schema. Is the topic used for something else? "
    "Delete the subject and its history, or rename the output topic",
    422: "this registry does not accept the Avro schema",
}

_NOT_REGISTERED = "register the schema (docs/operate/outputs.md), or set registry.auto_register: true"


def value_subject(topic: str) -> str:
    """Return the subject for a topic's values (Confluent's TopicNameStrategy)."""
    return f"{topic}-value"


class SchemaRegistry:
    """A registry with Confluent's API. The connection is closed after each request, because requests are rare."""

    def __init__(self, settings: Registry) -> None:
        self._register = settings.auto_register
        self._config = _client_config(settings)

    def schema_id(self, subject: str, schema_text: str) -> int:
        """Return the id of exactly this Avro schema under the subject. Registers the schema first if the settings allow
        it.

        Raises:
            RetryableError: the registry does not respond, or cannot handle the request at the moment.
            ConfigError: the registry rejects the request, or the settings do not point to a registry.
        """
        schema = Schema(schema_text, "AVRO")
        found = self._asked(lambda client: self._id_of(client, subject, schema), f"subject {subject}")
        if not isinstance(found, int) or found not in _IDS:
            raise _no_registry()
        return found

    def _id_of(self, client: SchemaRegistryClient, subject: str, schema: Schema) -> object:
        if self._register:
            return client.register_schema_full_response(subject, schema).schema_id
        return client.lookup_schema(subject, schema).schema_id

    def schema_text(self, schema_id: int, *, limit: int) -> str | None:
        """Return the text of the Avro schema with this id, or None if the registry does not know the id.

        Raises:
            MessageError: the schema refers to other schemas, or is longer than `limit` bytes.
            RetryableError: the registry does not respond, or cannot handle the request now.
            ConfigError: the registry rejects the request, or the settings do not point to a registry.
        """
        try:
            schema = self._asked(lambda client: client.get_schema(schema_id), f"schema {schema_id}")
        except _UnknownSchema:
            return None
        return _alone(schema, schema_id, limit)

    def _asked(self, question: Callable[[SchemaRegistryClient], Answer], about: str) -> Answer:
        """Return the registry's response, and raise its errors by class."""
        try:
            with SchemaRegistryClient(self._config) as client:
                return question(client)
        except SchemaRegistryError as error:
            raise _refused(about, error) from None
        except httpx2.RequestError as error:
            raise RetryableError(str(error) or type(error).__name__) from None
        except httpx2.InvalidURL as error:
            raise ConfigError(f"registry.url: {error}") from None
        except OSError as error:  # also raised for a file that contains no certificate
            raise ConfigError(f"registry.ssl_*_file cannot be used: {error.strerror or error}") from None
        except (AttributeError, TypeError, ValueError):
            # The client accepts anything with status 200 as a registry response.
            raise _no_registry() from None

    def wait_for_id(self, subject: str, schema_text: str, seconds: float, say: Callable[[str], None]) -> int:
        """Call `schema_id`. As long as the registry does not respond, retry for up to `seconds`."""
        return retry_until("schema registry", lambda _: self.schema_id(subject, schema_text), seconds, say)


def _client_config(settings: Registry) -> dict[str, Any]:
    login = None
    if settings.username is not None and settings.password is not None:
        login = f"{settings.username}:{settings.password.get_secret_value()}"
    files = {
        "ssl.ca.location": settings.ssl_ca_file,
        "ssl.certificate.location": settings.ssl_certificate_file,
        "ssl.key.location": settings.ssl_key_file,
    }
    config = {
        "url": settings.url,
        "basic.auth.user.info": login,
        "timeout": _TIMEOUT,  # the client's default is to wait forever
        "max.retries": 0,  # we report each wait, but the client would wait silently
        **{name: None if path is None else str(path) for name, path in files.items()},
    }
    return {name: value for name, value in config.items() if value is not None}


class SchemaRefused(ConfigError):
    """The registry does not accept or does not have this schema. Other schemas can succeed."""


class _UnknownSchema(SchemaRefused):
    """The registry does not have the schema."""


def _alone(schema: Schema, schema_id: int, limit: int) -> str:
    """Return a self-contained Avro schema's text. The translator does not support registry schemas that refer to
    others.
    """
    kind, text = schema.schema_type or "AVRO", schema.schema_str
    if kind != "AVRO" or not isinstance(text, str):
        reason = f"schema {schema_id} of the registry has type {quote(kind)}; expected AVRO"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
    if schema.references:
        names = ", ".join(quote(reference.name, 100) for reference in schema.references[:5])
        reason = (
            f"the registry's schema {schema_id} refers to other schemas ({names}), which this release does not support"
        )
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
    size = len(text.encode())
    if size > limit:
        reason = (
            f"schema {schema_id} of the registry has {size} bytes, but only {limit} are allowed "
            "(limits.schema_text_bytes)"
        )
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)
    return text


def _refused(about: str, error: SchemaRegistryError) -> RetryableError | ConfigError:
    status = error.http_status_code
    answer = f"status {status} for {about}: {quote(error.error_message, 300)}"
    if status in _PASSING:
        return RetryableError(answer)
    answer = f"the schema registry rejected the request: {answer}"
    if error.error_code in _UNKNOWN_SUBJECT_VERSION_OR_SCHEMA:
        return _UnknownSchema(f"{answer}; {_NOT_REGISTERED}")
    refusal = SchemaRefused if status in _OF_SCHEMA else ConfigError
    return refusal(f"{answer}; {_REMEDIES.get(status, 'check registry.url')}")


def _no_registry() -> ConfigError:
    return ConfigError(
        f"the server at registry.url returned no schema id, so it is not a schema registry; {_REMEDIES[404]}"
    )
