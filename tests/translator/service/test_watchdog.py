"""What hangs is ended: what counts as hanging, and a service whose event loop really stands."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dev.broker import Broker
from translator.service.watchdog import Watchdog, Watched

# A Canal dialect that hangs over one message, as a bug would.
SERVICE = """
import re, sys
from translator import dialects
from translator.commands import main
from translator.dialects.canal import Canal

class Hanging(Canal):
    def decode(self, message):
        if message.value == b"loop":
            while True:
                pass
        if message.value == b"hold":
            re.match(r"(a+)+$", "a" * 64 + "b")
        return super().decode(message)

dialects.DIALECTS["canal"] = Hanging
sys.argv = ["translator", "run", "-c", sys.argv[1]]
main()
"""


def looks(states: list[object | None], seconds: float = 3) -> list[bool]:
    """Which of successive turns say that it hangs."""
    remaining = iter(states)
    dog = Watchdog([Watched(seconds, lambda: next(remaining), "it has stood")], hard=60)
    return [dog.look() is not None for _ in states]


def test_what_stands_too_long() -> None:
    """Only turns in which the same thing is waited for count; whatever moves begins anew."""
    assert [False, False, False, True] == looks([7, 7, 7, 7])
    assert not any(looks([7, 7, 7, 8, 8, 8, 9]))
    assert not any(looks([None] * 9)), "nothing to wait for"
    assert not any(looks([7, 7, 7, None, 7, 7, 7]))


def test_which_of_them_is_said() -> None:
    """The reason names what hangs and how long it was let."""
    dog = Watchdog([Watched(9, lambda: 1, "one"), Watched(2, lambda: 1, "two")], hard=60)
    assert "two for 2 s" == [dog.look() for _ in range(3)][-1]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"loop", "the event loop has not turned for 10 s; it was at "),
        (b"hold", "Timeout (0:00:10)!"),  # no other thread has a turn: the timer in C, with all stacks
    ],
    ids=["a loop", "a call that lets nobody else work"],
)
def test_a_blocked_event_loop_ends_the_process(
    tmp_path: Path, broker: Broker, free_port: int, value: bytes, said: str
) -> None:
    """Exit code 1 within the configured time, and where it hung."""
    name = f"watchdog-{value.decode()}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(f"{name}-raw", 1, 1)])[f"{name}-raw"].result(20)
    settings = {
        "group": name,
        "kafka": {"bootstrap_servers": broker.bootstrap},
        "output": {"topic": name},
        "timing": {"stuck": 10},  # longer than its start, or a pause of the whole machine, makes the loop stand
        "web": {"port": free_port},
        "sources": [{"name": "s", "dialect": "canal", "topics": [f"{name}-raw"], "options": {"profile": "oss"}}],
    }
    config = tmp_path / "translator.yaml"
    config.write_text(yaml.safe_dump(settings))
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", SERVICE, config], stdout=output, stderr=subprocess.STDOUT)
    try:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce(f"{name}-raw", value)
        assert 0 == producer.flush(20)
        assert 1 == process.wait(180)
        text = log.read_text()
        assert said in text
        assert "decode" in text, "where it hung"
    finally:
        process.kill()
        process.wait()
