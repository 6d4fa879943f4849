"""`on_error` decides by code whether an untranslatable message becomes a dead letter or stops its partition."""

from collections.abc import Iterator
from typing import Any

import pytest

from dev.servers.broker import Broker
from tests.translator.operations._replay import AMBIGUOUS, CLEAR, Yard, update
from translator.config.settings import parse
from translator.errors import ConfigError


@pytest.fixture
def yard(broker: Broker) -> Iterator[Yard]:
    yard = Yard(broker.bootstrap)
    yield yard
    yard.close()


def test_stop(yard: Yard) -> None:
    """The listed code stops the partition before its message is written, and the stop names the record."""
    yard.feed(0, b"{]", update(1), update(2, both=False))
    settings = yard.settings(AMBIGUOUS, on_error={"AMBIGUOUS_VARIANT": "stop", "MALFORMED_JSON": "dead_letter"})
    (stop,) = yard.translate(settings)
    assert (yard.raw, 0, 1, "AMBIGUOUS_VARIANT") == (stop.topic, stop.partition, stop.offset, stop.code)
    letters = [found.letter.code for found in yard.look(settings).letters]
    assert ([], ["MALFORMED_JSON"]) == (yard.read(settings.output.topic), letters)


def test_a_replay_does_not_stop(yard: Yard) -> None:
    """A letter that remains dead is reported, whatever its code."""
    yard.feed(0, update(1))
    yard.translate(yard.settings(AMBIGUOUS))
    report = yard.replay(yard.settings(AMBIGUOUS, on_error={"AMBIGUOUS_VARIANT": "stop"}))
    assert 1 == report.groups["shop", "AMBIGUOUS_VARIANT"].dead


def test_stop_at_a_projection(yard: Yard) -> None:
    """A message that only a projection rejects also stops, before it reaches the canonical topic."""
    shown = f"{yard.name}-shown"
    yard.make(shown, 1, 3_000)
    yard.feed(0, update(1, both=False, name="x" * 5_000))
    settings = yard.settings(CLEAR, projections=[{"topic": shown, "codec": "json"}], on_error={"TOO_LARGE": "stop"})
    (stop,) = yard.translate(settings)
    assert ("TOO_LARGE", True) == (stop.code, "(max.message.bytes)" in stop.reason)
    assert [] == yard.read(settings.output.topic)


def test_a_contradiction_holds_its_partition_until_the_profile_is_corrected(yard: Yard) -> None:
    """Nothing is written under the wrong profile. A replay with the right one writes everything in order."""
    yard.feed(0, update(1, both=False), update(2), update(1, both=False), update(3, table="other"))
    yard.feed(1, update(4, both=False))
    wrong = yard.settings({"profile": "oss"}, on_error={"CONTRADICTION": "hold_table"})
    yard.translate(wrong)
    assert 2 == len(yard.read(wrong.output.topic))
    codes = [found.letter.code for found in yard.look(wrong).letters]
    assert ["CONTRADICTION", "HELD", "HELD"] == codes
    still = yard.replay(wrong)
    assert 0 < sum(group.dead for group in still.groups.values())
    assert 2 == len(yard.read(wrong.output.topic))
    right = yard.settings(CLEAR, on_error={"CONTRADICTION": "hold_table"})
    yard.replay(right)
    assert 5 == len(yard.read(right.output.topic))


def test_a_contradiction_is_no_dead_letter_alone() -> None:
    text = "kafka: {bootstrap_servers: b:1}\nsources: [{name: s, dialect: canal, topics: [t]}]\n"
    with pytest.raises(ConfigError, match=r"CONTRADICTION can only stop the source .* or hold the partition"):
        parse(f"{text}on_error: {{CONTRADICTION: dead_letter}}", {}, "file")


def test_what_is_held_has_no_policy() -> None:
    """A held message is one that `hold_table` sets aside although it could be translated."""
    text = "kafka: {bootstrap_servers: b:1}\nsources: [{name: s, dialect: canal, topics: [t]}]\non_error: {HELD: stop}"
    with pytest.raises(ConfigError, match="HELD cannot have a policy"):
        parse(text, {}, "file")


@pytest.mark.parametrize("policy", [{"MALFORMED": "stop"}, {"INTERNAL": "halt"}])
def test_what_is_not_known(policy: Any) -> None:
    """An unknown code or policy is rejected with the list of known ones."""
    text = f"kafka: {{bootstrap_servers: b:1}}\nsources: [{{name: s, dialect: canal, topics: [t]}}]\non_error: {policy}"
    said = r"MALFORMED: .*did you mean MALFORMED_JSON|INTERNAL: expected dead_letter, hold_table"
    with pytest.raises(ConfigError, match=said):
        parse(text, {}, "file")
