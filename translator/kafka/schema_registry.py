"""The schema registry: which id our own schema has there, asked once, at start; which schema a writer's id names."""

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

# What fits the header of a record.
_IDS = range(1, 1 << 31)

# The statuses that a later call may get past; all others stay until somebody changes something.
_PASSING = frozenset({408, 429, *range(500, 600)})

_UNKNOWN_SUBJECT_VERSION_OR_SCHEMA = frozenset({40401, 40402, 40403})

# The statuses that are about the schema, not about us.
_OF_SCHEMA = frozenset({409, 422})

# What to do, by status.
_REMEDIES: Mapping[int, str] = {
    401: "check registry.username and registry.password",
    403: "the user may not do this: give it the right, or set registry.auto_register: false and register another way",
    404: "check registry.url: it is the root of an API like Confluent's, such as https://host/apis/ccompat/v7",
    409: "a version of this subject is not compatible with this schema: is the topic used for something else? "
    "A subject with another history must be deleted, or the output topic renamed",
    422: "this registry does not accept the Avro schema",
}

_NOT_REGISTERED = "register the schema (docs/operate/outputs.md), or set registry.auto_register: true"


def value_subject(topic: str) -> str:
    """The subject of a topic's values (Confluent's TopicNameStrategy)."""
    return f"{topic}-value"


class SchemaRegistry:
    """A registry with Confluent's API. Nothing is kept open between two questions: they are few, and far apart."""

    def __init__(self, settings: Registry) -> None:
        self._register = settings.auto_register
        self._config = _client_config(settings)

    def schema_id(self, subject: str, schema_text: str) -> int:
        """The id of exactly this Avro schema under the subject; registered first, if settings say so.

        Raises:
            RetryableError: the registry does not answer, or not now.
            ConfigError: it refuses, or the settings lead to no registry.
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
        """The text of the Avro schema with that id; None when the registry knows none.

        Raises:
            MessageError: it is no schema that stands for itself, or longer than `limit` bytes.
            RetryableError: the registry does not answer, or not now.
            ConfigError: it refuses, or the settings lead to no registry.
        """
        try:
            schema = self._asked(lambda client: client.get_schema(schema_id), f"schema {schema_id}")
        except _UnknownSchema:
            return None
        return _alone(schema, schema_id, limit)

    def _asked(self, question: Callable[[SchemaRegistryClient], Answer], about: str) -> Answer:
        """An answer of the registry, its refusals by class."""
        try:
            with SchemaRegistryClient(self._config) as client:
                return question(client)
        except SchemaRegistryError as error:
            raise _refused(about, error) from None
        except httpx2.RequestError as error:
            raise RetryableError(str(error) or type(error).__name__) from None
        except httpx2.InvalidURL as error:
            raise ConfigError(f"registry.url: {error}") from None
        except OSError as error:  # also of a file that holds no certificate
            raise ConfigError(f"registry.ssl_*_file cannot be used: {error.strerror or error}") from None
        except (AttributeError, TypeError, ValueError):
            # The client takes whatever has the status 200 for a registry's answer.
            raise _no_registry() from None

    def wait_for_id(self, subject: str, schema_text: str, seconds: float, say: Callable[[str], None]) -> int:
        """`schema_id`, asked again for that long while the registry does not answer."""
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
        "timeout": _TIMEOUT,  # the client's own default is to wait for ever
        "max.retries": 0,  # we wait and say so; the client would be silent
        **{name: None if path is None else str(path) for name, path in files.items()},
    }
    return {name: value for name, value in config.items() if value is not None}


class SchemaRefused(ConfigError):
    """The registry does not take this schema, or does not have it; others it may."""


class _UnknownSchema(SchemaRefused):
    """The registry has no such schema."""


def _alone(schema: Schema, schema_id: int, limit: int) -> str:
    """The text of an Avro schema that stands for itself; schemas of the registry that refer to others are not read."""
    kind, text = schema.schema_type or "AVRO", schema.schema_str
    if kind != "AVRO" or not isinstance(text, str):
        reason = f"schema {schema_id} of the registry is of type {quote(kind)}; allowed: AVRO"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
    if schema.references:
        names = ", ".join(quote(reference.name, 100) for reference in schema.references[:5])
        reason = f"schema {schema_id} of the registry refers to others ({names}), which this release does not follow"
        raise MessageError(ErrorCode.UNSUPPORTED_SHAPE, reason)
    size = len(text.encode())
    if size > limit:
        reason = f"schema {schema_id} of the registry has {size} bytes; {limit} are allowed (limits.schema_text_bytes)"
        raise MessageError(ErrorCode.LIMIT_EXCEEDED, reason)
    return text


def _refused(about: str, error: SchemaRegistryError) -> RetryableError | ConfigError:
    status = error.http_status_code
    answer = f"status {status} for {about}: {quote(error.error_message, 300)}"
    if status in _PASSING:
        return RetryableError(answer)
    answer = f"the schema registry refused: {answer}"
    if error.error_code in _UNKNOWN_SUBJECT_VERSION_OR_SCHEMA:
        return _UnknownSchema(f"{answer}; {_NOT_REGISTERED}")
    refusal = SchemaRefused if status in _OF_SCHEMA else ConfigError
    return refusal(f"{answer}; {_REMEDIES.get(status, 'check registry.url')}")


def _no_registry() -> ConfigError:
    return ConfigError(f"what answers at registry.url gives no schema id, so it is no registry; {_REMEDIES[404]}")
