"""Match topic names and patterns against the brokers' topics."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translator.service._said import Said, tell
from translator.config.settings import Kafka, Output, Settings, Source, Timing
from translator.errors import ConfigError, RetryableError
from translator.kafka import retry
from translator.kafka.subscription import added, metadata_topics, resolve, subscribe


def settings(*sources: Source, **more: Any) -> Settings:
    return Settings(kafka=Kafka(bootstrap_servers="localhost:9092"), sources=sources, **more)


def source(name: str, *topics: str, **more: Any) -> Source:
    return Source(name=name, dialect="qlik", topics=topics, **more)


def owners(given: Settings, *there: str) -> dict[str, str]:
    subscribed, doubtful = resolve(given, there)
    assert [] == doubtful
    return {topic: owner.name for topic, owner in subscribed.items()}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_PAUSE", 0.001)


class TestResolve:
    def test_names_and_patterns(self) -> None:
        """A name matches itself, even without a topic. `*` matches any characters, `?` one, and a dot is literal."""
        erp = source("erp", "erp.*", "plain", "t?")
        there = ["erp.a", "erp.b.c", "erpx", "t1", "t12", "other"]
        assert ["erp.a", "erp.b.c", "plain", "t1"] == sorted(owners(settings(erp), *there))

    def test_twice_in_one_source(self) -> None:
        """Entries of one source can overlap."""
        assert {"erp.a": "erp"} == owners(settings(source("erp", "erp.*", "erp.a", "*.a")), "erp.a")

    def test_never_ours(self) -> None:
        """A pattern matches neither topics that we write nor Kafka's internal ones."""
        everything = settings(source("erp", "*"), output=Output(topic="erp.events"))
        there = ["erp.a", *everything.written_topics, "__consumer_offsets"]
        assert {"erp.a": "erp"} == owners(everything, *there)

    @pytest.mark.parametrize("other", ["*.a", "erp.a"])
    def test_claimed_twice(self, other: str) -> None:
        """A topic claimed by two sources is read by neither, and both are reported."""
        subscribed, doubtful = resolve(settings(source("erp", "erp.*"), source("crm", other)), ["erp.a", "erp.b"])
        assert ["erp.b"] == list(subscribed)
        assert [f"topic erp.a is claimed by more than one source: erp (erp.*) and crm ({other})"] == doubtful


def test_metadata_topics() -> None:
    """Names and patterns of metadata topics select from a source's topics."""
    erp = source("erp", "erp.*", "md", metadata_topics=["*.md", "md"])
    assert ["erp.md", "md"] == metadata_topics(erp, ["erp.a", "erp.md", "md"])


class TestStart:
    def test_nothing_for_one_pattern(self) -> None:
        """The unmatched pattern is logged, and the other topics are read."""
        said: list[str] = []
        found = subscribe(settings(source("erp", "erp.*"), source("crm", "crm")), lambda: ["other"], said.append)
        assert ["crm"] == list(found)
        assert ["source erp: no topic matches erp.* yet"] == said

    def test_nothing_at_all(self) -> None:
        """With nothing to read, the start logs that and waits. After the time, a supervisor can retry."""
        patient, alone = (settings(source("erp", "erp.*"), timing=Timing(broker_wait=wait)) for wait in (60, 0.05))
        with pytest.raises(Said, match=r"^waiting for a raw topic: no topic matches erp\.\*$"):
            subscribe(patient, lambda: ["other"], tell)
        with pytest.raises(RetryableError, match=r"^no raw topic available within 0\.05 s: no topic matches erp\.\*$"):
            subscribe(alone, lambda: ["other"], lambda _: None)

    def test_it_comes(self) -> None:
        """The first matching topic ends the wait."""
        answers = [[], ["erp.a"]]
        found = subscribe(settings(source("erp", "erp.*")), lambda: answers.pop(0), lambda _: None)
        assert ["erp.a"] == list(found)

    def test_claimed_twice(self) -> None:
        """That is a configuration error."""
        with pytest.raises(ConfigError, match=r"erp\.a is claimed by more than one source: erp .* and crm"):
            subscribe(settings(source("erp", "erp.*"), source("crm", "*.a")), lambda: ["erp.a"], lambda _: None)


def test_added() -> None:
    """Only new topics are added. A topic that is being read stays with its source even if another pattern matches."""
    both = settings(source("erp", "erp.*"), source("crm", "*.a"))
    known = dict.fromkeys(["erp.a", "erp.c"], both.sources[0])
    fresh, doubtful = added(both, known, ["erp.a", "erp.b", "erp.c", "crm.a"])
    assert {"erp.b": "erp", "crm.a": "crm"} == {topic: owner.name for topic, owner in fresh.items()}
    assert 1 == len(doubtful)
