"""Logging in: throttled, reported, and a session that ends."""

from __future__ import annotations

import asyncio
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPMessage
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tests.translator.web._serving import served
from translator.operations.dlq.reader import Dead
from translator.web import access
from translator.web.access import Access

TOKEN = "a token of the tests"


class Empty:
    """A service without dead letters."""

    def letters(self) -> Dead:
        return Dead("")


class _Stays(urllib.request.HTTPErrorProcessor):
    """Return redirects and errors as they are."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response


def post(url: str, form: dict[str, str], **headers: str) -> tuple[int, HTTPMessage]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, urllib.parse.urlencode(form).encode(), named)
    with urllib.request.build_opener(_Stays()).open(request, timeout=60) as response:
        return response.status, response.headers


def login_page(address: str, cookie: str) -> str:
    request = urllib.request.Request(f"{address}login", headers={"Cookie": cookie})
    with urllib.request.urlopen(request, timeout=60) as response:
        return str(response.read().decode())


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def address(said: list[str]) -> Iterator[str]:
    service: Any = Empty()
    with served(service, Access(TOKEN, say=said.append)) as found:
        yield found


def log_in(address: str, **headers: str) -> str:
    status, sent = post(f"{address}login", {"token": TOKEN}, **headers)
    assert 303 == status
    return sent["Set-Cookie"] or ""


def test_a_session_ends_with_a_logout(address: str, said: list[str]) -> None:
    """The cookie lives 12 hours and is a random text. After the logout, it grants nothing."""
    cookie = log_in(address)
    assert "Max-Age=43200" in cookie
    assert "Secure" not in cookie
    name = cookie.partition(";")[0]
    assert "Log out" in login_page(address, name)
    assert 303 == post(f"{address}logout", {}, Cookie=name)[0]
    assert "Log out" not in login_page(address, name)
    assert ["login accepted from 127.0.0.1"] == said


def test_a_session_ends_after_its_time(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_SESSION_SECONDS", 0)
    assert "Log out" not in login_page(address, log_in(address).partition(";")[0])


def test_behind_tls_the_cookie_is_secure(address: str) -> None:
    assert "Secure" in log_in(address, X_Forwarded_Proto="https")


def test_guesses_are_reported_without_the_token(address: str, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_FAILURE_SECONDS", 0)
    with ThreadPoolExecutor(4) as pool:
        guesses = ({"token": f"guess {number}"} for number in range(4))
        found = list(pool.map(lambda form: post(f"{address}login", form)[0], guesses))
    assert [403] * 4 == found
    assert ["login rejected: wrong token from 127.0.0.1"] * 4 == said
    log_in(address)


def test_guesses_wait_for_each_other(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One wrong token delays all logins, and only a few can wait. A correct token has no shortcut."""
    monkeypatch.setattr(access, "_ATTEMPTS", 3)

    async def scenario() -> None:
        pauses: asyncio.Queue[asyncio.Event] = asyncio.Queue()

        async def pause(_: float) -> None:
            end = asyncio.Event()
            pauses.put_nowait(end)
            await end.wait()

        login = Access(TOKEN, say=said.append)
        request: Any = make_mocked_request("POST", "/login")
        with monkeypatch.context() as patched:
            patched.setattr(access, "_pause", pause)
            tries = [asyncio.create_task(login.log_in(request, text, web.Response())) for text in ("a", "b", TOKEN)]
            first = await pauses.get()
            with pytest.raises(web.HTTPTooManyRequests):
                await login.log_in(request, TOKEN, web.Response())
            assert (True, 1, False) == (pauses.empty(), len(said), any(task.done() for task in tries))
            first.set()
            (await pauses.get()).set()
            assert [False, False, True] == await asyncio.gather(*tries)

    asyncio.run(scenario())
