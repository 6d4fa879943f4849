"""A hanging service is ended: what counts as hanging, and a service whose event loop is blocked."""

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dev.servers.broker import Broker, hold_port
from translator.service.watchdog import Watchdog, Watched

# A Canal dialect that hangs on a message like a bug would, but without using CPU: a loop, and a C call that keeps the
# GIL, like a runaway regular expression.
SERVICE = """
import ctypes, sys, time
from msgspec.structs import replace
from translator import dialects
from translator.commands import main
from translator.dialects.canal import Canal

class Hanging(Canal):
    def decode(self, message):
        if message.value == b"loop":
            while True:
                time.sleep(0.01)
        if message.value == b"hold":
            ctypes.PyDLL(None).sleep(3600)
        return super().decode(message)

dialects.DIALECTS["canal"] = replace(dialects.DIALECTS["canal"], build=Hanging)
sys.argv = ["translator", "run", "-c", sys.argv[1]]
main()
"""


def looks(states: list[object | None], seconds: float = 3) -> list[bool]:
    """Return which of the successive checks report a hang."""
    remaining = iter(states)
    dog = Watchdog([Watched(seconds, lambda: next(remaining), "it has stood")], hard=60)
    return [dog.look() is not None for _ in states]


def test_what_stands_too_long() -> None:
    """Only consecutive checks with the same pending work count. Any progress starts over."""
    assert [False, False, False, True] == looks([7, 7, 7, 7])
    assert not any(looks([7, 7, 7, 8, 8, 8, 9]))
    assert not any(looks([None] * 9)), "nothing to wait for"
    assert not any(looks([7, 7, 7, None, 7, 7, 7]))


def test_which_of_them_is_said() -> None:
    """The reason states what hangs and how long it was allowed to."""
    dog = Watchdog([Watched(9, lambda: 1, "one"), Watched(2, lambda: 1, "two")], hard=60)
    assert "two for 2 s" == [dog.look() for _ in range(3)][-1]


@dataclass(frozen=True)
class Ended:
    """A service after its end."""

    code: int
    text: str


@pytest.fixture(scope="module")
def ended(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> dict[bytes, Ended]:
    """Start one service per way to hang, selected by message. They hang in parallel."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    processes: dict[bytes, subprocess.Popen[bytes]] = {}
    logs: dict[bytes, Path] = {}
    with ExitStack() as ports:
        try:
            for value in (b"loop", b"hold"):
                name = f"watchdog-{value.decode()}"
                port = ports.enter_context(hold_port()).getsockname()[1]
                admin.create_topics([NewTopic(f"{name}-raw", 1, 1)])[f"{name}-raw"].result(20)
                directory = tmp_path_factory.mktemp(name)
                logs[value] = directory / "log"
                processes[value] = hanging(directory, logs[value], broker.bootstrap, name, port)
                producer.produce(f"{name}-raw", value)
            assert 0 == producer.flush(20)
            codes = {value: process.wait(180) for value, process in processes.items()}
        finally:
            for process in processes.values():
                process.kill()
                process.wait()
    return {value: Ended(code, logs[value].read_text()) for value, code in codes.items()}


def hanging(directory: Path, log: Path, bootstrap: str, name: str, port: int) -> subprocess.Popen[bytes]:
    settings = {
        "group": name,
        "kafka": {"bootstrap_servers": bootstrap},
        "output": {"topic": name},
        "timing": {"stuck": 10},  # blocks the loop longer than a start or a pause of the machine
        "web": {"port": port},
        "sources": [{"name": "s", "dialect": "canal", "topics": [f"{name}-raw"], "options": {"profile": "oss"}}],
    }
    config = directory / "translator.yaml"
    config.write_text(yaml.safe_dump(settings))
    with log.open("wb") as output:
        return subprocess.Popen([sys.executable, "-c", SERVICE, config], stdout=output, stderr=subprocess.STDOUT)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"loop", "the event loop has been blocked for 10 s; event loop at "),
        (b"hold", "Timeout (0:00:10)!"),  # no other thread can run; the C timer writes all stacks
    ],
    ids=["a loop", "a call that lets nobody else work"],
)
def test_a_blocked_event_loop_ends_the_process(ended: dict[bytes, Ended], value: bytes, said: str) -> None:
    """The exit code is 1 within the configured time, with the place of the hang."""
    found = ended[value]
    assert 1 == found.code
    assert said in found.text
    assert "decode" in found.text, "where it hung"
