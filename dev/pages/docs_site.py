"""`python -m dev.pages.docs_site` builds the documentation site in build/site. This module also holds the MkDocs hooks.

The pages are those of docs/, with README.md as the first one. In the repository, links can point to any file. The site
has only pages, so a link to another file becomes the file's name. MkDocs is installed into build/docs-env from
requirements-docs.lock, by hash, because no user of the programs needs it.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the first page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    file = import_module("mkdocs.structure.files").File
    files.append(file.generated(config, "index.md", content=in_site(text, "../README.md")))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Mend the links of a page; those of the first one are."""
    return markdown if page.file.src_uri == "index.md" else in_site(markdown, page.file.src_uri)


def in_site(markdown: str, page: str) -> str:
    """Return a page with its links as the site has them.

    Args:
        page: its path, seen from docs/.
    """
    return _LINK.sub(lambda link: _mended(link, page), markdown)


def _mended(link: re.Match[str], page: str) -> str:
    mark, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    if not path.startswith("docs/"):
        return f"{text} (`{path}`)"
    if (ROOT / path).is_dir():  # the first of its pages; the others stand beside it in the navigation
        path = f"{path}/{min(found.name for found in (ROOT / path).glob('*.md'))}"
    # The first page is read at the top of docs/.
    folder = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.removeprefix("../"))))
    return f"{mark}[{text}]({posixpath.relpath(path, folder)}{anchor})"


def main() -> None:
    """Build the site; a link or an anchor that leads nowhere, or a page without a place, ends it with code 1."""
    # Here, not above: MkDocs loads this file alone, and knows no other of ours.
    from dev.locked_environment import commands

    mkdocs = commands("docs") / "mkdocs"
    # Material says at every build that its support ends in May 2027, and that Zensical, its successor, reads mkdocs.yml
    # Not with --quiet: then warnings would not be counted, and nothing would be strict.
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run([mkdocs, "build", "--strict"], cwd=ROOT, env=quiet, check=False)
    sys.exit(built.returncode)


if __name__ == "__main__":
    main()
