"""`translator desk`: run the playground on your own machine, optionally with pages for a service."""

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
from translator.commands.output import say
from translator.config import settings as settings_module
from translator.errors import ConfigError

if TYPE_CHECKING:  # imported in the function below, so that help starts without a web server
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
    help="Configuration file of a service. Adds pages for the sink's status and dead letters.",
)
@click.option(
    "--sink",
    type=click.Path(path_type=Path),
    help="Configuration file for a sink on this machine. Adds a page for its tables.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8088,
    show_default=True,
    help="Port to listen on. With 0, the system chooses a free port.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    help="Host name that browsers use to reach the desk, such as the name of a proxy. Repeatable.",
)
@click.option(
    "--trusted-header",
    metavar="NAME",
    help=(
        "Header that a proxy in front of the desk sets once it has authenticated a user. Users with this header "
        "can see values and replay dead letters. Make sure nobody can bypass the proxy, because any client can set "
        "the header."
    ),
)
def desk(
    config: Path | None, sink: Path | None, host: str, port: int, names: tuple[str, ...], trusted_header: str | None
) -> None:
    """Serve the playground: paste a message to see which product wrote it, how it is interpreted, and its events.

    The playground needs no broker and no configuration. It includes samples of every format, and sends no requests to
    other machines. With -c, it adds pages about a service: its status, dead letters and schemas. It reads these from
    the service's topics. These pages are read-only and show no values. Users can log in with the token in the
    environment variable CDC_DESK_TOKEN. They can then also see messages next to their events, and replay dead letters.
    """
    token = os.environ.get(_TOKEN) or None
    if token is not None and len(token) < _TOKEN_CHARACTERS:
        raise ConfigError(f"{_TOKEN} has fewer than {_TOKEN_CHARACTERS} characters, so it could be guessed")
    from translator.web.access import Access
    from translator.web.desk import application
    from translator.web.service_view import ServiceView
    from translator.web.sink_view import SinkView

    service = None
    if config is not None:
        service = ServiceView(settings_module.load(config), say)
    lakehouse = None if sink is None else SinkView(sink)
    app = application([host, *names], service, Access(token, trusted_header, say), lakehouse)
    asyncio.run(_serve(app, host, port, names, "" if service is None else "home"))


async def _serve(app: web.Application, host: str, port: int, names: Collection[str], page: str) -> None:
    from aiohttp import web

    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port}: {error.strerror}. Choose another port with --port"
            ) from None
        at, number, *_ = runner.addresses[0]
        address = f"http://{f'[{at}]' if ':' in at else at}:{number}/{page}"
        say(f"the desk is at {address}; press Ctrl-C to stop")
        await _signal()
    finally:
        await runner.cleanup()


async def _signal() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(
            NotImplementedError
        ):  # Windows has no signal handlers; Ctrl-C stops the program there anyway
            loop.add_signal_handler(number, ended.set)
    await ended.wait()
