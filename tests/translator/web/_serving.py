"""Serve the desk from a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from translator.web.access import Access
from translator.web.desk import application
from translator.web.service_view import ServiceView
from translator.web.sink_view import SinkView


@contextmanager
def served(
    service: ServiceView | None = None, access: Access | None = None, sink: SinkView | None = None
) -> Iterator[str]:
    """Yield the address of a desk."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(application((), service, access, sink), access_log=None)

    async def start() -> str:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return "http://{}:{}/".format(*runner.addresses[0])

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(60)
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
