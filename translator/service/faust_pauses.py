"""Wait for the actual condition instead of Faust's fixed pauses. This saves a second at each start and each stop."""

from __future__ import annotations

import asyncio

import faust
from faust.tables import TableManager

_POLL_SECONDS = 0.005
_LAST_TASKS_SECONDS = 1.0


class PromptTables(TableManager):
    """A table manager that returns as soon as the agent's topic is known, so that the topic is part of the first
    subscription. The app has no tables.
    """

    async def on_start(self) -> None:
        while not self.app.topics and not self.should_stop:
            await self.sleep(_POLL_SECONDS)
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()


class PromptWorker(faust.Worker):
    """A worker that returns as soon as all cancelled tasks have ended."""

    async def _sentinel_task(self) -> None:
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=_LAST_TASKS_SECONDS)
