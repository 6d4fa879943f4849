"""Check the port for probes and metrics before anything else starts."""

from __future__ import annotations

import errno
import socket

from translator.config.settings import Web
from translator.errors import ConfigError


def check_web_port(web: Web) -> None:
    """Check that the process can listen on its port. Without this check, Faust would fail only after it has joined the
    group.

    Raises:
        ConfigError: another process listens on the port, or the address is not available.
    """
    try:
        addresses = socket.getaddrinfo(web.host, web.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(f"web.host: {web.host} is not an address of this machine: {error.strerror}") from None
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as probe:
            # Bind in the same way as the web server, so that closing connections from an earlier process do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind(address)
            except OSError as error:
                raise ConfigError(_refusal(web, error)) from None


def _refusal(web: Web, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"web.port: {web.port} is in use at {web.host}: choose another port, or stop the process that uses it"
    setting = "web.port" if error.errno == errno.EACCES else "web.host"
    return f"{setting}: cannot listen at {web.host}:{web.port}: {error.strerror}"
