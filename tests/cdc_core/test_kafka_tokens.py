"""Token providers: how they are found, called, cached and reported. No error or log line contains a token."""

from __future__ import annotations

import logging
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdc_core import kafka_tokens
from cdc_core.errors import ConfigError
from cdc_core.kafka_tokens import TokenError, Tokens
from tests.token_providers import install

SECRET = "correct-horse"

COUNTED = f'''
    import os, time

    class Issued:
        """Token number n, which is valid for `seconds`. `then` is what later calls do, or the file they wait for."""
        calls = 0

        def __init__(self, *, seconds="1000", then=""):
            self.seconds, self.then = float(seconds), then

        def __call__(self):
            self.calls += 1
            match self.then if self.calls > 1 else "":
                case "fail": raise RuntimeError(f"no network in call {{self.calls}}")
                case "exit": raise SystemExit(3)
                case "": pass
                case file:
                    while not os.path.exists(file):
                        time.sleep(0.01)
            return f"{SECRET}-{{self.calls}}", time.time() + self.seconds
    '''


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, in which tests install providers."""
    folder = tmp_path / "site"
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "issued_tokens", raising=False)
    return folder


class Clock:
    """A clock that a test sets, in seconds since 1970. The providers have the real one."""

    def __init__(self) -> None:
        self.now = time.time()

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(kafka_tokens, "time", clock)
    return clock


def error_of(name: str = "issued", **options: str) -> str:
    with pytest.raises(ConfigError) as refused:
        Tokens(name, options)
    return str(refused.value)


def test_a_token_is_kept_until_half_of_its_life_is_over(path: Path, clock: Clock) -> None:
    """All clients share one token. The provider is called again when half of the token's lifetime is over."""
    install(path, "issued", COUNTED)
    tokens = Tokens("issued", {"seconds": "10000"})
    first, expires = tokens()
    assert (first, expires) == tokens("sasl.oauthbearer.config of librdkafka")
    assert f"{SECRET}-1" == first
    clock.now = expires - 5100
    assert first == tokens()[0]
    clock.now = expires - 4900
    assert f"{SECRET}-2" == tokens()[0]


def test_a_provider_that_fails(path: Path, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Callers get an error and try again. The provider is not called for each of them, and a reason is logged once."""
    install(path, "issued", COUNTED)
    tokens = Tokens("issued", {"then": "fail"})
    clock.now = tokens()[1]
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        with pytest.raises(TokenError, match=r"^token provider issued failed: RuntimeError: no network in call 2$"):
            tokens()
    assert "token provider issued failed: RuntimeError: no network in call 2" == tokens.failure
    assert ["no login token: token provider issued failed: RuntimeError: no network in call 2"] == caplog.messages
    assert SECRET not in caplog.text


def test_a_token_is_used_while_the_provider_fails(path: Path, clock: Clock) -> None:
    """A failure matters only when the last token has expired."""
    install(path, "issued", COUNTED)
    tokens = Tokens("issued", {"then": "fail"})
    first = tokens()
    clock.now = first[1] - 1
    assert first == tokens()
    assert "token provider issued failed: RuntimeError: no network in call 2" == tokens.failure
    clock.now = first[1]
    with pytest.raises(TokenError):
        tokens()


def test_a_provider_that_hangs(path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers get an error. The provider is not called again until the call returns, and its late token is used."""
    install(path, "issued", COUNTED)
    answered = path / "answered"
    tokens = Tokens("issued", {"then": str(answered)})
    clock.now = tokens()[1]
    monkeypatch.setattr(kafka_tokens, "_PAUSE", 0)
    monkeypatch.setattr(kafka_tokens, "_PATIENCE", 0.01)
    for _ in range(2):
        with pytest.raises(TokenError, match=r"^token provider issued did not return within 0\.01 seconds$"):
            tokens()
    answered.touch()
    monkeypatch.setattr(kafka_tokens, "_PATIENCE", 300)
    assert f"{SECRET}-2" == tokens()[0]


def test_a_token_is_used_while_another_thread_renews_it(path: Path) -> None:
    """A provider that takes long delays one client, and not those that connect in the meantime."""
    install(path, "issued", COUNTED)
    answered = path / "answered"
    tokens = Tokens("issued", {"then": str(answered)})
    first = tokens()
    tokens._ask_at = 0
    with ThreadPoolExecutor() as pool:
        renewed = pool.submit(tokens)
        while not tokens._lock.locked():
            time.sleep(0.01)
        assert first == tokens()
        assert not renewed.done()
        answered.touch()
    assert f"{SECRET}-2" == renewed.result()[0] == tokens()[0]


def test_a_provider_cannot_stop_the_process(path: Path, clock: Clock) -> None:
    install(path, "issued", COUNTED)
    tokens = Tokens("issued", {"then": "exit"})
    clock.now = tokens()[1]
    with pytest.raises(TokenError, match="SystemExit: 3"):
        tokens()


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (f'"{SECRET}"', "returned a value of type str; expected a tuple of the token (str) and its expiry"),
        (f'("{SECRET}",)', "returned a value of type tuple; expected a tuple of the token"),
        (f'("{SECRET}", "tomorrow")', "returned a value of type tuple; expected a tuple of the token"),
        (f'(b"{SECRET}", 2e9)', "returned a value of type tuple; expected a tuple of the token"),
        (f'("{SECRET}", True)', "returned a value of type tuple; expected a tuple of the token"),
        ('("", 4e9)', "returned a token that is empty or has expired"),
        (f'("{SECRET}", 1_700_000_000)', "returned a token that is empty or has expired"),
        (f'("{SECRET}", float("nan"))', "returned a token that is empty or has expired"),
        (f'("{SECRET}", 1_900_000_000_000)', "returned an expiry more than a year ahead; expected epoch seconds"),
    ],
)
def test_what_is_no_token(path: Path, returned: str, reason: str) -> None:
    """The error describes the value by its type, because it can contain a token."""
    install(path, "issued", f"Issued = lambda: lambda: {returned}")
    with pytest.raises(TokenError) as refused:
        Tokens("issued", {})()
    assert reason in str(refused.value)
    assert SECRET not in str(refused.value)


def test_an_unknown_provider(path: Path) -> None:
    install(path, "issued", COUNTED)
    text = error_of("isued")
    assert "kafka.oauth_provider: unknown token provider 'isued' (did you mean issued?); allowed: " in text
    assert "issued" in text.partition("allowed: ")[2]


def test_two_of_one_name(path: Path) -> None:
    install(path, "issued", COUNTED)
    install(path, "issued", COUNTED, distribution="other_tokens")
    assert (
        "kafka.oauth_provider: token provider issued is offered by several distributions: issued_tokens 1.2 and "
        "other_tokens 1.2. Uninstall all but one"
    ) == error_of()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (COUNTED, "(region): TypeError: Issued.__init__() got an unexpected keyword argument 'region'"),
        ("import nothing_of_the_kind", "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("raise SystemExit(9)", "SystemExit: 9"),
        ("Other = 7", "AttributeError: "),
        ("Issued = lambda region: 7", "token provider issued returned int instead of a function"),
    ],
)
def test_a_provider_that_cannot_be_used(path: Path, code: str, reason: str) -> None:
    """Mistakes in a provider and in its options are configuration errors, found without calling it for a token."""
    install(path, "issued", code)
    text = error_of(region="hunter2")
    assert reason in text
    assert text.startswith("kafka.oauth_provider: token provider issued ")
    assert "hunter2" not in text
