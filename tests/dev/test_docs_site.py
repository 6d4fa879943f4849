"""The site: every page has its place, and links that only the repository can follow are none there.

That all links and anchors lead somewhere, MkDocs says itself (`make docs`).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dev.pages.docs_site import in_site

ROOT = Path(__file__).parents[2]


def test_every_page_has_its_place_once() -> None:
    """In the navigation, by task."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    named = re.findall(r"- (\S+\.md)$", navigation, re.MULTILINE)
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted([*pages, "index.md"]) == sorted(named)


@pytest.mark.parametrize(
    ("page", "link", "mended"),
    [
        ("sink.md", "[a](upsert.md#b)", "[a](upsert.md#b)"),
        ("runbooks/translator.md", "[a](../operate/delivery.md#bounds)", "[a](../operate/delivery.md#bounds)"),
        ("sink.md", "[a](#here) [b](https://kafka.apache.org)", "[a](#here) [b](https://kafka.apache.org)"),
        ("deploy.md", "[a](../helm/translator/README.md#c)", "a (`helm/translator/README.md`)"),
        ("design.md", "[a](decisions/)", "[a](decisions/0001-delivery.md)"),
        ("../README.md", "[a](docs/masks.md#b) ![c](docs/pictures/d.png)", "[a](masks.md#b) ![c](pictures/d.png)"),
        ("../README.md", "[a](LICENSE)", "a (`LICENSE`)"),
    ],
)
def test_links(page: str, link: str, mended: str) -> None:
    """Those between pages stay; of the first page, which lies elsewhere in the repository, they are mended."""
    assert mended == in_site(link, page)
