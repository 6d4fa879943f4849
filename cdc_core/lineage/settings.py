"""The `lineage` section: where to send OpenLineage events."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from cdc_core.kafka_settings import Section, check_header_names, checked_scheme

_FILE, _KAFKA = "file://", "kafka:"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Lineage(Section):
    """A receiver for OpenLineage events, such as Marquez or DataHub."""

    to: str = Field(
        description=(
            "Where to send lineage events. Use an http:// or https:// URL with its path, file:///PATH to append one "
            "line per event to a file, or kafka:TOPIC for a topic on the brokers in `kafka`."
        ),
    )
    headers: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Headers to send with each HTTP request, such as a token. Each value is treated as a secret.",
    )
    namespace: str = Field(default="cdc", min_length=1, description="Namespace of the jobs.")

    @field_validator("to")
    @classmethod
    def _is_supported(cls, value: str) -> str:
        if value.startswith(_FILE):
            if not value.startswith(f"{_FILE}/") or value.endswith("/"):
                raise ValueError("to must name a file with its whole path, as in file:///var/log/lineage.jsonl")
        elif value.startswith(_KAFKA):
            if _TOPIC.fullmatch(value.removeprefix(_KAFKA)) is None:
                raise ValueError("to: expected the name of a topic after kafka:")
        elif urlsplit(value).scheme in ("http", "https"):
            checked_scheme(value, "to", "headers")
        else:
            raise ValueError("to must begin with http://, https://, file:/// or kafka:")
        return value

    @field_validator("headers")
    @classmethod
    def _have_names(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        check_header_names(value)
        return value

    @model_validator(mode="after")
    def _headers_have_a_use(self) -> Lineage:
        if self.headers and (self.path is not None or self.topic is not None):
            raise ValueError("headers is set, but `to` is not an http:// or https:// URL")
        return self

    @property
    def path(self) -> str | None:
        """The file to append to, or None."""
        return unquote(self.to.removeprefix(_FILE)) if self.to.startswith(_FILE) else None

    @property
    def topic(self) -> str | None:
        """The topic to write to, or None."""
        return self.to.removeprefix(_KAFKA) if self.to.startswith(_KAFKA) else None
