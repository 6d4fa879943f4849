"""A service that logs in with the tokens of a provider outlives its tokens, and the failures of the provider."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dev.demo.sources import shop_sources
from dev.servers.identity import SHORT, SHORT_SECONDS
from dev.servers.secured import PASSWORD, USER, SecuredBroker
from dev.servers.stack import wait_until
from tests import token_providers
from tests.integration._workers import PATIENCE, Workers, identities

pytestmark = pytest.mark.integration


def test_tokens_are_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the provider fails, the service waits. It continues when the provider returns tokens again."""
    token_providers.install(tmp_path / "site", "issued", token_providers.ISSUED)
    # The translator finds the provider here.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("ISSUED_LOGIN", f"{USER}:{PASSWORD}")
    away = tmp_path / "away"
    (source,) = [source for source in shop_sources(1) if source.name == "canal"]
    with SecuredBroker(tmp_path) as broker:
        identity = broker.identity
        ca = str(broker.authority.file)
        kafka = {
            "bootstrap_servers": broker.address("LOGIN"),
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "oauth_provider": "issued",
            "oauth_provider_options": {"url": identity.url, "ca": ca, "scope": SHORT, "away": str(away)},
            "ssl_ca_file": ca,
        }
        workers = Workers(broker, tmp_path, 1, [source.settings], kafka=kafka)
        (stack,) = workers.stacks

        def feed(total: int) -> None:
            stack.feed(source.messages(200, grow=False))
            wait_until(f"{total} are committed", PATIENCE, lambda: sum(stack.committed().values()) == total, stack)

        try:
            stack.create_raw_topics()
            process = stack.start("translator")
            feed(200)
            asked = identity.asked
            wait_until("tokens are renewed twice", PATIENCE, lambda: identity.asked >= asked + 2, stack)
            feed(400)

            away.touch()
            wait_until("the failure is logged", PATIENCE, lambda: workers.said("no login token"), stack)
            time.sleep(SHORT_SECONDS)  # the last token, and the connections that it opened, have now ended
            away.unlink()
            feed(600)
            assert process.poll() is None
            assert workers.said("token provider issued failed: RuntimeError: the identity service is away")
            assert not workers.said(PASSWORD)
            assert not workers.said("eyJ")  # every signed token begins with it
            assert 600 == len(identities(workers.events()))
        finally:
            stack.close()
