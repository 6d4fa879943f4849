"""The playground over HTTP: what it serves, and which requests it rejects."""

import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

import pytest

from tests.translator.web._serving import served
from translator.errors import RetryableError
from translator.web import guarding
from translator.web.guarding import HEADERS
from translator.web.playground import samples
from translator.web.render import asked

HOSTILE = "<script>alert(1)</script>\"'\u202eevil\u2028</textarea>"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


def ask(url: str, form: dict[str, str] | None = None, **headers: str) -> tuple[int, str, Any]:
    data = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(url, data, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        response: HTTPResponse = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers
    with response:
        return response.status, response.read().decode(), response.headers


def test_form_and_answer(address: str) -> None:
    status, text, headers = ask(address)
    assert 200 == status
    assert HEADERS.items() <= dict(headers).items()
    assert all(sample.title in text for sample in samples().values())
    sample = samples()["canal_update"]
    status, text, _ = ask(f"{address}?sample=canal_update")
    assert "selected>canal<" in text
    assert "UPDATE of shop.orders" in text
    form = {"message": sample.message, "dialect": "canal", "options": "profile: oss\r\ntinyint1_as_boolean: true"}
    status, text, _ = ask(address, form)
    assert (200, True) == (status, "UPDATE of shop.orders" in text)
    status, text, _ = ask(address, {**form, "options": "profile: osss"})
    assert (422, True) == (status, "did you mean oss?" in text)


def test_only_the_answer(address: str) -> None:
    """The page asks for it while its user types. It is part of a page and is protected like a page."""
    status, text, headers = ask(f"{address}?part", {"message": '{"x":1}'})
    assert (200, False, True) == (status, "<html" in text, 'id="refusals"' in text)
    assert HEADERS.items() <= dict(headers).items()
    status, text, _ = ask(f"{address}?part", {"message": "{}", "options": HOSTILE, "dialect": HOSTILE})
    assert (422, False) == (status, "<script>alert" in text)
    assert 403 == ask(f"{address}?part", {"message": "{}"}, Origin="http://evil.example")[0]


def test_texts_from_outside_are_text(address: str) -> None:
    """In names, values and options, markup is shown as text and every character is visible."""
    body = '{"data":[{"id":1,"%s":"%s"}],"type":"INSERT","database":"d","table":"%s"}'
    hostile = HOSTILE.replace('"', '\\"')
    form = {"message": body % ((hostile,) * 3), "dialect": "canal", "options": "profile: flink_cdc", "key": HOSTILE}
    for changed in ({}, *({field: HOSTILE} for field in ("dialect", "options", "encoding", "before"))):
        _, text, _ = ask(address, {**form, **changed})
        assert "<script>alert" not in text
        assert '</textarea>"' not in text
        shown = text.partition('id="result"')[2] or text.partition('id="error"')[2]
        assert not {"\u202e", "\u2028"} & set(shown)
    assert "\\u202e" in ask(address, form)[1]


@pytest.mark.parametrize(
    "path", ["static/../desk.py", "static/%2e%2e%2fdesk.py", "static/x", "?sample=x", "x", "static/"]
)
def test_there_is_nothing_else(address: str, path: str) -> None:
    status, text, headers = ask(address + path)
    assert (404, True) == (status, "this page does not exist" in text)
    assert HEADERS.items() <= dict(headers).items()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_forms_from_elsewhere(address: str, headers: dict[str, str]) -> None:
    """A form on another site gets no answer, under any host name of this machine."""
    status, text, _ = ask(address, {"message": "{}"}, **headers)
    assert status in (400, 403)
    assert "Result" not in text
    if headers.get("Host"):
        assert 403 == ask(address, **headers)[0]


def test_own_forms_and_programs(address: str) -> None:
    assert 200 == ask(address, {"message": "{}"}, Origin=address.rstrip("/"), Sec_Fetch_Site="same-origin")[0]
    assert 200 == ask(address, {"message": "{}"})[0]
    assert 200 == ask(address, {"message": "{}"}, Host="localhost:1")[0]


def test_a_paste_without_end(address: str) -> None:
    status, text, _ = ask(address, {"message": "x" * 4_000_000})
    assert (413, True) == (status, "too large for this page" in text)


def test_other_methods(address: str) -> None:
    request = urllib.request.Request(address, method="DELETE")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    refused.value.close()
    assert 405 == refused.value.code


@pytest.mark.parametrize("headers", [{"Host": "[::1"}, {"Host": "[x]"}, {"Origin": "http://["}])
def test_addresses_that_are_none(address: str, headers: dict[str, str]) -> None:
    """A header that cannot be parsed is the client's mistake."""
    status, text, sent = ask(address, {"message": "{}"}, **headers)
    assert (400, True) == (status, "not a valid address" in text)
    assert HEADERS.items() <= dict(sent).items()


def test_long_options(address: str) -> None:
    """They are rejected before they are parsed, because YAML is slow."""
    for options in ("- a\n" * 100_000, "[" * 16_385):
        status, text, _ = ask(address, {"message": "{}", "dialect": "canal", "options": options})
        assert (422, True) == (status, "the options may have at most 16384 bytes here" in text)


def test_a_form_that_never_arrives(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarding, "_BODY_SECONDS", 0.2)
    host, _, port = address.removeprefix("http://").rstrip("/").partition(":")
    with socket.create_connection((host, int(port)), 60) as client:
        head = f"POST / HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        client.sendall(f"{head}Content-Length: 1000\r\n\r\nmessage=".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 408")


class Stuck:
    """A service whose brokers do not respond until the end of the test."""

    def __init__(self) -> None:
        self.end = threading.Event()

    def letters(self) -> None:
        self.end.wait()
        raise RetryableError("no broker available")


def test_pages_without_brokers_do_not_stop_the_playground(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck: Any = Stuck()
    monkeypatch.setattr(asked, "__kwdefaults__", {"seconds": 0.2})
    with served(stuck) as desk:
        try:
            for _ in range(8):
                status, text, _ = ask(f"{desk}letters")
                assert (503, True) == (status, "no broker responded within 0.2 s" in text)
            assert 200 == ask(desk, {"message": "{}"})[0]
        finally:
            stuck.end.set()
