"""The playground in a real browser: samples of every format, keyboard use, phone width, no scripts, and axe."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe_core_python
import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from dev.pages.browser import MISSING, browser, is_there
from tests.translator.web._serving import served
from translator.web.playground import samples

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not is_there(), reason=MISSING)]

AXE = Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[WebDriver]:
    with browser("--window-size=1280,1000") as driver:
        driver.implicitly_wait(PATIENCE_SECONDS)
        yield driver


def text(driver: WebDriver, selector: str) -> str:
    return driver.find_element(By.CSS_SELECTOR, selector).text


def translate(driver: WebDriver, address: str, sample: str) -> None:
    driver.get(f"{address}?sample={sample}")
    driver.find_element(By.CSS_SELECTOR, "#question button").click()
    driver.find_element(By.ID, "result")


def asked(driver: WebDriver) -> list[str]:
    """Return the addresses that pages requested since the last call."""
    told = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]  # type: ignore[no-untyped-call]
    return [step["params"]["request"]["url"] for step in told if "Network.requestWillBeSent" == step["method"]]


def complaints(driver: WebDriver) -> list[Any]:
    return [entry["message"] for entry in driver.get_log("browser")]  # type: ignore[no-untyped-call]


def test_every_sample(chromium: WebDriver, address: str) -> None:
    """Each sample shows its result without external requests or console messages."""
    for sample in samples().values():
        chromium.get(address)
        chromium.find_element(By.LINK_TEXT, sample.title).click()
        assert sample.title == text(chromium, ".samples [aria-current]")
        chromium.find_element(By.CSS_SELECTOR, "#question button").click()
        expected = "dead" if sample.name == "dead_letter" else "translated"
        assert expected == text(chromium, ".outcome strong"), sample.name
    assert [] == [url for url in asked(chromium) if not url.startswith((address, "chrome://", "data:"))]
    assert [] == complaints(chromium)


def test_by_keyboard(chromium: WebDriver, address: str) -> None:
    """The page works without a pointer, from the first Tab, which offers to skip to the content, to a result."""
    chromium.get(address)
    ActionChains(chromium).send_keys(Keys.TAB).perform()
    assert "Skip to content" == chromium.switch_to.active_element.text
    ActionChains(chromium).send_keys(Keys.ENTER).perform()
    while chromium.switch_to.active_element.get_attribute("id") != "message":
        ActionChains(chromium).send_keys(Keys.TAB).perform()
    message = '{"meta":{"op":"ins","table":"A.B"},"data":{"ID":1}}'
    ActionChains(chromium).send_keys(message).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(
        Keys.CONTROL
    ).perform()
    chromium.find_element(By.ID, "result")
    assert "INSERT of A.B" == text(chromium, "#event-1")
    assert "quest" in text(chromium, "#result table")


def test_axe(chromium: WebDriver, address: str) -> None:
    """axe finds nothing of any severity in the form or any result, in light and dark mode."""
    for scheme in ("light", "dark"):
        emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)  # type: ignore[no-untyped-call]
        for sample in ("canal_dts_legacy", "dead_letter", "qlik_update"):
            translate(chromium, address, sample)
            chromium.execute_script(AXE)
            found = chromium.execute_async_script("axe.run().then(arguments[0])")
            bad = {rule["id"]: rule["nodes"][0]["html"] for rule in found["violations"]}
            assert {} == bad, (scheme, sample)


@pytest.mark.parametrize("width", [360, 3840])
def test_from_phone_to_wall(chromium: WebDriver, address: str, width: int) -> None:
    """The page never scrolls sideways. Wide parts scroll on their own."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)  # type: ignore[no-untyped-call]
    try:
        for sample in samples():
            translate(chromium, address, sample)
            wide = chromium.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= width == wide[1], sample
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})  # type: ignore[no-untyped-call]


def test_without_scripts(chromium: WebDriver, address: str) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})  # type: ignore[no-untyped-call]
    try:
        translate(chromium, address, "shareplex_dts")
        assert "translated" == text(chromium, ".outcome strong")
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})  # type: ignore[no-untyped-call]


def test_nothing_executes(chromium: WebDriver, address: str) -> None:
    """Markup in names and values is shown as text."""
    chromium.get(address)
    hostile = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    body = {"meta": {"op": "ins", "table": f'A."{hostile}"'}, "data": {hostile: hostile}}
    field = chromium.find_element(By.ID, "message")
    chromium.execute_script("arguments[0].value = arguments[1]", field, json.dumps(body))
    chromium.find_element(By.CSS_SELECTOR, "#question button").click()
    assert f"INSERT of A.{hostile}" == text(chromium, "#event-1")
    assert 0 == chromium.execute_script("return document.querySelectorAll('main img, main script').length")
    assert [] == complaints(chromium)
