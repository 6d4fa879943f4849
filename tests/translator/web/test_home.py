"""The home page on the real broker: the state of each part, what needs a person, and where it leads."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from dev.pages.browser import MISSING, browser, is_there
from dev.servers.broker import Broker
from tests.translator.operations._replay import AMBIGUOUS, CLEAR, Yard, update
from tests.translator.web._serving import served
from tests.translator.web.test_browser import AXE, PATIENCE_SECONDS
from tests.translator.web.test_desk import ask
from tests.translator.web.test_sink_page import sink
from translator.web import home_pages
from translator.web.service_view import ServiceView
from translator.web.sink_view import SinkView


@pytest.fixture
def yard(broker: Broker) -> Iterator[Yard]:
    """Two dead letters, and a group without a process."""
    found = Yard(broker.bootstrap)
    found.feed(1, update(1, name="hush"), update(2, name="hush"))
    found.translate(found.settings(AMBIGUOUS))
    yield found
    found.close()


def test_what_needs_a_person(yard: Yard, tmp_path: Path) -> None:
    """A stopped service, dead letters and a parked table, each with its advice, page and runbook."""
    view = ServiceView(yard.settings(CLEAR), print)
    with served(view, sink=SinkView(sink(tmp_path))) as address:
        status, text, _ = ask(f"{address}home")
        part = ask(f"{address}home?part")[1]
        books = ask(f"{address}runbooks")[1]
    assert 200 == status
    assert 'id="overall"><strong>broken' in text
    for expected in ("No process runs in group", "2 with AMBIGUOUS_VARIANT", "is parked with TABLE_CLASH"):
        assert expected in text, expected
    for alert in ("TranslatorDown", "TranslatorDeadLetters", "SinkTablesParked"):
        assert f'href="/runbooks#{alert}"' in text
        assert f'id="{alert}"' in books
    assert "OR&lt;b&gt;\\u202eDERS" in text
    assert "hush" not in text
    assert ("<html" in text, "<html" in part) == (True, False)


def test_a_sink_that_does_not_respond(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the page does not wait for it, and its state is unknown instead of healthy."""
    monkeypatch.setattr(home_pages, "_SINK_SECONDS", 0.2)
    end = threading.Event()

    class Stuck:
        def state(self) -> None:
            end.wait()

    stuck: Any = Stuck()
    with served(ServiceView(yard.settings(CLEAR), print), sink=stuck) as address:
        try:
            for _ in range(3):
                status, text, _ = ask(f"{address}home")
                assert (200, True) == (status, "did not respond within 0.2 s" in text)
                assert '<li class="unknown">' in text
        finally:
            end.set()


def test_a_sink_that_cannot_be_asked(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "sink.yaml").write_text("pipelin: x")
    broken = SinkView(tmp_path / "sink.yaml")
    with served(ServiceView(yard.settings(CLEAR), print), sink=broken) as address:
        status, text, _ = ask(f"{address}home")
    assert (200, True) == (status, "unknown setting &#39;pipelin&#39;" in text)


@pytest.mark.skipif(not is_there(), reason=MISSING)
def test_in_a_browser(yard: Yard, tmp_path: Path) -> None:
    """No page of a service scrolls sideways at 320 pixels, lag stays visible, and axe finds nothing."""
    view, lakehouse = ServiceView(yard.settings(CLEAR), print), SinkView(sink(tmp_path))
    with served(view, sink=lakehouse) as address, browser("--window-size=1280,1000") as driver:
        for scheme in ("light", "dark"):
            emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
            for path in ("home", "runbooks"):
                driver.get(address + path)
                driver.execute_script(AXE)
                found = driver.execute_async_script("axe.run().then(arguments[0])")
                assert [] == [rule["id"] for rule in found["violations"]], (scheme, path)
        driver.get(f"{address}home")
        boxes = [box.rect for box in driver.find_elements(By.CSS_SELECTOR, ".across .box")]
        assert 4 == len(boxes)
        assert 1 == len({box["y"] for box in boxes})
        assert not driver.find_element(By.CSS_SELECTOR, ".down").is_displayed()
        # The page refreshes itself between two checks.
        wait = WebDriverWait(driver, PATIENCE_SECONDS, ignored_exceptions=(WebDriverException,))
        lag = "return Number(document.querySelector('#lags td').textContent)"
        before = driver.execute_script(lag)
        yard.feed(0, *(update(row) for row in range(10, 15)))
        wait.until(lambda _: before + 5 == driver.execute_script(lag))
        course = driver.find_element(By.CSS_SELECTOR, "#lags .spark").get_attribute("aria-label")
        assert course is not None
        assert f" to {before + 5}, at most {before + 5}" in course
        # Someone who uses the keyboard is not sent back to the top by a refresh.
        at = driver.find_element(By.ID, "at").text
        driver.execute_script("document.querySelector('[href*=SinkTablesParked]').focus()")
        wait.until(lambda _: at != driver.find_element(By.ID, "at").text)
        assert "runbook SinkTablesParked" == driver.switch_to.active_element.text
        size = {"width": 320, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for path in ("home", "status", "letters", "schemas", "sink", "runbooks", "codes"):
            driver.get(address + path)
            wide = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= 320 == wide[1], path
        driver.get(f"{address}home")
        assert not driver.find_element(By.CSS_SELECTOR, ".across").is_displayed()
        rows = [box.rect["y"] for box in driver.find_elements(By.CSS_SELECTOR, ".down .box")]
        assert (4, rows) == (len(set(rows)), sorted(rows))
        for path, cell in (("home", "#lags tbody td"), ("status", "#partitions .lag")):
            driver.get(address + path)
            found = "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return r.right"
            assert driver.execute_script(found, cell) <= 320, path
        driver.get(f"{address}home")
        driver.find_element(By.LINK_TEXT, "runbook TranslatorDown").click()
        wait.until(lambda _: "TranslatorDown" == driver.find_element(By.CSS_SELECTOR, "h2:target").text)
        assert [] == [entry["message"] for entry in driver.get_log("browser")]  # type: ignore[no-untyped-call]
