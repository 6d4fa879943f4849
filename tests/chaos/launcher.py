"""`python -m tests.chaos.launcher [--die STAGE:N] run -c FILE`: the translator, optionally killing itself at a stage.

The product has no test hooks. Instead, methods are wrapped by name before it starts, and an unknown name is an error.
At the n-th call of the stage, the process ends with SIGKILL, as in a power failure.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any

SETTLE_SECONDS = 0.3


@dataclass(frozen=True)
class Stage:
    """A point in the pipeline.

    Args:
        calls: `module:name` or `module:class.name` whose calls are counted.
        before: die before the n-th call instead of after it.
        within: count only calls from a function of this name.
        settle: before dying, stop the process until the brokers have answered, so that nobody reads the answers.
        most: upper limit of the n-th call, which is chosen from 1 on.
    """

    calls: str
    before: bool = False
    within: str | None = None
    settle: bool = False
    most: int = 10


_DELIVERY = "translator.service.delivery"
STAGES = {
    "poll": Stage("translator.service.faust_transport:_batch", most=12),
    "translate": Stage("translator.resolution.resolve:Resolver.resolve_run", most=100),
    "produce": Stage("translator.kafka.producer:RecordProducer.offer_run", settle=True, most=100),
    "seal": Stage(f"{_DELIVERY}.exactly_once:_Batch.end_message", settle=True, most=100),
    "report": Stage("translator.service.faust_transport:BatchConsumer.ack", most=12),
    "commit": Stage("translator.service.faust_transport:BatchConsumerThread._commit", before=True, most=4),
    "end": Stage(f"{_DELIVERY}.exactly_once:ExactlyOnceDelivery._commit", before=True, most=8),
    "learn-read": Stage("translator.resolution.resolve:Resolver.learn", before=True),
    "learn-taught": Stage("translator.translation.metadata_catalog:MetadataCatalog.register", within="learn"),
    "learn-told": Stage(f"{_DELIVERY}.at_least_once:AtLeastOnceDelivery.confirm", within="_write_learned"),
    "learn-told-aside": Stage(f"{_DELIVERY}.exactly_once:ExactlyOnceDelivery.confirm", within="_write_learned"),
}


# The stages for delivery exactly_once, where transactions write records and commit offsets.
WITH_TRANSACTIONS = {"produce": "seal", "commit": "end", "learn-told": "learn-told-aside"}


class _Death:
    def __init__(self, stage: Stage, number: int) -> None:
        self._stage = stage
        self._left = number

    def arm(self) -> None:
        """Wrap what the stage names in a function that counts calls."""
        where, _, path = self._stage.calls.partition(":")
        *owners, name = path.split(".")
        owner: Any = import_module(where)
        for part in owners:
            owner = getattr(owner, part)
        setattr(owner, name, self._wrapped(getattr(owner, name)))

    def _wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        before = self._stage.before
        if inspect.iscoroutinefunction(call):

            @wraps(call)
            async def counted_coroutine(*args: Any, **kwargs: Any) -> Any:
                dies = self._is_it()
                if dies and before:
                    self._die()
                result = await call(*args, **kwargs)
                if dies:
                    self._die()
                return result

            return counted_coroutine

        @wraps(call)
        def counted(*args: Any, **kwargs: Any) -> Any:
            dies = self._is_it()
            if dies and before:
                self._die()
            result = call(*args, **kwargs)
            if dies:
                self._die()
            return result

        return counted

    def _is_it(self) -> bool:
        within = self._stage.within
        if within is not None and sys._getframe(2).f_code.co_name != within:
            return False
        self._left -= 1
        return self._left == 0

    def _die(self) -> None:
        if self._stage.settle:
            time.sleep(SETTLE_SECONDS)  # librdkafka's threads continue, ours do not
        os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--die"]:
        name, _, number = arguments[1].partition(":")
        _Death(STAGES[name], int(number)).arm()
        arguments = arguments[2:]
    from translator.commands import main as translator  # armed first, because others import the changed names

    sys.argv = ["translator", *arguments]
    translator()


if __name__ == "__main__":
    main(sys.argv[1:])
