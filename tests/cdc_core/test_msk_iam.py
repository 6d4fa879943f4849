"""Tokens for Amazon MSK with IAM, signed with fixed credentials. No test reaches AWS.

The tests compute the expected signatures with AWS's published algorithm (Signature Version 4 in a query), not with the
library.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from cdc_core.errors import ConfigError
from cdc_core.kafka_tokens import TokenError, Tokens

ID, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+for=tests"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide this machine's credentials, and forbid requests to the metadata service."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


def expected_signature(query: dict[str, str], host: str, region: str) -> str:
    """Return the signature of a presigned GET by the published algorithm."""

    def sign(key: bytes, text: str) -> bytes:
        return hmac.new(key, text.encode(), hashlib.sha256).digest()

    date = query["X-Amz-Date"]
    scope = f"{date[:8]}/{region}/kafka-cluster/aws4_request"
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    arguments = "&".join(f"{name}={value}" for name, value in pairs)
    body = hashlib.sha256(b"").hexdigest()
    canonical = "\n".join(("GET", "/", arguments, f"host:{host}\n", "host", body))
    text = "\n".join(("AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{SECRET}".encode()
    for part in (date[:8], region, "kafka-cluster", "aws4_request"):
        key = sign(key, part)
    return sign(key, text).hex()


@pytest.mark.parametrize("session", [None, SESSION])
@pytest.mark.parametrize("region", ["eu-west-1", "us-east-2"])
def test_a_token_is_a_signed_url(region: str, session: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token is the URL of the action kafka-cluster:Connect, valid for 15 minutes, in base64 without padding."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    if session is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", session)
    before = int(time.time())
    token, expires = Tokens("msk-iam", {"region": region})()
    assert before + 900 <= expires <= time.time() + 900
    assert "=" not in token
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert ("https", f"kafka.{region}.amazonaws.com", "/") == (url.scheme, url.netloc, url.path)
    query = dict(parse_qsl(url.query))
    assert query.pop("User-Agent").startswith("aws-msk-iam-sasl-signer-python/")  # added after signing
    signature = query.pop("X-Amz-Signature")
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(expires - 900))
    assert {
        "Action": "kafka-cluster:Connect",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{ID}/{date[:8]}/{region}/kafka-cluster/aws4_request",
        "X-Amz-Date": date,
        "X-Amz-Expires": "900",
        "X-Amz-SignedHeaders": "host",
        **({} if session is None else {"X-Amz-Security-Token": session}),
    } == query
    assert expected_signature(query, url.netloc, region) == signature


def test_no_credentials() -> None:
    """Missing credentials can appear later, so each new token searches again."""
    with pytest.raises(
        TokenError, match=r"^token provider msk-iam failed: LookupError: AWS's default search found no credentials$"
    ):
        Tokens("msk-iam", {"region": "eu-west-1"})()


def test_a_missing_region() -> None:
    with pytest.raises(ConfigError, match="missing 1 required keyword-only argument: 'region'"):
        Tokens("msk-iam", {})


def test_without_its_library() -> None:
    """The error names the extra to install."""
    code = (
        "import sys; sys.modules['aws_msk_iam_sasl_signer'] = None\n"
        "from cdc_core.kafka_tokens import Tokens\n"
        "Tokens('msk-iam', {'region': 'eu-west-1'})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "Install its library: pip install 'cdc-translator[msk]'" in done.stderr
