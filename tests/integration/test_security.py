"""All clients of the service support TLS and every login mechanism. Rejections are reported without secrets."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka import AIOKafkaConsumer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from dev.demo.sources import shop_sources
from dev.servers.certificates import Authority
from dev.servers.identity import NO_AUDIENCE
from dev.servers.secured import GUEST, PASSWORD, USER, SecuredBroker
from dev.servers.stack import wait_until
from tests import token_providers
from tests.integration._workers import PATIENCE, Workers, identities
from translator.codecs.record import Record
from translator.config.settings import Kafka, Output, Settings, Source, Timing
from translator.errors import CdcError, ConfigError, RetryableError
from translator.kafka.admin import TopicAdmin
from translator.kafka.client_config import librdkafka
from translator.service.bootstrap import prepare
from translator.service.faust_settings import _credentials

pytestmark = pytest.mark.integration

WRONG = "battery staple"
KEY_PASSWORD = "stapled battery"

Section = dict[str, Any]
"""The `kafka` section of a configuration."""


class World:
    """A secured broker and the files of its clients."""

    def __init__(self, folder: Path) -> None:
        self.broker = SecuredBroker(folder)
        self.ca = self.broker.authority.file
        self.other = Authority(folder, "other")
        issue = self.broker.authority.issue
        self.client = issue("client", owner=USER)
        self.locked = issue("locked", owner=USER, password=KEY_PASSWORD)
        self.expired = issue("ended", owner=USER, days=-1)
        self.foreign = self.other.issue("foreign")
        self.site = folder / "site"
        token_providers.install(self.site, "issued", token_providers.ISSUED)

    def login(self, mechanism: str = "PLAIN", listener: str = "LOGIN", **changes: Any) -> Section:
        return {
            "bootstrap_servers": self.broker.address(listener),
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "sasl_username": USER,
            "sasl_password": PASSWORD,
            "ssl_ca_file": str(self.ca),
            **changes,
        }

    def tokens(self, **changes: Any) -> Section:
        return {
            "bootstrap_servers": self.broker.address("LOGIN"),
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "oauth_token_url": self.broker.identity.url,
            "oauth_client_id": USER,
            "oauth_client_secret": PASSWORD,
            "oauth_scope": "kafka",
            "oauth_ca_file": str(self.ca),
            "ssl_ca_file": str(self.ca),
            **changes,
        }

    def provided(self, provider: str = "issued", **options: Any) -> Section:
        return {
            "bootstrap_servers": self.broker.address("LOGIN"),
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "oauth_provider": provider,
            "oauth_provider_options": {"url": self.broker.identity.url, "ca": str(self.ca), **options},
            "ssl_ca_file": str(self.ca),
        }

    def mutual(self, files: tuple[Path, Path] | None, **changes: Any) -> Section:
        given = (
            {} if files is None else dict(zip(("ssl_certificate_file", "ssl_key_file"), map(str, files), strict=True))
        )
        return {
            "bootstrap_servers": self.broker.address("MUTUAL"),
            "security_protocol": "SSL",
            "ssl_ca_file": str(self.ca),
            **given,
            **changes,
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    found = World(tmp_path_factory.mktemp("secured"))
    with found.broker, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(found.site))
        patch.setenv("ISSUED_LOGIN", f"{USER}:{PASSWORD}")
        yield found


def settings_of(kafka: Section, name: str) -> Settings:
    return Settings(
        kafka=Kafka(**kafka),
        output=Output(topic=f"out.{name}"),
        sources=(Source(name="shop", dialect="canal", topics=(f"raw.{name}",), options={"profile": "oss"}),),
        timing=Timing(broker_wait=PATIENCE),
    )


def create(broker: SecuredBroker, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result(20)


# -- accepted logins

ACCEPTED: dict[str, Callable[[World], Section]] = {
    "plain": lambda world: world.login("PLAIN"),
    "scram-256": lambda world: world.login("SCRAM-SHA-256"),
    "scram-512": lambda world: world.login("SCRAM-SHA-512"),
    "oauth": lambda world: world.tokens(),
    "provider": lambda world: world.provided(),
    "certificate": lambda world: world.mutual(world.client),
    "locked-key": lambda world: world.mutual(world.locked, ssl_key_password=KEY_PASSWORD),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_every_client_is_let_in(world: World, name: str) -> None:
    """One block of settings connects the clients of the start and the consumer of the service."""
    create(world.broker, f"raw.{name}")
    settings = settings_of(ACCEPTED[name](world), name)
    ready = prepare(settings)
    try:
        asyncio.run(ready.delivery.confirm(settings.output.schemas_topic, Record(b"key", b"value", [])))
        found = next(record.value() for _ in range(600) for record in ready.reader.poll(0.2))
    finally:
        ready.reader.close()
    assert b"value" == found
    assert b"value" == asyncio.run(_first(settings))


async def _first(settings: Settings) -> bytes | None:
    """Return the first record of the schemas topic, read with the client that Faust uses."""
    auth = credentials_to_aiokafka_auth(_credentials(settings.kafka))
    consumer = AIOKafkaConsumer(
        settings.output.schemas_topic,
        bootstrap_servers=settings.kafka.bootstrap_servers,
        auto_offset_reset="earliest",
        **auth,
    )
    await consumer.start()
    try:
        return (await asyncio.wait_for(consumer.getone(), PATIENCE)).value
    finally:
        await consumer.stop()


# -- rejected logins: who rejects them, and the message

CHECK_LOGIN = "check kafka.sasl_mechanism, sasl_username and sasl_password"
CHECK_CERTIFICATE = "the broker rejects this client: check kafka.ssl_certificate_file"
CHECK_TRUST = "the broker is not trusted: check kafka.ssl_ca_file"
CHECK_PROTOCOL = "connections are closed without a reason: check kafka.security_protocol"
CHECK_KEY = "kafka.ssl_certificate_file and ssl_key_file cannot be used (is ssl_key_password right?)"

# Name -> settings, error class (ConfigError: exit code 2; RetryableError: retried, then exit code 1), message.
REFUSED: dict[str, tuple[Callable[[World], Section], type[CdcError], tuple[str, ...]]] = {
    "plain password": (lambda w: w.login("PLAIN", sasl_password=WRONG), ConfigError, ("Invalid username", CHECK_LOGIN)),
    "scram password": (
        lambda w: w.login("SCRAM-SHA-512", sasl_password=WRONG),
        ConfigError,
        ("invalid credentials with SASL mechanism SCRAM-SHA-512", CHECK_LOGIN),
    ),
    "client secret": (
        lambda w: w.tokens(oauth_client_secret=WRONG),
        ConfigError,
        ("invalid_client", "check kafka.oauth_client_id, oauth_client_secret and oauth_scope"),
    ),
    "audience": (
        lambda w: w.tokens(oauth_scope=NO_AUDIENCE),
        ConfigError,
        ("invalid_token", "the broker does not accept the tokens from kafka.oauth_token_url"),
    ),
    "endpoint not trusted": (
        lambda w: w.tokens(oauth_ca_file=str(w.other.file)),
        ConfigError,
        ("the server at kafka.oauth_token_url is not trusted: check oauth_ca_file",),
    ),
    "endpoint away": (
        lambda w: w.tokens(oauth_token_url="https://127.0.0.1:1/token"),
        RetryableError,
        ("Failed to acquire SASL OAUTHBEARER token", "Could not connect"),
    ),
    "provider away": (
        lambda w: w.provided(away=str(w.ca)),
        RetryableError,
        ("token provider issued failed: RuntimeError: the identity service is away",),
    ),
    "provider's audience": (
        lambda w: w.provided(scope=NO_AUDIENCE),
        ConfigError,
        ("invalid_token", "the broker does not accept the tokens from kafka.oauth_provider"),
    ),
    "no such provider": (
        lambda w: w.provided("isued"),
        ConfigError,
        ("unknown token provider 'isued' (did you mean issued?)",),
    ),
    "provider's options": (
        lambda w: w.provided(regoin="x"),
        ConfigError,
        ("token provider issued cannot be used with oauth_provider_options", "keyword argument 'regoin'"),
    ),
    "broker not trusted": (
        lambda w: w.login(ssl_ca_file=str(w.other.file)),
        ConfigError,
        ("unable to get local issuer certificate", CHECK_TRUST),
    ),
    "broker expired": (lambda w: w.login(listener="EXPIRED"), ConfigError, ("certificate has expired", CHECK_TRUST)),
    "broker misnamed": (
        lambda w: w.login(listener="MISNAMED"),
        ConfigError,
        ("certificate is not valid for '127.0.0.1'", CHECK_TRUST),
    ),
    "no certificate": (lambda w: w.mutual(None), ConfigError, ("alert", CHECK_CERTIFICATE)),
    "certificate of another": (lambda w: w.mutual(w.foreign), ConfigError, ("alert", CHECK_CERTIFICATE)),
    "certificate expired": (lambda w: w.mutual(w.expired), ConfigError, ("alert", CHECK_CERTIFICATE)),
    "key without password": (lambda w: w.mutual(w.locked), ConfigError, (CHECK_KEY,)),
    "key with wrong password": (lambda w: w.mutual(w.locked, ssl_key_password=WRONG), ConfigError, (CHECK_KEY,)),
    "key of another": (lambda w: w.mutual((w.client[0], w.foreign[1])), ConfigError, (CHECK_KEY, "mismatch")),
    "no such file": (
        lambda w: w.login(ssl_ca_file="/nowhere/ca.pem"),
        ConfigError,
        ("kafka.ssl_ca_file cannot be used: /nowhere/ca.pem: No such file",),
    ),
    "no certificate in the file": (
        lambda w: w.login(ssl_ca_file=str(w.client[1])),
        ConfigError,
        ("kafka.ssl_ca_file cannot be used:",),
    ),
    "no TLS": (
        lambda w: {"bootstrap_servers": w.broker.address("LOGIN")},
        RetryableError,
        (CHECK_PROTOCOL,),
    ),
    "TLS for a plain listener": (
        lambda w: w.login(bootstrap_servers=w.broker.bootstrap),
        RetryableError,
        ("SSL connection closed by peer",),
    ),
    "away": (lambda w: w.login(bootstrap_servers="127.0.0.1:1"), RetryableError, ("Connection refused",)),
}


class Answer:
    """The result of a start with such settings.

    Args:
        seconds: maximum wait.
    """

    def __init__(self, kafka: Section, seconds: float) -> None:
        self.said: list[str] = []
        self.error: CdcError | None = None
        try:
            TopicAdmin(librdkafka(Kafka(**kafka))).wait_for_broker(seconds, self.said.append)
        except CdcError as error:
            self.error = error


@pytest.fixture(scope="module")
def answers(world: World) -> dict[str, Answer]:
    """Run all starts in parallel, because librdkafka takes five seconds to report that nobody answers.

    A rejection ends the wait early and gets the time it needs. A retried start uses all of its time.
    """
    seconds: dict[type[CdcError], float] = {ConfigError: PATIENCE, RetryableError: 20}
    with ThreadPoolExecutor(len(REFUSED)) as pool:
        found = pool.map(lambda case: Answer(case[0](world), seconds[case[1]]), REFUSED.values())
        return dict(zip(REFUSED, found, strict=True))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(answers: dict[str, Answer], name: str) -> None:
    """A mistake that waiting cannot cure is a configuration error, and the message names the setting to check."""
    answer = answers[name]
    _, kind, texts = REFUSED[name]
    assert kind is type(answer.error)
    assert [] == [text for text in texts if text not in str(answer.error)]
    assert (kind is RetryableError) == bool(answer.said)  # it retries and logs that


def test_no_secret_is_told(world: World, answers: dict[str, Answer]) -> None:
    """No password, key or secret appears in errors, in log messages while waiting, or in printed settings."""
    told = [text for answer in answers.values() for text in (str(answer.error), repr(answer.error), *answer.said)]
    for section in [make(world) for make in ACCEPTED.values()] + [case[0](world) for case in REFUSED.values()]:
        settings = Settings(kafka=Kafka(**section), sources=(Source(name="s", dialect="canal", topics=("raw",)),))
        told += [repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())]
    assert [] == [text for text in told for secret in (PASSWORD, WRONG, KEY_PASSWORD, "PRIVATE") if secret in text]


def test_exit_codes(world: World, tmp_path: Path, free_port: int) -> None:
    """Commands that connect exit with code 2 on a wrong password. `check` needs no broker and prints no secret."""
    config = tmp_path / "translator.yaml"
    sources = [{"name": "shop", "dialect": "canal", "topics": ["raw"], "options": {"profile": "oss"}}]
    settings = {"kafka": world.login(sasl_password=WRONG), "sources": sources, "web": {"port": free_port}}
    config.write_text(yaml.safe_dump(settings))
    ends = {"run": 2, "dlq ls": 2, "check": 0}
    processes = {
        command: subprocess.Popen(
            [sys.executable, "-m", "translator", *command.split(), "-c", config],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in ends
    }
    told = {command: process.communicate(timeout=PATIENCE)[0] for command, process in processes.items()}
    assert ends == {command: process.returncode for command, process in processes.items()}
    assert ends == {command: 2 if CHECK_LOGIN in text else 0 for command, text in told.items()}
    assert not [text for text in told.values() if WRONG in text or "Traceback" in text]


# -- permissions


def test_rights(world: World) -> None:
    """The start names the missing permission. It succeeds with only those in docs/operate/configuration.md."""
    create(world.broker, "raw.guest")
    settings = settings_of(world.login("SCRAM-SHA-512", sasl_username=GUEST), "guest")
    output = settings.output
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})

    def grant(kind: Any, name: str, *operations: Any) -> None:
        who = (ResourcePatternType.LITERAL, f"User:{GUEST}", "*")
        bindings = [AclBinding(kind, name, *who, operation, AclPermissionType.ALLOW) for operation in operations]
        for future in admin.create_acls(bindings).values():
            future.result(20)

    def refused() -> str:
        try:
            prepare(settings).reader.close()
        except ConfigError as error:
            return str(error)
        return "nothing"

    def wait_refused(text: str) -> None:
        """Wait until a changed permission takes effect."""
        wait_until(text, PATIENCE, lambda: text in refused())

    wait_refused(f"topic {output.topic}: this user can neither see nor create it")
    for topic in settings.written_topics:
        grant(ResourceType.TOPIC, topic, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.CREATE)
    wait_refused(f"topic {output.topic}: this user lacks the permission WRITE")
    for topic in settings.written_topics:
        grant(ResourceType.TOPIC, topic, AclOperation.WRITE)
    wait_refused(f"cannot read {output.topic}.")  # the first of its two topics that answers
    for topic in settings.written_topics:
        grant(ResourceType.TOPIC, topic, AclOperation.READ)
    wait_refused(f"group {settings.group}: this user is not allowed to use it")
    grant(ResourceType.GROUP, settings.group, AclOperation.READ)
    wait_refused("topic raw.guest: ")
    grant(ResourceType.TOPIC, "raw.guest", AclOperation.DESCRIBE)
    wait_refused("topic raw.guest: this user lacks the permission READ")
    grant(ResourceType.TOPIC, "raw.guest", AclOperation.READ)
    wait_refused("nothing")


# -- at run time


def test_a_login_that_ends_stops_the_service(world: World, tmp_path: Path) -> None:
    """The service runs on a listener that requires repeated logins. When one is rejected, it exits with code 1."""
    (source,) = [source for source in shop_sources(1) if source.name == "canal"]
    workers = Workers(world.broker, tmp_path, 1, [source.settings], kafka=world.login("SCRAM-SHA-256"))
    (stack,) = workers.stacks
    try:
        stack.create_raw_topics()
        stack.feed(source.messages(200, grow=False))
        process = stack.start("translator")
        wait_until("the first are committed", PATIENCE, lambda: sum(stack.committed().values()) == 200, stack)
        again = "Authentication failed during re-authentication"
        stack.feed(source.messages(200, grow=False))
        wait_until("the others are committed", PATIENCE, lambda: sum(stack.committed().values()) == 400, stack)
        assert not workers.said(again)

        admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
        end = UserScramCredentialDeletion(USER, ScramMechanism.SCRAM_SHA_256)
        admin.alter_user_scram_credentials([end])[USER].result(20)
        assert 1 == process.wait(PATIENCE)
        assert workers.said(again)
        assert workers.said(CHECK_LOGIN)
        assert not workers.said(PASSWORD)
        assert 400 == len(identities(workers.events()))
    finally:
        stack.close()
