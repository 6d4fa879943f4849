"""Both programs' `metrics.otlp` section: where to push metrics."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field, SecretStr, field_validator

from cdc_core.kafka_settings import Section, check_header_names, checked_scheme


class Otlp(Section):
    """A receiver for OpenTelemetry's protocol over HTTP, such as a collector."""

    endpoint: str = Field(description="Full URL of the receiver, such as http://collector:4318/v1/metrics.")
    headers: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Headers to send with each request, such as a token. Each value is treated as a secret.",
    )
    interval: float = Field(default=60, ge=1, le=3600, description="Seconds between reports.")

    @field_validator("endpoint")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        checked_scheme(value, "endpoint", "headers")
        return value

    @field_validator("headers")
    @classmethod
    def _have_names(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        check_header_names(value)
        return value


class Warn(Protocol):
    """Writes a log line."""

    def __call__(self, event: str, /, **fields: object) -> object: ...
