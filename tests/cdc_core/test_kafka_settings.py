"""The broker credentials that both programs accept."""

import pytest
from pydantic import ValidationError

from cdc_core.kafka_settings import Kafka

LOGINS = [
    {"sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password": "p"},
    {
        "sasl_mechanism": "OAUTHBEARER",
        "oauth_token_url": "https://identity/token",
        "oauth_client_id": "i",
        "oauth_client_secret": "s",
        "oauth_scope": "r",
    },
    {"ssl_key_password": "p", "ssl_key_file": "k.pem", "ssl_certificate_file": "c.pem"},
]


def given(login: dict[str, str]) -> dict[str, str]:
    protocol = "SASL_SSL" if "sasl_mechanism" in login else "SSL"
    return {"bootstrap_servers": "b:1", "security_protocol": protocol, **login}


def one_character(login: dict[str, str]) -> list[str]:
    return [name for name, value in login.items() if len(value) == 1]


@pytest.mark.parametrize("login", LOGINS)
def test_the_shortest_credentials(login: dict[str, str]) -> None:
    """A credential can have a single character."""
    kafka = Kafka.model_validate(given(login))
    assert all(getattr(kafka, name) is not None for name in one_character(login))


@pytest.mark.parametrize(("login", "name"), [(login, name) for login in LOGINS for name in one_character(login)])
def test_an_empty_credential(login: dict[str, str], name: str) -> None:
    """An empty credential is a mistake, such as an unset variable."""
    with pytest.raises(ValidationError) as refused:
        Kafka.model_validate(given({**login, name: ""}))
    assert [(name,)] == [mistake["loc"] for mistake in refused.value.errors()]
