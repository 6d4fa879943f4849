"""`translator desk`: the playground on one's own machine."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket

import click

from translator.errors import ConfigError


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8088, show_default=True, help="0: the system chooses.")
def desk(host: str, port: int) -> None:
    """Serve the playground: paste a message, see whose it is, what was decided, and its events.

    It needs no broker and no configuration, has samples of every format, and asks nothing of other machines.
    """
    asyncio.run(_serve(host, port))


async def _serve(host: str, port: int) -> None:
    # Here, not above: help starts without a web server.
    from aiohttp import web

    from translator.web.desk import application

    runner = web.AppRunner(application(host), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except (OSError, socket.gaierror) as error:
            raise ConfigError(f"cannot listen at {host}:{port}: {error.strerror}; --port names another") from None
        click.echo(f"translator: the playground is at {_address(runner)}; Ctrl-C ends it", err=True)
        await _signal()
    finally:
        await runner.cleanup()


def _address(runner: object) -> str:
    host, port, *_ = runner.addresses[0]  # type: ignore[attr-defined]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


async def _signal() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows has no handlers: Ctrl-C ends it there by itself
            loop.add_signal_handler(number, ended.set)
    await ended.wait()
