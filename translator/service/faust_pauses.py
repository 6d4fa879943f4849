"""Faust's fixed pauses, replaced by waits for what they are there for: a second less at each start and at each end."""

from __future__ import annotations

import asyncio

import faust
from faust.tables import TableManager

_POLL_SECONDS = 0.005
_LAST_TASKS_SECONDS = 1.0


class PromptTables(TableManager):
    """Goes on as soon as the agent's topic is known, so that it is in the first subscription; we have no tables."""

    async def on_start(self) -> None:
        while not self.app.topics and not self.should_stop:
            await self.sleep(_POLL_SECONDS)
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()


class PromptWorker(faust.Worker):
    """Ends as soon as all tasks have ended. They are cancelled before."""

    async def _sentinel_task(self) -> None:
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=_LAST_TASKS_SECONDS)
