"""Tokens for Azure and Google Cloud. Their libraries request tokens from an endpoint on this machine; no test reaches a
cloud.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jwt
from joserfc.jwk import RSAKey

from cdc_core.errors import ConfigError
from cdc_core.kafka_tokens import TokenError, Tokens

HOUR = 3600


class Endpoint:
    """An endpoint that gives one access token to everyone, in both clouds' formats, and records the requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], dict[str, list[str]]]] = []
        self.fails = False
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                endpoint.answer(self, {})

            def do_POST(self) -> None:
                endpoint.answer(self, parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler, form: dict[str, list[str]]) -> None:
        self.requests.append((request.path, dict(request.headers), form))
        until = str(int(time.time()) + HOUR)
        told = {"access_token": "correct-horse", "expires_in": HOUR, "expires_on": until, "token_type": "Bearer"}
        body = json.dumps({"error": "access_denied"} if self.fails else told).encode()
        request.send_response(403 if self.fails else 200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture
def managed_identity(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's managed identity, as App Service and Container Apps offer it."""
    for name in ("AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
    monkeypatch.setenv("IDENTITY_ENDPOINT", endpoint.url)
    monkeypatch.setenv("IDENTITY_HEADER", "proof")


@pytest.mark.usefixtures("managed_identity")
def test_event_hubs(endpoint: Endpoint) -> None:
    """The token is for the namespace."""
    token, expires = Tokens("event-hubs", {"namespace": "orders"})()
    assert "correct-horse" == token
    assert abs(expires - time.time() - HOUR) < 300
    [(path, headers, _)] = endpoint.requests
    assert ["https://orders.servicebus.windows.net"] == parse_qs(urlsplit(path).query)["resource"]
    assert "proof" == headers["X-IDENTITY-HEADER"]


@pytest.mark.usefixtures("managed_identity")
def test_a_national_cloud(endpoint: Endpoint) -> None:
    """National clouds have their own domains."""
    Tokens("event-hubs", {"namespace": "orders", "domain": "servicebus.chinacloudapi.cn"})()
    assert ["https://orders.servicebus.chinacloudapi.cn"] == parse_qs(urlsplit(endpoint.requests[0][0]).query)[
        "resource"
    ]


@pytest.mark.usefixtures("managed_identity")
def test_azure_refuses(endpoint: Endpoint) -> None:
    endpoint.fails = True
    with pytest.raises(TokenError, match=r"^token provider event-hubs failed: "):
        Tokens("event-hubs", {"namespace": "orders"})()


@pytest.fixture
def service_account(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rsa.RSAPrivateKey:
    """A file with a service account, whose key is returned."""
    key = rsa.generate_private_key(65537, 2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "client_email": "cdc@orders.iam.gserviceaccount.com",
        "private_key": text.decode(),
        "private_key_id": "1",
        "project_id": "orders",
        "token_uri": endpoint.url,
    }
    file = tmp_path / "account.json"
    file.write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    return key


def _part(text: str) -> bytes:
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_managed_kafka(endpoint: Endpoint, service_account: rsa.RSAPrivateKey) -> None:
    """The account signs the request, and the token has Google's three parts."""
    before = time.time()
    token, expires = Tokens("managed-kafka", {})()
    header, claims, access = map(_part, token.split("."))
    assert {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"} == json.loads(header)
    found = json.loads(claims)
    assert before <= found.pop("iat") <= time.time()
    assert {"exp": expires, "iss": "Google", "scope": "kafka", "sub": "cdc@orders.iam.gserviceaccount.com"} == found
    assert b"correct-horse" == access
    assert abs(expires - time.time() - HOUR) < 300
    [(_, _, form)] = endpoint.requests
    public = service_account.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    asked = jwt.decode(form["assertion"][0], RSAKey.import_key(public.decode())).claims
    assert "https://www.googleapis.com/auth/cloud-platform" == asked["scope"]


@pytest.mark.usefixtures("service_account")
def test_another_principal() -> None:
    token, _ = Tokens("managed-kafka", {"principal": "other@orders.iam.gserviceaccount.com"})()
    assert "other@orders.iam.gserviceaccount.com" == json.loads(_part(token.split(".")[1]))["sub"]


def test_google_refuses(endpoint: Endpoint, service_account: rsa.RSAPrivateKey) -> None:
    del service_account
    endpoint.fails = True
    with pytest.raises(TokenError, match=r"^token provider managed-kafka failed: RefreshError: "):
        Tokens("managed-kafka", {})()


def test_a_missing_namespace() -> None:
    with pytest.raises(ConfigError, match="missing 1 required keyword-only argument: 'namespace'"):
        Tokens("event-hubs", {})
