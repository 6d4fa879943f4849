"""Get login tokens (OAUTHBEARER) from token providers. These are plug-ins that installed distributions offer as entry
points.

A provider is a class or function. The program calls a provider with the options from the configuration. It gets a
function that returns a token and its expiry (docs/operate/token-providers.md).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from cdc_core.errors import CdcError, ConfigError, quote, unknown
from cdc_core.installed_plugins import REASON_CHARS, find

GROUP = "cdc.tokens"
"""The group of entry points in which distributions offer token providers."""

BUILT_IN: Mapping[str, tuple[str, str]] = {
    "msk-iam": ("cdc_core.token_providers.msk_iam:MskIam", "msk"),
    "event-hubs": ("cdc_core.token_providers.event_hubs:EventHubs", "azure"),
    "managed-kafka": ("cdc_core.token_providers.managed_kafka:ManagedKafka", "gcp"),
}
"""The providers in this distribution. Each has a name, a location, and the extra that contains the cloud's library.
They take precedence over plug-ins with these names.
"""

_USED_SHARE = 0.5
"""After this share of a token's lifetime, the provider is called again. A connection ends when its token expires. If
the token were about to expire, the connection would be short.
"""

_PAUSE = 1.0
"""Seconds between a provider's failed call and the next one. Without a pause, clients that reconnect many times a
second would call it every time.
"""

_PATIENCE = 10.0
"""The number of seconds to wait for a provider. librdkafka waits just as long for the token of a new client."""

_LONGEST_LIFE = 366 * 86_400
"""Seconds. A later expiry is a mistake, such as milliseconds. The token would then never be renewed."""

log = logging.getLogger("cdc_core.kafka_tokens")


class TokenError(CdcError):
    """A provider returned no usable token. The text names the provider and gives the reason, but contains no token."""


class Tokens:
    """The tokens of one provider, which all clients and threads share.

    Args:
        name: the name of an entry point.
        options: keyword arguments for the provider.

    Raises:
        ConfigError: the provider is not installed, cannot be loaded, or rejects the options.
    """

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._name = name
        self._provide = _built(name, options)
        self._lock = threading.Lock()
        self._call: Future[object] | None = None
        self._last = ("", 0.0)  # token and expiry
        self._ask_at = 0.0
        self.failure: str | None = None
        """The reason why the provider's last call failed, or None if it succeeded."""

    def __call__(self, _librdkafka_config: object = None) -> tuple[str, float]:
        """Return a token and its expiry in epoch seconds. This is also the `oauth_cb` for librdkafka clients.

        Raises:
            TokenError: the provider raised an exception or returned something else, and the last token has expired. The
                caller tries again later.
        """
        # While another thread renews a valid token, which can take long, use that token.
        if self._lock.acquire(blocking=time.time() >= self._last[1]):
            try:
                if time.time() >= self._ask_at:
                    self._renew()
            finally:
                self._lock.release()
        last = self._last
        if time.time() < last[1]:
            return last
        raise TokenError(self.failure)

    def _renew(self) -> None:
        try:
            token, expires = self._called()
        except TokenError as error:
            if str(error) != self.failure:  # log each reason once
                log.warning("no login token: %s", error)
            self.failure = str(error)
            self._ask_at = time.time() + _PAUSE
            return
        now = time.time()
        self._last, self._ask_at = (token, expires), now + (expires - now) * _USED_SHARE
        self.failure = None

    def _called(self) -> tuple[str, float]:
        # A provider is never called twice at the same time, so wait again for a call that has not returned.
        call = self._call = self._call or _begin(self._provide)
        if not wait([call], _PATIENCE).done:
            raise TokenError(f"token provider {self._name} did not return within {_PATIENCE:g} seconds")
        self._call = None
        try:
            returned = call.result()
        except (Exception, SystemExit) as error:
            raise TokenError(f"token provider {self._name} failed: {_reason(error)}") from None
        # The value is not quoted in errors, because it can contain a token.
        if not isinstance(returned, tuple) or [str, float] != [
            float if type(part) is int else type(part) for part in returned
        ]:
            raise TokenError(
                f"token provider {self._name} returned a value of type {type(returned).__name__}; expected a tuple of "
                "the token (str) and its expiry in epoch seconds (float)"
            )
        token, expires = returned
        left = expires - time.time()
        if not token or not left > 0:
            raise TokenError(f"token provider {self._name} returned a token that is empty or has expired")
        if left > _LONGEST_LIFE:
            raise TokenError(
                f"token provider {self._name} returned an expiry more than a year ahead; expected epoch seconds"
            )
        return token, float(expires)


@cache
def shared_tokens(name: str, options: frozenset[tuple[str, str]]) -> Tokens:
    """Return the tokens of a provider. All clients in the process share them."""
    return Tokens(name, dict(options))


def require_token(connection: Mapping[str, Any]) -> None:
    """Make sure that a client which logs in with tokens can be created. Without a token, its constructor would block
    for ten seconds and drop the reason.

    Args:
        connection: librdkafka settings.

    Raises:
        TokenError: the provider returns no token.
    """
    if (tokens := connection.get("oauth_cb")) is not None:
        tokens()


def _begin(provide: Callable[[], object]) -> Future[object]:
    """Call a provider in a daemon thread, so that it does not keep the process from exiting."""
    call: Future[object] = Future()

    def run() -> None:
        try:
            call.set_result(provide())
        except BaseException as error:
            call.set_exception(error)

    threading.Thread(target=run, name="token provider", daemon=True).start()
    return call


def _built(name: str, options: Mapping[str, str]) -> Callable[[], object]:
    entry, hint = _found(name)
    try:
        provide = entry.load()(**options)
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"kafka.oauth_provider: token provider {name} cannot be used with oauth_provider_options "
            f"({', '.join(options) or 'none'}): {_reason(error)}{hint if isinstance(error, ImportError) else ''}"
        ) from None
    if not callable(provide):
        raise ConfigError(
            f"kafka.oauth_provider: token provider {name} returned {type(provide).__name__} instead of a function"
        )
    found: Callable[[], object] = provide
    return found


def _found(name: str) -> tuple[EntryPoint, str]:
    """Return the entry point with this name, and what to do if it cannot be imported."""
    if name in BUILT_IN:
        location, extra = BUILT_IN[name]
        return EntryPoint(name, location, GROUP), f". Install its library: pip install 'cdc-translator[{extra}]'"
    found = find(GROUP, BUILT_IN)
    offers = [(plugin, entry) for plugin, entry in found.items() if plugin.name == name]
    if not offers:
        installed = [*BUILT_IN, *(plugin.name for plugin in found)]
        raise ConfigError(f"kafka.oauth_provider: {unknown('token provider', name, installed)}")
    if len(offers) > 1:
        both = " and ".join(f"{plugin.distribution} {plugin.version}" for plugin, _ in offers)
        raise ConfigError(
            f"kafka.oauth_provider: token provider {name} is offered by several distributions: {both}. Uninstall all "
            "but one"
        )
    return offers[0][1], ""


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {quote(error, REASON_CHARS)[1:-1]}"
