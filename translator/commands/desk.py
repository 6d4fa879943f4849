"""`translator desk`: the playground on one's own machine, and the pages of a service."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from translator.commands.configuration import VARIABLE
from translator.commands.remarks import say
from translator.config import settings as settings_module
from translator.errors import ConfigError

if TYPE_CHECKING:  # at run time below: help starts without a web server
    from aiohttp import web

_TOKEN = "CDC_DESK_TOKEN"  # noqa: S105 - the name of a variable
_TOKEN_CHARACTERS = 16


@click.command()
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar=VARIABLE,
    show_envvar=True,
    help="Configuration file of a service: adds pages of its status and its dead letters.",
)
@click.option(
    "--sink",
    type=click.Path(path_type=Path),
    help="Configuration file of a spark-sink on this machine: adds a page of its tables.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8088, show_default=True, help="0: the system chooses.")
@click.option(
    "--name", "names", multiple=True, help="Name under which browsers ask for it, such as a proxy's; repeatable."
)
@click.option(
    "--trusted-header",
    metavar="NAME",
    help="Header that a proxy in front sets for whom it has let in: they may see values and replay. Everybody who gets "
    "past the proxy can set it.",
)
def desk(
    config: Path | None, sink: Path | None, host: str, port: int, names: tuple[str, ...], trusted_header: str | None
) -> None:
    """Serve the playground: paste a message, see whose it is, what was decided, and its events.

    It needs no broker and no configuration, has samples of every format, and asks nothing of other machines. With -c it
    has pages of a service, by its topics: status, dead letters and schemas, read only and without values. Who logs in
    with the token of the environment variable CDC_DESK_TOKEN sees messages beside their events, and may replay.
    """
    token = os.environ.get(_TOKEN) or None
    if token is not None and len(token) < _TOKEN_CHARACTERS:
        raise ConfigError(f"{_TOKEN} has less than {_TOKEN_CHARACTERS} characters: it could be guessed")
    from translator.web.access import Access
    from translator.web.desk import application
    from translator.web.service_view import ServiceView
    from translator.web.sink_view import SinkView

    service = None
    if config is not None:
        service = ServiceView(settings_module.load(config), say)
    lakehouse = None if sink is None else SinkView(sink)
    app = application([host, *names], service, Access(token, trusted_header), lakehouse)
    asyncio.run(_serve(app, host, port, names))


async def _serve(app: web.Application, host: str, port: int, names: Collection[str]) -> None:
    from aiohttp import web

    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigError(f"cannot listen at {host}:{port}: {error.strerror}; --port names another") from None
        at, number, *_ = runner.addresses[0]
        address = f"http://{f'[{at}]' if ':' in at else at}:{number}/"
        say(f"the desk is at {address}; Ctrl-C ends it")
        await _signal()
    finally:
        await runner.cleanup()


async def _signal() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows has no handlers: Ctrl-C ends it there by itself
            loop.add_signal_handler(number, ended.set)
    await ended.wait()
