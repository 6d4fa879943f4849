"""`python -m dev.desk_pictures`: the pictures of docs/desk.md, drawn anew."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver.common.by import By

from dev.browser import MISSING, browser, is_there

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"

# Name of the file: sample, width, height, color scheme.
SHOTS = {
    "playground.png": ("canal_dts_legacy", 1180, 1350, "light"),
    "playground-dark.png": ("dead_letter", 1180, 1300, "dark"),
    "playground-phone.png": ("qlik_update", 390, 1500, "light"),
}


@contextmanager
def desk() -> Iterator[str]:
    """The address of a desk that runs."""
    command = (sys.executable, "-m", "translator", "desk", "--port", "0")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            told = process.stderr.readline() if process.stderr else ""
            yield told.partition(" is at ")[2].partition(";")[0]
        finally:
            process.terminate()


def draw(address: str) -> None:
    """Draw every picture."""
    PICTURES.mkdir(exist_ok=True)
    with browser("--hide-scrollbars") as driver:
        for name, (sample, width, height, scheme) in SHOTS.items():
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            driver.get(f"{address}?sample={sample}")
            driver.find_element(By.CSS_SELECTOR, "#question button").click()
            driver.implicitly_wait(60)
            driver.find_element(By.ID, "result")
            driver.execute_script("scrollTo(0, 0)")
            driver.save_screenshot(str(PICTURES / name))


if __name__ == "__main__":
    if not is_there():
        sys.exit(MISSING)
    with desk() as found:
        draw(found)
