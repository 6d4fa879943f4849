"""Run an OAuth 2 token endpoint for tests. It supports the client credentials grant, and its tokens are signed JWTs."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import RSAKey

from dev.servers.broker import LOOPBACK

AUDIENCE = "kafka"
NO_AUDIENCE = "nothing"
"""The scope for tokens with another audience."""
SHORT = "short"
"""The scope for tokens that live only `SHORT_SECONDS`."""
SHORT_SECONDS = 20


class TokenEndpoint:
    """A server that issues tokens to one client, over TLS if the server has a certificate. `key_file` has the
    verification keys (JWKS).
    """

    def __init__(
        self, folder: Path, client: str, secret: str, certificate: tuple[Path, Path] | None = None, seconds: int = 300
    ) -> None:
        self._login = base64.b64encode(f"{client}:{secret}".encode()).decode()
        self._client = client
        self._seconds = seconds
        self._key: Any = RSAKey.generate_key(2048, {"kid": "test"})
        self.asked = 0
        self.key_file = folder / "jwks.json"
        self.key_file.write_text(json.dumps({"keys": [self._key.as_dict(private=False)]}), encoding="utf-8")
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
                status, answer = endpoint.answer(self.headers.get("Authorization", ""), form)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://{LOOPBACK}:{self._server.server_address[1]}/token"

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body for a request."""
        self.asked += 1
        if authorization != f"Basic {self._login}":
            return 401, {"error": "invalid_client"}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        now = int(time.time())
        seconds = SHORT_SECONDS if form.get("scope") == [SHORT] else self._seconds
        claims = {
            "iss": "test",
            "sub": self._client,
            "aud": "somebody else" if form.get("scope") == [NO_AUDIENCE] else AUDIENCE,
            "iat": now,
            "exp": now + seconds,
            "scope": " ".join(form.get("scope", ["none"])),
        }
        token = jwt.encode({"alg": "RS256", "kid": "test"}, claims, self._key)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": seconds}

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
