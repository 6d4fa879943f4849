"""On the documentation site, every page is in the navigation, links work, and all Markdown is rendered.

`make docs` builds it. MkDocs itself reports dead links and anchors.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from dev.pages import docs_site
from dev.pages.docs_site import in_site, unrendered

ROOT = Path(__file__).parents[2]


def test_every_page_has_its_place_once() -> None:
    """Every page is in the navigation once, sorted by task."""
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
        ("../README.md", '<source srcset="docs/pictures/d.svg">', '<source srcset="pictures/d.svg">'),
    ],
)
def test_links(page: str, link: str, mended: str) -> None:
    """Links between pages are unchanged. Those of the first page, which is in another folder, are adjusted."""
    assert mended == in_site(link, page)


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("<p>| a | b |\n|---|---|</p>", ["| a | b |", "|---|---|"]),
        ("<p>see [it](x.md)</p>", ["see [it](x.md)"]),
        ("<p>**bold text</p>", ["**bold text"]),
        ("<p>text\n## Heading</p>", ["## Heading"]),
        ("<td>a || b, 2 ** 3</td><pre>| a |\n# x</pre><code>**kwargs</code>", []),
    ],
)
def test_markdown_that_was_not_rendered(page: str, found: list[str]) -> None:
    """An unrendered table, link, heading or mark is reported. Code is ignored."""
    assert unrendered(page) == found


@pytest.mark.parametrize(("fetched", "language"), [(True, "mermaid"), (False, "text")])
def test_diagrams_stay_text_without_their_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fetched: bool, language: str
) -> None:
    """If the script was not fetched, a diagram is a plain block, so that the theme does not load the script itself."""
    script = tmp_path / "mermaid.min.js"
    monkeypatch.setattr(docs_site, "_MERMAID_FILE", script)
    if fetched:
        script.touch()
    page = SimpleNamespace(file=SimpleNamespace(src_uri="native.md"))
    assert f"```{language}\nA --> B\n```" == docs_site.on_page_markdown("```mermaid\nA --> B\n```", page=page)
