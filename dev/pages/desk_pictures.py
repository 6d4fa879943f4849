"""Draw the pictures in docs/desk.md: `python -m dev.pages.desk_pictures [TRANSLATOR_YAML SINK_YAML]`.

Without files, the program draws the playground's pictures. With the configuration files for a service and its sink, it
also draws their pages. Use the files from `make demo DEMO_ARGS=--stay`, which are artifacts/demo/translator.yaml and
artifacts/demo/sink.yaml.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from dev.pages.browser import MISSING, browser, is_there

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

# Keyed by file name: sample, width, height, color scheme.
SHOTS = {
    "playground.png": ("canal_swap", 1180, 1250, "light"),
    "playground-dark.png": ("dead_letter", 1180, 1300, "dark"),
    "playground-phone.png": ("qlik_update", 390, 1500, "light"),
}

# Keyed by file name: page, width, height.
SERVICE_SHOTS = {
    "home.png": ("home", 1180, 900),
    "home-phone.png": ("home", 360, 1300),
    "status.png": ("status", 1180, 1150),
    "schemas.png": ("schemas", 1180, 900),
    "lakehouse.png": ("sink", 1180, 1100),
}

_TOKEN = secrets.token_hex(16)


@contextmanager
def desk(*arguments: str) -> Iterator[str]:
    """Return a running desk's address."""
    command = (sys.executable, "-m", "translator", "desk", "--port", "0", *arguments)
    environment = {**os.environ, "CDC_DESK_TOKEN": _TOKEN}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            told = process.stderr.readline() if process.stderr else ""
            yield told.partition(" is at ")[2].partition(";")[0].removesuffix("home")
        finally:
            process.terminate()


def draw(address: str) -> None:
    """Draw the playground's pictures."""
    with browser("--hide-scrollbars") as driver:
        for name, (sample, width, height, scheme) in SHOTS.items():
            _resize(driver, width, height, scheme)
            driver.get(f"{address}?sample={sample}")
            driver.implicitly_wait(60)
            driver.find_element(By.ID, "result")
            driver.execute_script("scrollTo(0, 0)")
            driver.save_screenshot(str(PICTURES / name))


def draw_service(address: str) -> None:
    """Draw the pictures for a service and its sink."""
    with browser("--hide-scrollbars") as driver:
        for name, (page, width, height) in SERVICE_SHOTS.items():
            _resize(driver, width, height, "light")
            driver.get(address + page)
            # The lines of the home page begin with its first refresh.
            driver.implicitly_wait(60)
            driver.find_element(By.CSS_SELECTOR, ".spark" if page == "home" else "table")
            driver.save_screenshot(str(PICTURES / name))
        _draw_letter(driver, address)


def _draw_letter(driver: Chrome, address: str) -> None:
    """Draw a dead letter from the demo, as a user sees it after logging in."""
    _resize(driver, 1180, 900, "light")
    driver.get(address + "login")
    driver.find_element(By.ID, "token").send_keys(_TOKEN, Keys.ENTER)
    driver.find_element(By.LINK_TEXT, "UNKNOWN_OPERATION").click()
    driver.find_element(By.CSS_SELECTOR, "#letters tbody th a").click()
    driver.find_element(By.CSS_SELECTOR, ".sides")
    driver.save_screenshot(str(PICTURES / "letter.png"))


def _resize(driver: Chrome, width: int, height: int, scheme: str) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def main(arguments: Sequence[str]) -> None:
    if not is_there():
        sys.exit(MISSING)
    PICTURES.mkdir(exist_ok=True)
    with desk() as found:
        draw(found)
    if arguments:
        translator, sink = arguments
        with desk("-c", translator, "--sink", sink) as found:
            draw_service(found)


if __name__ == "__main__":
    main(sys.argv[1:])
