"""Run the broker from `dev.servers.broker` in a secured variant, with TLS, client certificates, every kind of login,
and ACLs.

    with SecuredBroker(folder) as broker:
        broker.address("LOGIN")

Users of the plain listener have all permissions. Each authentication method has its own listener.
"""

from __future__ import annotations

from pathlib import Path

from dev.servers.broker import LOOPBACK, Broker, Extra
from dev.servers.certificates import Authority
from dev.servers.identity import AUDIENCE, TokenEndpoint

USER = "translator"
PASSWORD = "correct horse"  # noqa: S105 - of brokers that end with the test
GUEST = "guest"
"""A user with the same password who has only the rights that a test grants."""

LISTENERS = {
    "LOGIN": "SASL_SSL",  # PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER
    "MUTUAL": "SSL",  # requests a client certificate
    "EXPIRED": "SASL_SSL",  # its own certificate has expired
    "MISNAMED": "SASL_SSL",  # its own certificate is for another host
}

_MODULES = "org.apache.kafka.common.security"
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


class SecuredBroker(Broker):
    """A broker with these listeners, its authority, and a token endpoint that it trusts."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder, "authority")
        certificate = self.authority.issue("identity", LOOPBACK)
        self.identity = TokenEndpoint(folder, USER, PASSWORD, certificate)
        super().__init__(extra=_extra(self.authority, self.identity.key_file))

    def start(self) -> None:
        self.identity.start()
        super().start()

    def close(self) -> None:
        self.identity.close()
        super().close()


def _extra(authority: Authority, jwks: Path) -> Extra:
    certificates = {
        "LOGIN": authority.issue("broker", LOOPBACK),
        "MUTUAL": authority.issue("mutual", LOOPBACK),
        "EXPIRED": authority.issue("expired", LOOPBACK, days=-1),
        "MISNAMED": authority.issue("misnamed", "elsewhere.example"),
    }
    keys = f"file://{jwks}"
    settings = {
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *_SCRAM, "OAUTHBEARER")),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{USER};User:CN={USER}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.oauthbearer.jwks.endpoint.url": keys,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    for listener, files in certificates.items():
        # Kafka needs both in one file.
        both = authority.folder / f"{listener.lower()}.pem"
        both.write_bytes(b"".join(file.read_bytes() for file in reversed(files)))
        settings |= _of(listener, {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(both)})
        if LISTENERS[listener] == "SASL_SSL":
            settings |= _of(listener, _logins())
    scram = (f"{mechanism}=[name={user},password={PASSWORD}]" for mechanism in _SCRAM for user in (USER, GUEST))
    return Extra(
        LISTENERS,
        settings,
        tuple(part for user in scram for part in ("--add-scram", user)),
        (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}",),
    )


def _of(listener: str, settings: dict[str, str]) -> dict[str, str]:
    return {f"listener.name.{listener.lower()}.{name}": value for name, value in settings.items()}


def _logins() -> dict[str, str]:
    handler = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    plain = " ".join(f'user_{user}="{PASSWORD}"' for user in (USER, GUEST))
    return {
        # These logins must be renewed every few seconds, so that the broker notices a revoked login.
        "scram-sha-256.connections.max.reauth.ms": "4000",
        # A connection ends when its token expires. Without this setting, it could outlive its token.
        "oauthbearer.connections.max.reauth.ms": "3600000",
        "plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {plain};",
        **{f"{name.lower()}.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;" for name in _SCRAM},
        "oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        "oauthbearer.sasl.server.callback.handler.class": handler,
    }
