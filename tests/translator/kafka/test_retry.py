"""Waiting for a service retries as long as configured, and only for retryable errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translator.errors import ConfigError, RetryableError
from translator.kafka import retry
from translator.kafka.retry import retry_until


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_PAUSE", 0.001)


def answering(*answers: Exception | int) -> Callable[[float], int]:
    """Return a service that gives these answers in turn."""
    left = list(answers)

    def ask(_seconds: float) -> int:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


def test_asked_until_it_answers() -> None:
    """Each failure is logged, and the first answer counts."""
    said: list[str] = []
    service = answering(RetryableError("not yet"), RetryableError("almost"), 7, 8)
    assert 7 == retry_until("service", service, 60, said.append)
    assert ["waiting for a service: not yet", "waiting for a service: almost"] == said


def test_asked_once() -> None:
    """Without patience, one request is made. The error states the wait and the reason."""
    said: list[str] = []
    with pytest.raises(RetryableError, match=r"^no service available within 0 s: not yet$"):
        retry_until("service", answering(RetryableError("not yet"), 7), 0, said.append)
    assert [] == said


def test_not_for_ever() -> None:
    """The wait ends even if the service would answer later."""
    with pytest.raises(RetryableError, match=r"^no service available within 0\.05 s: not yet$"):
        retry_until("service", answering(*[RetryableError("not yet")] * 1000), 0.05, lambda _: None)


def test_other_errors_are_not_waited_for() -> None:
    """An error that waiting cannot fix is raised immediately."""
    said: list[str] = []
    with pytest.raises(ConfigError, match="wrong"):
        retry_until("service", answering(ConfigError("wrong"), 7), 60, said.append)
    assert [] == said


def test_the_time_that_is_left_is_told() -> None:
    """The service receives the remaining time as a limit, never more than the total and never zero."""
    told: list[float] = []

    def ask(seconds: float) -> int:
        told.append(seconds)
        if len(told) < 3:
            raise RetryableError("not yet")
        return 7

    assert 7 == retry_until("service", ask, 60, lambda _: None)
    assert 60 >= told[0] > told[1] > told[2] > 0
