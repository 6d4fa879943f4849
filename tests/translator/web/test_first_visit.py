"""A first visit without the documentation: from the home page to the message that broke, and to the parked table."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from dev.pages.browser import MISSING, browser, is_there
from dev.servers.broker import Broker
from tests.translator.operations._replay import AMBIGUOUS, Yard, update
from tests.translator.web._serving import served
from tests.translator.web.test_browser import PATIENCE_SECONDS
from tests.translator.web.test_sink_page import sink
from translator.web.service_view import ServiceView
from translator.web.sink_view import SinkView

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not is_there(), reason=MISSING)]

MOST_TABS = 60


def _by_keyboard(driver: WebDriver, words: str) -> None:
    """Follow the first link from here with these words, as Tab and Enter do."""
    for _ in range(MOST_TABS):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        focused = driver.switch_to.active_element
        if focused.tag_name == "a" and words in (focused.get_attribute("textContent") or ""):
            ActionChains(driver).send_keys(Keys.ENTER).perform()
            return
    raise AssertionError(f"{words!r} was not reached with {MOST_TABS} times Tab")


def _by_touch(driver: WebDriver, words: str) -> None:
    """Tap on the first link with these words."""
    script = """
    const link = [...document.querySelectorAll("main a")].find((one) => one.textContent.includes(arguments[0]));
    link.scrollIntoView({ block: "center" });
    const box = link.getClientRects()[0];
    return { x: box.x + Math.min(10, box.width / 2), y: box.y + box.height / 2 };
    """
    place = driver.execute_script(script, words)
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [place]})
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.fixture
def yard(broker: Broker) -> Iterator[Yard]:
    """One message that nobody can translate, at offset 1 of its topic."""
    found = Yard(broker.bootstrap)
    found.feed(1, update(1, both=False), update(2, name="hush"))
    found.translate(found.settings(AMBIGUOUS))
    yield found
    found.close()


@pytest.mark.parametrize(("follow", "width"), [(_by_keyboard, 1280), (_by_touch, 360)], ids=["keyboard", "touch"])
def test_which_message_broke_and_why(
    yard: Yard, tmp_path: Path, follow: Callable[[WebDriver, str], None], width: int
) -> None:
    """Home names the need, its link leads to the list with the reason, and the letter names the raw record."""
    view = ServiceView(yard.settings(AMBIGUOUS), print)
    with served(view, sink=SinkView(sink(tmp_path))) as address, browser() as driver:
        wait = WebDriverWait(driver, PATIENCE_SECONDS, ignored_exceptions=(WebDriverException,))
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": follow is _by_touch}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": follow is _by_touch})

        def title(expected: str) -> None:
            wait.until(lambda _: expected == driver.find_element(By.TAG_NAME, "h1").text)

        driver.get(f"{address}home")
        needs = driver.find_element(By.CSS_SELECTOR, ".needs").text
        assert "Open dead letters of source shop: 1 with AMBIGUOUS_VARIANT." in needs
        follow(driver, "Show Open dead letters")
        title("Dead letters")
        reason = driver.find_element(By.CSS_SELECTOR, "#letters .why").text
        assert "declare the writer instead of using profile auto" in reason
        letter = driver.find_element(By.CSS_SELECTOR, "#letters th a").text
        follow(driver, letter)
        title("Dead letter")
        assert reason == driver.find_element(By.ID, "reason").text
        record = driver.find_element(By.XPATH, "//dt[text()='Raw record']/following-sibling::dd").text
        assert record.startswith(f"{yard.raw}/1 offset 1, source shop")
        driver.get(f"{address}home")
        follow(driver, "Show Table")
        title("Lakehouse")
        assert "TABLE_CLASH: a clash" in driver.find_element(By.CSS_SELECTOR, "main .why").text
        assert "hush" not in driver.page_source
