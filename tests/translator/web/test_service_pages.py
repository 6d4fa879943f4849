"""The service's pages on the real broker: their content, access to values, and a replay."""

import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import axe_core_python
import pytest
from markupsafe import escape
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from dev.pages.browser import MISSING, browser, is_there
from dev.servers.broker import Broker
from tests.translator.operations._replay import AMBIGUOUS, CLEAR, Yard, update
from tests.translator.web._serving import served
from tests.translator.web.test_desk import HOSTILE, ask
from tests.translator.web.test_sink_page import sink
from translator.config.settings import Settings
from translator.state.state_snapshot import StateSnapshot, read_state
from translator.web import service_view
from translator.web.access import Access
from translator.web.service_view import ServiceView
from translator.web.sink_view import SinkView

SECRET = "hush-<b>hush</b>"
TOKEN = "a token of the tests"
LISTED = "{}letters?code=AMBIGUOUS_VARIANT"
QUERY = "replay?source=shop&code=AMBIGUOUS_VARIANT"
PATIENCE_SECONDS = 120

AXE = Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def yard(broker: Broker) -> Iterator[Yard]:
    """Two letters with a secret in their rows, which the current configuration can read, and one that remains dead."""
    found = Yard(broker.bootstrap)
    found.feed(1, update(1, name=SECRET), update(2, name=SECRET), b"{]")
    found.translate(found.settings(AMBIGUOUS))
    yield found
    found.close()


def desk(yard: Yard, **changes: Any) -> ServiceView:
    return ServiceView(yard.settings(CLEAR, **changes), print)


class Visitor:
    """A client that keeps cookies."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def ask(self, path: str, form: dict[str, str] | None = None) -> str:
        data = None if form is None else urllib.parse.urlencode(form).encode()
        with self._opener.open(self._address + path, data, timeout=60) as response:
            return str(response.read().decode())


def first_letter(text: str) -> str:
    return "letters/" + text.partition('href="/letters/')[2].partition('"')[0]


def test_values_are_for_who_logs_in(yard: Yard) -> None:
    """Without a login, neither the message nor its events are visible, and replay is impossible."""
    with served(desk(yard), Access(TOKEN)) as address:
        listed = ask(LISTED.format(address))[1]
        assert "AMBIGUOUS_VARIANT" in listed
        letter = first_letter(listed)
        status, text, _ = ask(address + letter)
        assert 200 == status
        assert "an UPDATE has the same columns in both images" in text
        assert "outcome: translated, 1 events" in text
        assert "Log in to see" in text
        assert 403 == ask(f"{address}replay", {"source": "shop", "code": "AMBIGUOUS_VARIANT"})[0]
        assert 403 == ask(f"{address}login", {"token": TOKEN + "?", "next": "/" + letter})[0]
        dry = ask(address + QUERY)[1]
        assert 'translated</th><td class="number">2<' in dry
        assert "Replay these" not in dry
        assert f'href="/login?{urllib.parse.urlencode({"next": "/" + QUERY})}"' in dry
        assert "hush" not in text + listed + dry
        visitor = Visitor(address)
        open_ = visitor.ask("login", {"token": TOKEN, "next": "/" + letter})
        assert "hush-&lt;b&gt;hush" in open_
        assert "<b>hush" not in open_
        assert "Replay these" in visitor.ask(QUERY)


def test_every_letter_has_its_reason_and_age(yard: Yard) -> None:
    with served(desk(yard)) as address:
        text = ask(f"{address}letters")[1]
        rows = text.partition('id="letters"')[2]
        assert 3 == rows.count('<tr><th scope="row">')
        assert 2 == rows.count("an UPDATE has the same columns in both images")
        assert 3 == rows.count(" s ago<br>") + rows.count(" min ago<br>")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("code=MALFORMED_JSON", 1),
        ("code=AMBIGUOUS_VARIANT&table=shop.t", 2),
        ("code=MALFORMED_JSON&table=shop.t", 0),
        ("source=shop&within=last+hour&state=all", 3),
        ("code=FRAMING", 0),
    ],
)
def test_filters(yard: Yard, query: str, found: int) -> None:
    with served(desk(yard)) as address:
        status, text, _ = ask(f"{address}letters?{query}")
    assert (200, found) == (status, text.partition('id="letters"')[2].count('<tr><th scope="row">'))
    assert ("No dead letter matches" in text) == (not found)


@pytest.mark.parametrize("name", ["within", "state", "code", "table", "source"])
def test_hostile_filters(yard: Yard, name: str) -> None:
    """A value that a filter does not have is an error, or selects nothing. Its markup is text."""
    with served(desk(yard)) as address:
        status, text, _ = ask(f"{address}letters?{urllib.parse.urlencode({name: HOSTILE})}")
    assert (400 if name in ("within", "state") else 200) == status
    assert "<script>alert" not in text
    assert "\u202e" not in text.partition("<main")[2].replace(f'value="{escape(HOSTILE)}"', "")


def test_a_dry_run_needs_dead_letters(yard: Yard) -> None:
    """Only the groups that the list shows have a dry run, which needs no login."""
    with served(desk(yard)) as address:
        assert 404 == ask(f"{address}replay?source=shop&code=FRAMING")[0]
        assert 404 == ask(f"{address}replay")[0]
        assert "nobody can log in" in ask(address + QUERY)[1]


def test_a_dry_run_creates_nothing(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run must not create topics or register schemas, because anyone who reads the page can start one."""
    asked: list[Settings] = []
    monkeypatch.setattr(service_view, "replay", lambda settings, *_, execute: asked.append(settings))
    registry: Any = {"url": "http://127.0.0.1:1", "auto_register": True}
    view = desk(yard, registry=registry, topics={"create": True})
    for execute in (False, True):
        view.replay("shop", "AMBIGUOUS_VARIANT", execute=execute)
    found = [(settings.topics.create, settings.registry and settings.registry.auto_register) for settings in asked]
    assert [(False, False), (True, True)] == found


def test_a_letter_that_would_be_the_same(yard: Yard) -> None:
    with served(ServiceView(yard.settings(AMBIGUOUS), print)) as address:
        assert (
            "the same dead letter, for the same reason"
            in ask(address + first_letter(ask(LISTED.format(address))[1]))[1]
        )


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example/", "/letters//evil", "/letters/\r\nX: y", ""])
def test_a_login_leads_nowhere_else(yard: Yard, to: str) -> None:
    with served(desk(yard), Access(TOKEN)) as address:
        opener = urllib.request.build_opener(_Stays())
        form = urllib.parse.urlencode({"token": TOKEN, "next": to}).encode()
        with opener.open(f"{address}login", form, timeout=60) as response:
            assert ("/letters", None) == (response.headers["Location"], response.headers["X"])


class _Stays(urllib.request.HTTPErrorProcessor):
    """Does not follow redirects."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response


def test_without_a_token_nobody_logs_in(yard: Yard) -> None:
    """Without a token, only users that a trusted proxy names can see values."""
    with served(desk(yard)) as address:
        letter = first_letter(ask(LISTED.format(address))[1])
        assert "Log in" not in ask(address + letter)[1]
        assert 404 == ask(f"{address}login")[0]
        assert 403 == ask(f"{address}login", {"token": ""})[0]
        form = {"source": "shop", "code": "AMBIGUOUS_VARIANT"}
        assert 403 == ask(f"{address}replay", form, X_Forwarded_User="me")[0]
    with served(desk(yard), Access(None, "X-Forwarded-User")) as address:
        assert "hush" in ask(address + letter, X_Forwarded_User="me")[1]
        assert "hush" not in ask(address + letter)[1]


def test_masks_hold_here_too(yard: Yard) -> None:
    """For a masked source, nobody sees messages, their structure, or reasons from before the masks."""
    masked = desk(yard, masks={"rules": [{"column": "name", "mask": "drop"}]})
    with served(masked, Access(None, "X-Forwarded-User")) as address:
        listed = ask(f"{address}letters", X_Forwarded_User="me")[1]
        text = ask(address + first_letter(listed), X_Forwarded_User="me")[1]
    assert "hush" not in text + listed
    assert 3 == listed.count("not shown, because columns are masked")
    assert "columns of the source are masked" in text
    assert "<pre" not in text.partition('id="raw-title"')[2].partition("</section>")[0]


def test_pages_share_the_schemas(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read only once for several queries of the status and other pages."""
    read = []

    def counted(*arguments: Any) -> StateSnapshot:
        read.append(arguments)
        return read_state(*arguments)

    monkeypatch.setattr(service_view, "read_state", counted)
    monkeypatch.setattr(service_view, "_STATUS_SECONDS", 0.0)
    monkeypatch.setattr(service_view, "_LETTERS_SECONDS", 3600.0)
    shown = desk(yard)
    for _ in range(2):
        assert 3 == sum(found.count for found in shown.status().dead)
        assert {} == shown.known().schemas
    assert 1 == len(read)


def test_brokers_that_are_away(yard: Yard, free_port: int) -> None:
    away = desk(yard, kafka={"bootstrap_servers": f"127.0.0.1:{free_port}"}, timing={"broker_wait": 0})
    with served(away) as address:
        for path in ("status", "letters"):
            status, text, _ = ask(address + path)
            assert (503, True) == (status, "No response" in text)
        assert 200 == ask(address)[0]


@pytest.mark.skipif(not is_there(), reason=MISSING)
def test_in_a_browser(yard: Yard, tmp_path: Path) -> None:
    """The status changes while messages arrive. A letter is explained, viewed after a login, and replayed."""
    lakehouse = SinkView(sink(tmp_path))
    with served(desk(yard), Access(TOKEN), lakehouse) as address, browser("--window-size=1280,1000") as driver:
        # The page refreshes itself and follows links between two checks.
        wait = WebDriverWait(driver, PATIENCE_SECONDS, ignored_exceptions=(WebDriverException,))
        driver.get(f"{address}status")
        lag = "return Number(document.getElementById('lag').textContent)"
        before = driver.execute_script(lag)
        yard.feed(0, *(update(row) for row in range(10, 15)))
        wait.until(lambda _: before + 5 == driver.execute_script(lag))
        driver.find_element(By.LINK_TEXT, "Dead letters").click()
        wait.until(lambda _: "Dead letters" == driver.find_element(By.TAG_NAME, "h1").text)
        ambiguous = "//table[@id='letters']//tr[td='AMBIGUOUS_VARIANT']//a"
        driver.find_element(By.XPATH, ambiguous).click()
        wait.until(lambda _: driver.find_elements(By.PARTIAL_LINK_TEXT, "Log in to see"))
        driver.find_element(By.PARTIAL_LINK_TEXT, "Log in to see").click()
        wait.until(lambda _: driver.find_elements(By.ID, "token"))
        driver.find_element(By.ID, "token").send_keys(TOKEN)
        driver.find_element(By.CSS_SELECTOR, "form button").click()
        wait.until(lambda _: driver.find_elements(By.ID, "event-1"))
        raw, parsed, event = driver.find_elements(By.CSS_SELECTOR, ".sides > section")
        assert raw.rect["y"] == parsed.rect["y"] == event.rect["y"]
        assert (True, False, True) == tuple(SECRET in part.text for part in (raw, parsed, event))
        here = driver.current_url.removeprefix(address)
        for scheme in ("dark", "light"):
            emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
            for path in ("status", "letters", "schemas", "sink", here, "login", QUERY, "letters?code=FRAMING"):
                driver.get(address + path)
                driver.execute_script(AXE)
                found = driver.execute_async_script("axe.run().then(arguments[0])")
                assert [] == [rule["id"] for rule in found["violations"]], (scheme, path)
        driver.get(f"{address}letters")
        Select(driver.find_element(By.ID, "code")).select_by_value("MALFORMED_JSON")
        driver.find_element(By.CSS_SELECTOR, ".filters button").click()
        wait.until(lambda _: 1 == len(driver.find_elements(By.CSS_SELECTOR, "#letters tbody tr")))
        driver.find_element(By.PARTIAL_LINK_TEXT, "What would a replay do").click()
        wait.until(lambda _: driver.find_elements(By.ID, "counts"))
        assert "translated 2" in driver.find_element(By.ID, "counts").text
        driver.find_element(By.CSS_SELECTOR, "main form button").click()
        wait.until(lambda _: "Replayed" == driver.find_element(By.TAG_NAME, "h1").text)
        driver.find_element(By.LINK_TEXT, "All dead letters").click()
        wait.until(lambda _: "AMBIGUOUS_VARIANT shop 0 – " in driver.find_element(By.ID, "groups").text)
        driver.find_element(By.LINK_TEXT, "Schemas").click()
        wait.until(lambda _: driver.find_elements(By.CSS_SELECTOR, "main table a"))
        driver.find_element(By.CSS_SELECTOR, "main table a").click()
        wait.until(lambda _: driver.find_elements(By.ID, "table"))
        assert "shop.t, source shop" == driver.find_element(By.ID, "table").text
        assert "varchar(10)" in driver.find_element(By.CSS_SELECTOR, "main table").text
        assert "this schema" in driver.find_element(By.CSS_SELECTOR, ".timeline .shown").text
        assert [] == [entry["message"] for entry in driver.get_log("browser")]  # type: ignore[no-untyped-call]
