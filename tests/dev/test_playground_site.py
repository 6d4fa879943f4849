"""The playground as files, from a plain file server: the same bytes as from a desk, and nothing from elsewhere."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from dev.pages import playground_site
from dev.pages.browser import MISSING, browser, is_there
from tests.translator.web._serving import served
from tests.translator.web.test_browser import AXE, asked, complaints, text
from tests.translator.web.test_desk import ask
from translator.web.playground import samples

pytestmark = [pytest.mark.integration, pytest.mark.skipif(not is_there(), reason=MISSING)]

# Where the server is asked for the meaning of a code, the files have a page.
SERVED, FILE = 'href="/codes#', 'href="codes.html#'
BROKEN = ({"message": '{"x":1}'}, {"message": "zz", "encoding": "hex"}, {"message": "{}", "options": "profile: [x"})


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the built files."""
    folder: Path = tmp_path_factory.mktemp("playground")
    if not playground_site.build(folder):
        pytest.skip("Pyodide cannot be downloaded from npm, or msgspec for it from PyPI")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[WebDriver]:
    with browser("--window-size=1280,1000") as driver:
        driver.implicitly_wait(120)
        driver.set_script_timeout(300)
        yield driver


def _translated(driver: WebDriver, fields: dict[str, str]) -> str:
    script = "const done = arguments[1]; import('./core.js').then((core) => core.answer(arguments[0])).then(done, done)"
    found = driver.execute_async_script(script.replace("'./core.js'", "new URL('core.js', location)"), fields)
    assert isinstance(found, str), found
    return found


def test_the_same_bytes_as_a_desk(files: str, chromium: WebDriver) -> None:
    """Each sample, and each kind of mistake, gets the same answer as from the server, to the last byte."""
    asked(chromium)
    chromium.get(f"{files}index.html")
    questions = [
        {"message": one.message, "encoding": one.encoding, "dialect": dialect, "options": options, "before": one.before}
        for one in samples().values()
        for dialect, options in ((one.dialect, one.options), ("recognise", ""))
    ]
    with served() as address:
        for fields in (*questions, *BROKEN):
            expected = ask(f"{address}?part", fields)[1].replace(SERVED, FILE)
            assert expected == _translated(chromium, fields), fields
    assert [] == [url for url in asked(chromium) if not url.startswith((files, "chrome://", "data:"))]
    assert [] == complaints(chromium)


def test_a_message_by_keyboard(files: str, chromium: WebDriver) -> None:
    """A sample is there without scripts. A pasted message is translated as you type, and with Ctrl+Enter."""
    chromium.get(f"{files}index.html")
    chromium.find_element(By.LINK_TEXT, samples()["canal_swap"].title).click()
    assert "translated" == text(chromium, ".outcome strong")
    assert not chromium.execute_script("return performance.getEntriesByName(new URL('core.zip', location)).length")
    field = chromium.find_element(By.ID, "message")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys('{"meta":{"op":"ins","table":"A.B"},"data":{"ID":1}}')
    chromium.find_element(By.CSS_SELECTOR, "#dialect [value=recognise]").click()
    options = chromium.find_element(By.ID, "options")
    options.clear()
    options.send_keys(Keys.CONTROL, Keys.ENTER)
    chromium.find_element(By.XPATH, "//h3[@id='event-1'][text()='INSERT of A.B']")
    link = chromium.find_element(By.ID, "permalink").get_attribute("href")
    assert link is not None
    assert link.startswith(f"{files}index.html#m=")
    chromium.get("about:blank")
    chromium.get(link)
    chromium.find_element(By.XPATH, "//h3[@id='event-1'][text()='INSERT of A.B']")
    assert [] == complaints(chromium)


def test_axe_and_phones(files: str, chromium: WebDriver) -> None:
    message = urllib.parse.quote(json.dumps({"message": '{"x":1}'}))
    size = {"width": 320, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for page in (f"index.html#m={message}", "dead_letter.html", "codes.html"):
        chromium.get("about:blank")
        chromium.get(files + page)
        if "#" in page:
            chromium.find_element(By.ID, "refusals")
        assert 320 >= chromium.execute_script("return document.documentElement.scrollWidth"), page
        chromium.execute_script(AXE)
        found = chromium.execute_async_script("axe.run().then(arguments[0])")
        assert [] == [rule["id"] for rule in found["violations"]], page


def test_nothing_is_loaded_from_elsewhere(files: str, chromium: WebDriver) -> None:
    """The policy in the page stops it, with no server to set a header."""
    chromium.get(f"{files}index.html")
    script = "const done = arguments[0]; fetch('http://127.0.0.2:9/').then(() => done('loaded'), done)"
    assert "loaded" != chromium.execute_async_script(script)
    assert any("Content Security Policy" in one for one in complaints(chromium))
