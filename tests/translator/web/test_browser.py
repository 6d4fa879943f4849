"""The playground in a real browser: samples of every format, keyboard use, phone width, no scripts, and axe."""

import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe_core_python
import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from dev.pages.browser import MISSING, browser, is_there
from tests.translator.web._serving import served
from translator.web.playground import samples

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not is_there(), reason=MISSING)]

AXE = Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
NOBODYS = urllib.parse.quote(json.dumps({"message": '{"x":1}'}))
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
    WebDriverWait(chromium, PATIENCE_SECONDS).until(
        lambda _: "message" == chromium.switch_to.active_element.get_attribute("id")
    )
    message = '{"meta":{"op":"ins","table":"A.B"},"data":{"ID":1}}'
    ActionChains(chromium).send_keys(message).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(
        Keys.CONTROL
    ).perform()
    chromium.find_element(By.ID, "result")
    assert "INSERT of A.B" == text(chromium, "#event-1")
    assert "quest" in text(chromium, "[aria-label='Proposed options']")


def test_axe(chromium: WebDriver, address: str) -> None:
    """axe finds nothing of any severity in the form or any result, in light and dark mode."""
    for scheme in ("light", "dark"):
        emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)  # type: ignore[no-untyped-call]
        for path in ("?sample=canal_swap", "?sample=dead_letter", "?sample=qlik_update", "", "codes", f"#m={NOBODYS}"):
            chromium.get("about:blank")
            chromium.get(address + path)
            if "m=" in path:
                chromium.find_element(By.ID, "refusals")
            chromium.execute_script(AXE)
            found = chromium.execute_async_script("axe.run().then(arguments[0])")
            bad = {rule["id"]: rule["nodes"][0]["html"] for rule in found["violations"]}
            assert {} == bad, (scheme, path)


@pytest.mark.parametrize("width", [320, 3840])
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


def test_while_one_types(chromium: WebDriver, address: str) -> None:
    """The answer follows the message without a click, and an incomplete message is no reason to stop."""
    chromium.get(address)
    field = chromium.find_element(By.ID, "message")
    field.send_keys('{"meta":{"op":"ins","table":"A.B"},"data":')
    assert "not recognised" == text(chromium, ".outcome strong")
    assert 4 == len(chromium.find_elements(By.CSS_SELECTOR, "#refusals li"))
    assert "playground" not in text(chromium, "#refusals")
    field.send_keys('{"ID":1}}')
    assert "INSERT of A.B" == text(chromium, "#event-1")
    assert field == chromium.switch_to.active_element
    meanings = text(chromium, ".meanings")
    assert "TZ_UNKNOWN" not in meanings or "no zone is configured" in meanings
    assert [] == complaints(chromium)


def test_message_and_event_side_by_side(chromium: WebDriver, address: str) -> None:
    """A sample needs no click. The swap shows both readings, and its note leads to its meaning."""
    chromium.get(f"{address}?sample=canal_swap")
    form, result = chromium.find_element(By.ID, "question").rect, chromium.find_element(By.ID, "result").rect
    assert form["x"] + form["width"] <= result["x"]
    assert result["y"] < form["y"] + 100
    read = text(chromium, "[aria-labelledby=event-1]"), text(chromium, "[aria-labelledby=other-1]")
    assert ('"new" "paid" changed', '"paid" "new" changed') == tuple(part.rpartition("state ")[2] for part in read)
    chromium.find_element(By.LINK_TEXT, "SWAP_OLD_DATA").click()
    target = "const t = document.querySelector('dt:target'); return t && t.nextElementSibling.textContent"
    told = WebDriverWait(chromium, PATIENCE_SECONDS).until(lambda _: chromium.execute_script(target))
    assert "old was read as the row after the change" in told


def test_a_permanent_link(chromium: WebDriver, address: str) -> None:
    """The link restores message and options, and the message is not in any address that the browser requests."""
    message = '{"meta":{"op":"ins","table":"Lä.B"},"data":{"ID":"50% & #1"}}'
    chromium.get(address)
    assert not chromium.find_element(By.ID, "permalink").is_displayed()
    chromium.find_element(By.ID, "message").send_keys(message)
    chromium.find_element(By.ID, "options").send_keys("timezone: Europe/Berlin")
    chromium.find_element(By.CSS_SELECTOR, "#dialect [value=shareplex]").click()
    link = chromium.find_element(By.ID, "permalink").get_attribute("href")
    assert link is not None
    asked(chromium)
    chromium.get("about:blank")
    chromium.get(link)
    assert "INSERT of Lä.B" == text(chromium, "#event-1")
    found = chromium.execute_script("return [...document.getElementById('question')].map((field) => field.value)")
    assert [message, "shareplex", "timezone: Europe/Berlin"] == [found[0], found[1], found[-4]]
    assert [] == [url for url in asked(chromium) if "50" in url.partition("#")[0]]
    for broken in ("#m=", "#m=%7B", "#m=null", "#m=%E0%A4%A"):
        chromium.get("about:blank")
        chromium.get(address + broken)
        assert "The link is incomplete" in text(chromium, "#answer"), broken


def test_a_hostile_permanent_link(chromium: WebDriver, address: str) -> None:
    """Anyone can send a link, so its fields are text, and only the known ones are used."""
    hostile = "<img src=x onerror=alert(1)>"
    fields = {"message": hostile, "options": hostile, "dialect": hostile, "__proto__": {"key": 1}, "action": hostile}
    chromium.get("about:blank")
    chromium.get(f"{address}#m={urllib.parse.quote(json.dumps(fields))}")
    chromium.find_element(By.CSS_SELECTOR, "#answer .alert, #answer .outcome")
    assert 0 == chromium.execute_script("return document.querySelectorAll('main img, main script').length")
    assert hostile == chromium.find_element(By.ID, "message").get_attribute("value")
    complaints(chromium)  # the answer has the status 422


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
