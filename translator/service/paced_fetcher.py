"""Fetch less often: wait between two requests to the same broker, so that each response has more records."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aiokafka.consumer import consumer
from aiokafka.consumer.fetcher import Fetcher


class PacedFetcher(Fetcher):  # type: ignore[misc]  # aiokafka has no types
    """A fetcher that sends each broker at most one request per `seconds`.

    A fetch costs as much processor time as hundreds of messages, however many records it returns. With Kafka's own
    `fetch.min.bytes`, an idle process would need just as many requests.
    """

    seconds = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._due: dict[int, float] = {}

    async def _proc_fetch_request(self, assignment: Any, node_id: int, request: Any) -> bool:
        try:
            await asyncio.sleep(self._due.get(node_id, 0.0) - time.monotonic())
        except asyncio.CancelledError:
            return False  # as upstream: the partitions are being reassigned, or the consumer is being closed
        self._due[node_id] = time.monotonic() + self.seconds
        return bool(await super()._proc_fetch_request(assignment, node_id, request))


def pace_fetches(seconds: float) -> None:
    """Make aiokafka use this fetcher in the whole process, because its consumer offers no other hook."""
    PacedFetcher.seconds = seconds
    consumer.Fetcher = PacedFetcher
