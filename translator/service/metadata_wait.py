"""Handle messages whose metadata has not arrived: how long they wait, and what happens to them then.

A wait blocks only its own partition (`partition_workers`). The wait ends when the metadata is learned, when time runs
out, or when the partition is handed over. In the last case, nothing from the message has been written. The partition's
next owner waits instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

import structlog

from translator.errors import ErrorCode, MessageError, RetryableError
from translator.message import Message, Needs
from translator.resolution.builders import FetchSchema
from translator.resolution.resolve import Resolver, Translation
from translator.service.bounded_log import BoundedLog
from translator.service.message_context import place_of
from translator.translation.metadata_catalog import MetadataCatalog, remember
from translator.translation.translate import METADATA_MISSING, Result, Translator

log = structlog.get_logger("translator")

T = TypeVar("T")

_POLL = 0.05
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0

MISSES, MISSES_SECONDS = 3, 600.0
"""The maximum number of unsuccessful waits for a source, and the period in seconds. After that, the source's messages
do not wait for other metadata. The keys come from messages. Otherwise, anyone who can write a message could stop its
partition again and again.
"""

ASK_AGAIN = 10.0
"""Seconds between two requests to the registry for the same unknown schema. Messages do not wait for it."""

RegisterSchema = Callable[[str, str], None]
"""Registers one of our schemas, by subject and text (`RegisteredSchemas.register`)."""

NO_REGISTRY = "is in a schema registry, but none is configured: set registry.url"
NOT_REGISTERED = (
    "is not in the schema registry. Check that registry.url is the writer's registry, and replay once the schema "
    "is registered"
)


class WaitCancelled(Exception):
    """The wait was cancelled."""


class MetadataWaiter:
    """Gets the metadata that messages need, either from other messages or from the schema registry.

    Args:
        seconds: how long a message waits (`timing.metadata_wait`).
        fetch: queries the registry, in a thread, or None if no registry is configured.
        say: called while the registry does not respond.
        register: requests the id of one of our schemas, in a thread, or None if no output needs one.
    """

    def __init__(
        self,
        catalog: MetadataCatalog,
        seconds: float,
        fetch: FetchSchema | None,
        say: Callable[[str], object],
        register: RegisterSchema | None = None,
    ) -> None:
        self._catalog = catalog
        self._seconds = seconds
        self._fetch = fetch
        self._say = say
        self._register = register
        self._leaving = asyncio.Event()
        self._asking: dict[Hashable, asyncio.Task[Any]] = {}
        self._asked: dict[tuple[str, str], float] = {}
        self._missed: dict[str, deque[float]] = {}
        self._log = BoundedLog(log.info)
        self.waiting = 0

    def cancel_all(self) -> None:
        """Cancel all current and future waits."""
        self._leaving.set()

    def resume(self) -> None:
        """Allow messages to wait again."""
        self._leaving.clear()

    async def resolve(
        self, resolver: Resolver, translator: Translator, message: Message, result: Result | None = None
    ) -> Translation:
        """Resolve a message once its metadata is available, or the wait for it has ended.

        Raises:
            WaitCancelled: the wait was cancelled before that.
        """
        resolved = resolver.resolve(translator, message, result)
        while isinstance(resolved, Needs):
            self._tell(translator.source, message, resolved)
            error = await self.obtain(translator, resolved)
            dead = translator.dead(message, error) if error is not None else None
            resolved = resolver.resolve(translator, message, dead)
        return resolved

    def _tell(self, source: str, message: Message, needs: Needs) -> None:
        """Log a source's first wait in a minute. If a wait for metadata has ended without success, later messages that
        need the same metadata do not wait.
        """
        if not self._catalog.is_given_up(source, needs.key) and self._catalog.refusal(source, needs.key) is None:
            of = "another message" if needs.registry_id is None else f"the registry: schema {needs.registry_id}"
            if needs.schema_text is not None:
                of = f"the registry: an id under {needs.key}"
            self._log.tell(
                "waiting for metadata", source, source=source, **place_of(message), of=of, at_most=self._seconds
            )

    async def obtain(self, translator: Translator, needs: Needs) -> MessageError | None:
        """Wait for metadata. It returns None once the metadata is learned, or the reason why the message cannot be
        read.

        Raises:
            WaitCancelled: the wait was cancelled before that.
        """
        if needs.schema_text is None:
            refusal = self._catalog.refusal(translator.source, needs.key)
            if refusal is not None:
                return refusal
        self.waiting += 1
        try:
            if needs.schema_text is not None:
                await self._id_given(needs.key, needs.schema_text)
                return None
            if needs.registry_id is None:
                return await self._announced(translator.source, needs.key)
            return await self._registered(translator, needs.key, needs.registry_id)
        finally:
            self.waiting -= 1

    async def pause(self) -> None:
        """Pause briefly.

        Raises:
            WaitCancelled: the partition is about to be handed over.
        """
        await self._pause(_POLL)

    # -- metadata from another message

    async def _announced(self, source: str, key: str) -> MessageError | None:
        found = self._catalog.lookup(source)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        while found(key) is None:
            if self._over(source, key, deadline):
                return MessageError(ErrorCode.SCHEMA_MISSING, f"metadata {key!r} {METADATA_MISSING}")
            await self._pause(_POLL)
        return None

    def _over(self, source: str, key: str, deadline: float) -> bool:
        """Return whether to stop waiting. Later messages with that key then do not wait at all."""
        if self._catalog.is_given_up(source, key):
            return True
        now = asyncio.get_running_loop().time()
        missed = self._missed.setdefault(source, deque(maxlen=MISSES))
        waits = len(missed) < MISSES or missed[0] + MISSES_SECONDS < now
        if waits and now < deadline:
            return False
        if waits:
            missed.append(now)
        self._catalog.give_up(source, key)
        return True

    # -- metadata from the registry

    async def _registered(self, translator: Translator, key: str, registry_id: int) -> MessageError | None:
        if self._fetch is None:
            return MessageError(ErrorCode.SCHEMA_MISSING, f"schema {registry_id} {NO_REGISTRY}")
        source = translator.source
        found = self._catalog.lookup(source)
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._seconds, _FIRST_PAUSE
        while found(key) is None:
            given_up = self._catalog.is_given_up(source, key)
            if given_up and loop.time() < self._asked.get((source, key), 0.0) + ASK_AGAIN:
                return MessageError(ErrorCode.SCHEMA_MISSING, f"schema {registry_id} {NOT_REGISTERED}")
            try:
                text = await self._ask(registry_id, partial(self._fetch, registry_id))
                if text is not None:
                    self._catalog.register(translator, key, text.encode())
                    return None
            except MessageError as refusal:
                self._catalog.refuse(source, key, refusal)
                return refusal
            except RetryableError as error:
                # An outage does not show whether the schema exists, so the message continues to wait, and its waiting
                # time starts again.
                self._say(f"waiting for the schema registry to return schema {registry_id}: {error}")
                await self._pause(pause)
                deadline, pause = loop.time() + self._seconds, min(pause * 2, _LONGEST_PAUSE)
                continue
            if self._over(source, key, deadline):
                self._asked.pop((source, key), None)
                remember(self._asked, (source, key), loop.time())
                return MessageError(ErrorCode.SCHEMA_MISSING, f"schema {registry_id} {NOT_REGISTERED}")
            await self._pause(min(_FIRST_PAUSE, max(_POLL, deadline - loop.time())))
        return None

    async def _id_given(self, subject: str, schema_text: str) -> None:
        """Wait without a time limit until the registry accepts or rejects one of our schemas."""
        if self._register is None:
            raise ValueError("an output needs schema ids, but no registry is configured")
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._ask((subject, schema_text), partial(self._register, subject, schema_text))
            except RetryableError as error:
                self._say(f"waiting for the schema registry to return an id under {subject}: {error}")
                await self._pause(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _ask(self, about: Hashable, question: Callable[[], T]) -> T:
        """Ask the registry in a thread, only once for all partitions that need the result."""
        task: asyncio.Task[T] | None = self._asking.get(about)
        if task is None:
            task = self._asking[about] = asyncio.create_task(asyncio.to_thread(question))
            task.add_done_callback(lambda done: self._asked_once(about, done))
        await self._until(task)
        return task.result()

    def _asked_once(self, about: Hashable, done: asyncio.Task[Any]) -> None:
        del self._asking[about]
        if not done.cancelled():
            done.exception()  # the caller may have gone, and asyncio would then log a warning

    # -- pauses that end when the partition is handed over

    async def _pause(self, seconds: float) -> None:
        await self._until(asyncio.create_task(asyncio.sleep(seconds)))

    async def _until(self, task: asyncio.Task[T]) -> None:
        leaving = asyncio.create_task(self._leaving.wait())
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
        if not task.done():
            raise WaitCancelled
