"""Find Debian's Chromium and its driver, to test pages: `python -m dev.pages.browser [--build]`.

`--build` installs both if they are missing, which needs root and apt. The exit code is 1 if they are not available.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from selenium import webdriver

PACKAGES = ("chromium", "chromium-driver")
MISSING = f"Chromium is not installed: apt-get install {' '.join(PACKAGES)}"

# Without these options, Chromium constantly contacts its vendor for updates.
_QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def is_there() -> bool:
    """Return whether Chromium and its driver are installed."""
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


def build() -> bool:
    """Install missing packages, and return whether both are now available."""
    apt = shutil.which("apt-get")
    if not is_there() and os.geteuid() == 0 and apt:
        for arguments in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
            subprocess.run((apt, "-qq", *arguments), check=False, stdout=subprocess.DEVNULL)
    return is_there()


@contextmanager
def browser(*arguments: str) -> Iterator[webdriver.Chrome]:
    """Yield a browser with an empty profile that records its pages' requests and console errors.

    Args:
        arguments: arguments for Chromium in addition to our own.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        for argument in (*_QUIET, f"--user-data-dir={profile}", *arguments):
            options.add_argument(argument)
        options.binary_location = shutil.which("chromium") or ""
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


if __name__ == "__main__":
    found = build() if "--build" in sys.argv[1:] else is_there()
    if not found:
        print(MISSING, file=sys.stderr)
    sys.exit(0 if found else 1)
