"""Build the documentation site in build/site: `python -m dev.pages.docs_site`. This module also holds the MkDocs hooks.

The pages come from docs/, with README.md as the first page. In the repository, a link may point to any file. The site
contains only pages, so a link to any other file is replaced by the name of the file. MkDocs is installed into
build/docs-env from requirements-docs.lock, by hash, because no user of the programs needs it. The script that draws
diagrams is downloaded from npm into build/docs-assets, also by hash. It becomes part of the site, which loads nothing
from elsewhere. So does the playground (playground_site.py).
"""

from __future__ import annotations

import html
import io
import os
import posixpath
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"

MERMAID = "mermaid@11.12.0"
_MERMAID_FILE = ROOT / "build" / "docs-assets" / "mermaid.min.js"
_MERMAID_SHA256 = "07e37dfa97b337ccc85365d57eddf99b9706f09db3b59b260d0333b23b343c4b"
_MERMAID_URL = "assets/javascripts/mermaid.min.js"

_PLAYGROUND = "playground/index.html"

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
# Pictures on the first page that are not written as Markdown.
_SOURCE = re.compile(r'\b(src|srcset)="docs/([^"])')

# Markdown that a page shows unrendered: a table, a heading, a fence, bold text or a link.
_UNRENDERED = re.compile(r"^\s*(\|.+\|\s*$|#{1,6} \S|```)|\*\*\S|\]\([^)\s]+\)", re.MULTILINE)
_CODE = re.compile(r"<(pre|code|script|style|svg)\b.*?</\1>", re.DOTALL)


def on_files(files: Any, *, config: Any) -> Any:
    """Add the first page and the script that draws diagrams to the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    file = import_module("mkdocs.structure.files").File
    files.append(file.generated(config, "index.md", content=in_site(text, "../README.md")))
    if _MERMAID_FILE.is_file():
        files.append(file.generated(config, _MERMAID_URL, abs_src_path=str(_MERMAID_FILE)))
        config["extra_javascript"].append(_MERMAID_URL)
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Rewrite a page's links. The first page's links are already rewritten."""
    if not _MERMAID_FILE.is_file():
        # If the site did not have the script, Material would load it from elsewhere.
        markdown = markdown.replace("```mermaid\n", "```text\n")
    # Not a link in Markdown, because MkDocs does not know pages that are not its own.
    markdown = markdown.replace(f"`{_PLAYGROUND}`", f'<a href="{_PLAYGROUND}">{_PLAYGROUND}</a>')
    return markdown if page.file.src_uri == "index.md" else in_site(markdown, page.file.src_uri)


def in_site(markdown: str, page: str) -> str:
    """Return a page with its links rewritten for the site.

    Args:
        page: the page's path, relative to docs/.
    """
    mended = _LINK.sub(lambda link: _mended(link, page), markdown)
    return _SOURCE.sub(r'\1="\2', mended) if page == "../README.md" else mended


def _mended(link: re.Match[str], page: str) -> str:
    mark, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    if not path.startswith("docs/"):
        return f"{text} (`{path}`)"
    if (ROOT / path).is_dir():  # link to the first page in the folder; the navigation lists the other pages next to it
        path = f"{path}/{min(found.name for found in (ROOT / path).glob('*.md'))}"
    # On the site, the first page is at the top of docs/.
    folder = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.removeprefix("../"))))
    return f"{mark}[{text}]({posixpath.relpath(path, folder)}{anchor})"


def unrendered(page: str) -> list[str]:
    """Return the lines in an HTML page that still contain Markdown."""
    text = html.unescape(re.sub(r"<[^>]+>", "", _CODE.sub("", page)))
    return [line.strip() for line in text.splitlines() if _UNRENDERED.search(line)]


def _complaints() -> Iterator[str]:
    for path in sorted(SITE.rglob("*.html")):
        yield from (f"{path.relative_to(ROOT)}: {line}" for line in unrendered(path.read_text(encoding="utf-8")))


class _SiteHandler(SimpleHTTPRequestHandler):
    """Serves the site without logging."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, directory=str(SITE))

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _undrawn() -> Iterator[str]:
    """Return the diagrams that Chromium fails to draw, with their pages. If Chromium is not installed, the result is
    empty.
    """
    from dev.pages.browser import browser, is_there

    pages = [
        path for path in sorted(SITE.rglob("*.html")) if '<pre class="mermaid">' in path.read_text(encoding="utf-8")
    ]
    if not is_there() or not _MERMAID_FILE.is_file():
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), _SiteHandler) as server, browser() as chromium:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in pages:
            chromium.get(f"http://127.0.0.1:{server.server_port}/{page.relative_to(SITE)}")
            # Material replaces the source with the drawing.
            ends = time.monotonic() + 60
            while chromium.find_elements("css selector", "pre.mermaid") and time.monotonic() < ends:
                time.sleep(0.2)
            left = chromium.find_elements("css selector", "pre.mermaid")
            yield from (f"{page.relative_to(ROOT)}: a diagram that begins with {one.text[:60]!r}" for one in left)
        server.shutdown()


def _fetch_mermaid() -> None:
    """Download the script from npm if necessary. Without npm, the site shows the source of the diagrams."""
    if _MERMAID_FILE.is_file():
        return
    # Imported here because MkDocs, which loads this module for its hooks, does not find our packages.
    from dev.pages import npm

    try:
        archive = npm.packed(MERMAID)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"docs: diagrams remain source text: npm cannot fetch {MERMAID}: {error}", file=sys.stderr)
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        member = files.extractfile("package/dist/mermaid.min.js")
        script = member.read() if member is not None else b""
    npm.check(MERMAID, script, _MERMAID_SHA256)
    _MERMAID_FILE.parent.mkdir(parents=True, exist_ok=True)
    _MERMAID_FILE.write_bytes(script)


def main() -> None:
    """Build the site.

    Exit code 1 means a dead link or anchor, a page that is missing from the navigation, or Markdown that was not
    rendered.
    """
    # Imported here because MkDocs loads this file by its path, without the package.
    from dev.locked_environment import commands
    from dev.pages import playground_site

    mkdocs = commands("docs") / "mkdocs"
    _fetch_mermaid()
    # In every build, Material announces that its support ends in May 2027, and that its successor, Zensical, reads
    # mkdocs.yml. --quiet would also hide this announcement, but --strict counts only warnings that are printed.
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run([mkdocs, "build", "--strict"], cwd=ROOT, env=quiet, check=False)
    complaints = [*_complaints(), *_undrawn()]
    playground_site.build((SITE / _PLAYGROUND).parent)
    for line in complaints:
        print(f"docs: not rendered: {line}", file=sys.stderr)
    sys.exit(built.returncode or bool(complaints))


if __name__ == "__main__":
    main()
