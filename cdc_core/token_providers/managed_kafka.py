"""Get tokens for Google Cloud's Managed Service for Apache Kafka. Google's library requests the access tokens."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC
from typing import Any

import google.auth
from google.auth.transport.requests import Request

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class ManagedKafka:
    """Requests tokens with the credentials that Google's default search finds: the file in
    GOOGLE_APPLICATION_CREDENTIALS, workload identity, or the metadata server.

    Args:
        principal: email address of the service account, for credentials that do not contain one.
    """

    def __init__(self, *, principal: str | None = None) -> None:
        self._principal = principal

    def __call__(self) -> tuple[str, float]:
        credentials: Any = google.auth.default(scopes=_SCOPES)[0]
        credentials.refresh(Request())
        expires = credentials.expiry.replace(tzinfo=UTC).timestamp()
        principal = self._principal or getattr(credentials, "service_account_email", None)
        if principal is None:
            raise LookupError("the credentials do not name the principal; set it in oauth_provider_options")
        # The broker takes the access token from the third part, and the principal from the second.
        header = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
        claims = {"exp": expires, "iss": "Google", "iat": time.time(), "scope": "kafka", "sub": principal}
        parts = (json.dumps(header), json.dumps(claims), credentials.token)
        return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts), expires
