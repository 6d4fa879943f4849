"""The schema registry client, tested with a real registry and with rare responses."""

from __future__ import annotations

import json
import queue
import re
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from cdc_core.envelope import ChangeEvent, avro_schema, schema_text
from dev.servers.broker import LOOPBACK
from dev.servers.registry import API, RegistryServer
from tests.gate import Gate
from tests.translator.codecs.corpus import WITHIN_DATES
from tests.translator.examples import UPDATE
from tests.translator.service._said import Said, tell
from translator.codecs.avro import AvroCodec, confluent_header
from translator.config.settings import Registry
from translator.errors import ConfigError, ErrorCode, MessageError, RetryableError
from translator.kafka import schema_registry as registry_module
from translator.kafka.schema_registry import SchemaRegistry, _client_config, value_subject

OTHER = Schema(json.dumps({"type": "record", "name": "Other", "fields": [{"name": "a", "type": "string"}]}), "AVRO")
STRICT = ServerConfig(compatibility=ConfigCompatibilityLevel.FULL_TRANSITIVE)

EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@pytest.fixture(autouse=True)
def _long_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a registry can take longer for its first response than the usual timeout."""
    monkeypatch.setattr(registry_module, "_TIMEOUT", 60.0)


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    """A running registry. Use your own subjects, and never stop it."""
    with RegistryServer() as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"registry-{uuid.uuid4().hex[:8]}"


def client(server: RegistryServer, **settings: Any) -> SchemaRegistry:
    return SchemaRegistry(Registry(url=server.url, **settings))


@contextmanager
def reference(server: RegistryServer) -> Iterator[SchemaRegistryClient]:
    """The client that others use, independent of our code."""
    with SchemaRegistryClient({"url": server.url, "timeout": 30}) as someone:
        yield someone


def read(server: RegistryServer, topic: str, value: bytes) -> ChangeEvent:
    """Return the event in a value with the reference reader, which gets the schema from the registry."""
    context = SerializationContext(topic, MessageField.VALUE)
    # Its default strategy requests associations, a Confluent API that Apicurio once left unanswered.
    by_topic = {"subject.name.strategy": topic_subject_name_strategy}
    with reference(server) as registry:
        return msgspec.convert(_plain_times(AvroDeserializer(registry, conf=by_topic)(value, context)), ChangeEvent)


def _plain_times(node: Any) -> Any:
    """Convert datetimes, which readers produce for timestamps, to microseconds."""
    if isinstance(node, dict):
        return {name: _plain_times(value) for name, value in node.items()}
    if isinstance(node, datetime):
        return (node - EPOCH) // timedelta(microseconds=1)
    return node


def encoded(event: ChangeEvent, schema_id: int) -> bytes:
    (record,) = AvroCodec(confluent_header(schema_id)).encode(event)
    assert record.value is not None
    return record.value


@pytest.mark.integration
class TestRegister:
    def test_registered(self, server: RegistryServer, topic: str) -> None:
        """The topic's subject then has the envelope's schema under the returned id."""
        schema_id = client(server).schema_id(value_subject(topic), schema_text())
        with reference(server) as registry:
            found = registry.get_latest_version(f"{topic}-value")
        assert schema_id == found.schema_id
        # Registries differ in whether they write names in full.
        kept = fastavro.parse_schema(json.loads(str(found.schema.schema_str)))
        assert fastavro.parse_schema(avro_schema()) == kept

    def test_twice(self, server: RegistryServer, topic: str) -> None:
        """A second process gets the same id, and no second version is created."""
        ids = {client(server).schema_id(value_subject(topic), schema_text()) for _ in range(2)}
        assert 1 == len(ids)
        with reference(server) as registry:
            assert [1] == registry.get_versions(value_subject(topic))

    def test_incompatible(self, server: RegistryServer, topic: str) -> None:
        """A subject with an incompatible schema is not changed. The error has the registry's message and advice."""
        subject = value_subject(topic)
        with reference(server) as registry:
            registry.register_schema(subject, OTHER)
            registry.set_config(subject, STRICT)
        with pytest.raises(ConfigError, match=f"status 409 for subject {subject}.*used for something else") as refused:
            client(server).schema_id(subject, schema_text())
        assert "Incompatible" in str(refused.value)
        with reference(server) as registry:
            assert [1] == registry.get_versions(subject)

    def test_not_a_schema(self, server: RegistryServer, topic: str) -> None:
        """An invalid schema is rejected without a retry."""
        with pytest.raises(ConfigError, match="status 422"):
            client(server).schema_id(value_subject(topic), "{}")

    def test_the_envelope_may_grow(self, server: RegistryServer, topic: str) -> None:
        """A new last field with a null default is compatible in both directions, and one without is not."""
        subject = value_subject(topic)
        first = client(server).schema_id(subject, schema_text())
        with reference(server) as registry:
            registry.set_config(subject, STRICT)
        assert first != client(server).schema_id(subject, grown({"type": ["null", "string"], "default": None}))
        with pytest.raises(ConfigError, match="status 409"):
            client(server).schema_id(subject, grown({"type": "string"}))


def grown(field: dict[str, Any]) -> str:
    schema = avro_schema()
    return json.dumps({**schema, "fields": [*schema["fields"], {"name": "new", **field}]})


@pytest.mark.integration
class TestLookUp:
    def test_found(self, server: RegistryServer, topic: str) -> None:
        """Without permission to register, the client finds the existing schema's id."""
        subject = value_subject(topic)
        registered = client(server).schema_id(subject, schema_text())
        assert registered == client(server, auto_register=False).schema_id(subject, schema_text())

    def test_unknown_subject(self, server: RegistryServer, topic: str) -> None:
        """A subject without a schema is an error for the operator, and nothing is registered."""
        with pytest.raises(
            ConfigError, match=r"not found.*register the schema .* or set registry\.auto_register: true"
        ):
            client(server, auto_register=False).schema_id(value_subject(topic), schema_text())
        with reference(server) as registry:
            assert value_subject(topic) not in registry.get_subjects()

    def test_another_schema(self, server: RegistryServer, topic: str) -> None:
        """Another schema of the subject is not accepted as the envelope's."""
        subject = value_subject(topic)
        with reference(server) as registry:
            registry.register_schema(subject, OTHER)
        with pytest.raises(ConfigError, match="does not match any schema"):
            client(server, auto_register=False).schema_id(subject, schema_text())

    def test_not_the_api(self, server: RegistryServer, topic: str) -> None:
        """A URL that is not the API is distinguished from a missing schema."""
        beside = Registry(url=server.url.replace("/apis/ccompat/v7", ""), auto_register=False)
        with pytest.raises(ConfigError, match=r"status 404.*check registry\.url"):
            SchemaRegistry(beside).schema_id(value_subject(topic), schema_text())


@pytest.mark.integration
class TestSchemaText:
    def registered(self, server: RegistryServer, subject: str, schema: Schema) -> int:
        with reference(server) as registry:
            return registry.register_schema(subject, schema)

    def test_found(self, server: RegistryServer, topic: str) -> None:
        """The client returns the text of an id with its registered meaning."""
        schema_id = self.registered(server, value_subject(topic), OTHER)
        text = client(server).schema_text(schema_id, limit=10_000)
        assert text is not None
        assert json.loads(str(OTHER.schema_str)) == json.loads(text)

    def test_unknown(self, server: RegistryServer) -> None:
        """An unknown id is not an error here, since it can be registered later."""
        assert None is client(server).schema_text(2**31 - 1, limit=10_000)

    def test_not_the_api(self, server: RegistryServer) -> None:
        """A URL that is not the API is distinguished from an unknown id."""
        beside = Registry(url=server.url.replace("/apis/ccompat/v7", ""))
        with pytest.raises(ConfigError, match=r"status 404.*check registry\.url"):
            SchemaRegistry(beside).schema_text(1, limit=10_000)

    def test_away(self, free_port: int) -> None:
        """A missing response does not make a message dead."""
        with pytest.raises(RetryableError, match="Connection refused"):
            SchemaRegistry(Registry(url=f"http://{LOOPBACK}:{free_port}")).schema_text(1, limit=10_000)

    def test_too_long(self, server: RegistryServer, topic: str) -> None:
        """The size limit applies to registry schemas before they are parsed."""
        schema_id = self.registered(server, value_subject(topic), OTHER)
        said = rf"schema {schema_id} of the registry has \d+ bytes, but only 20 are"
        with pytest.raises(MessageError, match=said) as refused:
            client(server).schema_text(schema_id, limit=20)
        assert ErrorCode.LIMIT_EXCEEDED == refused.value.code

    def test_references(self, server: RegistryServer, topic: str) -> None:
        """A schema with references is rejected, and the error lists them."""
        self.registered(server, f"{topic}-other", OTHER)
        fields = [{"name": "o", "type": "Other"}]
        text = json.dumps({"type": "record", "name": "Outer", "fields": fields})
        references = [SchemaReference("Other", f"{topic}-other", 1)]
        schema_id = self.registered(server, value_subject(topic), Schema(text, "AVRO", references))
        with pytest.raises(MessageError, match=r"refers to other schemas \('Other'\), which this release") as refused:
            client(server).schema_text(schema_id, limit=10_000)
        assert ErrorCode.UNSUPPORTED_SHAPE == refused.value.code

    def test_another_type(self, server: RegistryServer, topic: str) -> None:
        """A JSON schema is not an Avro schema."""
        schema_id = self.registered(
            server,
            value_subject(topic),
            Schema('{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}', "JSON"),
        )
        with pytest.raises(MessageError, match="has type 'JSON'; expected AVRO"):
            client(server).schema_text(schema_id, limit=10_000)


@pytest.mark.integration
@pytest.mark.parametrize("name", WITHIN_DATES)
def test_the_reference_reader_reads_it(server: RegistryServer, name: str) -> None:
    """The reader of confluent_kafka finds the schema by the header's id and decodes the same event."""
    schema_id = client(server).schema_id(value_subject("read"), schema_text())
    event = WITHIN_DATES[name]
    assert event == read(server, "read", encoded(event, schema_id))


@pytest.mark.integration
class TestAway:
    def test_down(self, server: RegistryServer, topic: str) -> None:
        """While the registry is down, the start logs that it waits. When it is back, it continues with the same id."""
        subject = value_subject(topic)
        schema_id = client(server).schema_id(subject, schema_text())
        value = encoded(UPDATE, schema_id)
        said: queue.Queue[str] = queue.Queue()
        with Gate(server.settled_port()) as gate, ThreadPoolExecutor() as pool:
            away = SchemaRegistry(Registry(url=f"http://{LOOPBACK}:{gate.port}{API}"))
            answer = pool.submit(away.wait_for_id, subject, schema_text(), 600, said.put)
            assert "waiting for a schema registry: [Errno 111] Connection refused" == said.get(timeout=60)
            gate.open()
            assert schema_id == answer.result(120)
        assert UPDATE == read(server, topic, value)

    def test_its_memory_lost(self, server: RegistryServer, topic: str) -> None:
        """A registry that returns with other content gives another id, under which readers find the schema."""
        subject = value_subject(topic)
        before = client(server).schema_id(subject, schema_text())
        with RegistryServer() as empty:
            with reference(empty) as registry:
                for number in range(before):
                    registry.register_schema(
                        f"earlier-{number}", Schema(grown({"type": "int", "default": number}), "AVRO")
                    )
            after = client(empty).schema_id(subject, schema_text())
            assert before != after
            assert UPDATE == read(empty, topic, encoded(UPDATE, after))

    def test_not_for_ever(self, free_port: int) -> None:
        """A registry that stays down is a retryable failure and not a configuration error."""
        away = SchemaRegistry(Registry(url=f"http://{LOOPBACK}:{free_port}"))
        with pytest.raises(Said, match=r"^waiting for a schema registry: .*Connection refused"):
            away.wait_for_id("s", "{}", 60, tell)
        with pytest.raises(RetryableError, match=r"no schema registry available within 1 s: .*Connection refused"):
            away.wait_for_id("s", "{}", 1, lambda _: None)


class Answers:
    """A server with one response for everything, which keeps its requests."""

    def __init__(self) -> None:
        self.status = 200
        self.body = b""
        self.authorization: str | None = None
        self.silent = threading.Event()
        self.released = threading.Event()
        answers = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                answers.authorization = self.headers["Authorization"]
                if answers.silent.is_set():
                    answers.released.wait(60)
                self.send_response(answers.status)
                self.send_header("Content-Length", str(len(answers.body)))
                self.end_headers()
                self.wfile.write(answers.body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def answers() -> Iterator[Answers]:
    running = Answers()
    yield running
    running.close()


class TestAnswers:
    """The class of the error determines the decision: retry, or stop and tell the operator."""

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 507])
    def test_passing(self, answers: Answers, status: int) -> None:
        """A transient failure is retried."""
        answers.status, answers.body = status, b'{"error_code": 50001, "message": "later"}'
        with pytest.raises(RetryableError, match=f"status {status} for subject s: 'later'"):
            SchemaRegistry(Registry(url=answers.url)).schema_id("s", schema_text())

    @pytest.mark.parametrize(
        ("status", "code", "remedy"),
        [
            (301, 301, "check registry.url"),
            (400, 400, "check registry.url"),
            (401, 401, "check registry.username and registry.password"),
            (403, 40301, "set registry.auto_register: false"),
            (404, 404, "check registry.url: it must be the root of"),
            (404, 40403, "register the schema"),
            (405, 405, "check registry.url"),
            (409, 40901, "Is the topic used for something else?"),
            (422, 42201, "does not accept the Avro schema"),
        ],
    )
    def test_refused(self, answers: Answers, status: int, code: int, remedy: str) -> None:
        """A permanent failure stops the start and states what to change."""
        answers.status, answers.body = status, json.dumps({"error_code": code, "message": "no"}).encode()
        with pytest.raises(ConfigError, match=f"status {status} for subject s: 'no'; .*{re.escape(remedy)}"):
            SchemaRegistry(Registry(url=answers.url)).schema_id("s", schema_text())

    def test_a_proxy_says_no(self, answers: Answers) -> None:
        """A proxy's rejection in another format counts too, and its quoted text is bounded."""
        answers.status, answers.body = 403, b"<html>" + b"no " * 1000
        with pytest.raises(ConfigError, match="status 403") as refused:
            SchemaRegistry(Registry(url=answers.url)).schema_id("s", schema_text())
        assert len(str(refused.value)) < 700

    @pytest.mark.parametrize(
        "body",
        [b"<html>", b"", b"[]", b"{}", b'{"id": null}', b'{"id": "7"}', b'{"id": 0}', b'{"id": 2147483648}', b"\xff"],
    )
    @pytest.mark.parametrize("auto_register", [True, False])
    def test_no_registry(self, answers: Answers, body: bytes, auto_register: bool) -> None:
        """A success response without an id that fits a header is not from a registry."""
        answers.body = body
        with pytest.raises(ConfigError, match="returned no schema id"):
            SchemaRegistry(Registry(url=answers.url, auto_register=auto_register)).schema_id("s", schema_text())

    def test_silent(self, answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
        """A registry that accepts a request but never responds is not awaited forever."""
        monkeypatch.setattr(registry_module, "_TIMEOUT", 0.2)
        answers.silent.set()
        with pytest.raises(RetryableError, match="timed out"):
            SchemaRegistry(Registry(url=answers.url)).schema_id("s", schema_text())

    def test_the_next_url(self, answers: Answers, free_port: int) -> None:
        """One responding URL of several is enough."""
        answers.body = b'{"id": 7}'
        urls = f"http://{LOOPBACK}:{free_port}, {answers.url}/"
        assert 7 == SchemaRegistry(Registry(url=urls)).schema_id("s", schema_text())


class TestSecrets:
    LOGIN = Registry(url="http://unused", username="user", password="hunter:2")

    def test_login(self, answers: Answers) -> None:
        """User name and password are sent unchanged, including colons in the password."""
        answers.body = b'{"id": 7}'
        SchemaRegistry(self.LOGIN.model_copy(update={"url": answers.url})).schema_id("s", schema_text())
        assert "Basic dXNlcjpodW50ZXI6Mg==" == answers.authorization

    @pytest.mark.parametrize("status", [401, 503])
    def test_not_told(self, answers: Answers, status: int) -> None:
        """No error contains the password."""
        answers.status = status
        settings = self.LOGIN.model_copy(update={"url": answers.url})
        with pytest.raises((ConfigError, RetryableError)) as refused:
            SchemaRegistry(settings).schema_id("s", schema_text())
        told = f"{refused.value} {refused.value!r} {refused.value.__cause__} {settings!r}"
        assert "hunter" not in told
        assert "dXNlcjpodW50ZXI6Mg" not in told

    def test_certificates(self, tmp_path: Path) -> None:
        """An unusable certificate file is reported with its setting."""
        (tmp_path / "not.pem").write_text("x")
        for name in ("missing.pem", "not.pem"):
            with pytest.raises(ConfigError, match=r"registry\.ssl_\*_file cannot be used: "):
                SchemaRegistry(Registry(url="https://unused", ssl_ca_file=tmp_path / name)).schema_id("s", "{}")

    def test_everything_reaches_the_client(self) -> None:
        """URLs and files reach the client under the names that it knows. It rejects unknown ones."""
        files = {"ssl_ca_file": "ca.pem", "ssl_certificate_file": "own.pem", "ssl_key_file": "own.key"}
        config = _client_config(Registry(url="https://one,https://two", **files))
        assert ("https://one,https://two", "ca.pem", "own.pem", "own.key") == (
            config["url"],
            config["ssl.ca.location"],
            config["ssl.certificate.location"],
            config["ssl.key.location"],
        )
