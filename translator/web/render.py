"""Render templates. Anything from a message is text: escaped, with invisible characters made visible."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any, TypeAlias, TypeVar

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from translator.errors import CdcError

Nav: TypeAlias = Sequence[tuple[str, str]]
"""Each existing page's address and name."""

Found = TypeVar("Found")

# Control and format characters can reverse the direction of a line, hide in it, or end it.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})
_LINES = frozenset("\n\t")


def visible(text: str) -> str:
    """Return text in which every character is visible. Line breaks are kept."""
    return "".join(_seen(char) for char in text)


def _seen(char: str) -> str:
    hidden = char not in _LINES and unicodedata.category(char) in _INVISIBLE
    return f"\\u{ord(char):04x}" if hidden else char


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("translator.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    return environment


def page(template: str, *, status: int = 200, nav: Nav = (), **content: Any) -> web.Response:
    """Return the page for a template.

    Args:
        nav: the existing pages.
    """
    text = _environment().get_template(template).render(content, nav=nav)
    return web.Response(text=text, content_type="text/html", charset="utf-8", status=status)


async def asked(ask: Callable[[], Found], nav: Nav) -> Found | web.Response:
    """Return the result of a call that can take seconds, or an error page with the reason."""
    try:
        return await asyncio.to_thread(ask)
    except CdcError as error:
        return page("refused.html", status=503, title="No response", nav=nav, why=str(error))


@cache
def static(name: str) -> bytes:
    """Return a file from the `static` folder. Its name never comes from a request."""
    return resources.files("translator.web").joinpath("static", name).read_bytes()
