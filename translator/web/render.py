"""Render templates. Anything from a message is rendered as text: escaped, with invisible characters made visible."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import resources
from typing import Any, TypeAlias, TypeVar

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from translator.errors import CdcError
from translator.web.meanings import meaning

Nav: TypeAlias = Sequence[tuple[str, str]]
"""Each existing page's address and name."""

Found = TypeVar("Found")

# Control and format characters can be invisible, or can reverse the direction of a line or end it.
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
    environment.globals["meaning"] = meaning
    return environment


def page(template: str, *, status: int = 200, nav: Nav = (), **content: Any) -> web.Response:
    """Return the page for a template.

    Args:
        nav: the existing pages.
    """
    text = _environment().get_template(template).render(content, nav=nav)
    return web.Response(text=text, content_type="text/html", charset="utf-8", status=status)


_ANSWER_SECONDS = 30.0

# These threads are separate from those that translate messages, so that the playground works while no broker responds.
_THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="desk")


async def asked(ask: Callable[[], Found], nav: Nav, *, seconds: float | None = _ANSWER_SECONDS) -> Found | web.Response:
    """Return the result of a call that queries brokers, or an error page with the reason.

    Args:
        seconds: how long the client waits, including the wait for other calls; None for as long as the call takes.
    """
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.get_running_loop().run_in_executor(_THREADS, ask)
    except CdcError as error:
        why = str(error)
    except TimeoutError:
        why = f"no broker responded within {seconds:g} s"
    return page("refused.html", status=503, title="No response", nav=nav, why=why)


@cache
def static(name: str) -> bytes:
    """Return a file from the `static` folder. The file name never comes from a request."""
    return resources.files("translator.web").joinpath("static", name).read_bytes()
