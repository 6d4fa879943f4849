"""Answer requests with pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from aiohttp import web

from translator.errors import CdcError
from translator.web.templating import SERVED, Nav, rendered

Found = TypeVar("Found")


def page(template: str, *, status: int = 200, nav: Nav = (), **content: Any) -> web.Response:
    """Return the page for a template. The arguments are those of `rendered`."""
    text = rendered(template, SERVED, nav=nav, **content)
    return web.Response(text=text, content_type="text/html", charset="utf-8", status=status)


_ANSWER_SECONDS = 30.0

# These threads are separate from those that translate messages, so that the playground works while no broker responds.
_THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="desk")


async def asked(ask: Callable[[], Found], nav: Nav, *, seconds: float | None = _ANSWER_SECONDS) -> Found | web.Response:
    """Return the result of a call that queries brokers. If it fails, return an error page with the reason.

    Args:
        seconds: how long the client waits, including the wait for other calls, or None for no limit.
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
