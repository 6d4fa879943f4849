"""`python -m tests.chaos.launcher [--die STAGE:N] run -c FILE`: the translator, which may kill itself at a stage.

The product has no hooks for tests: methods of it are wrapped here, by name, before it starts. A name that is gone is an
error. At the n-th call of the stage the process ends with SIGKILL, as if somebody had pulled the plug there.
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
    """A moment of the pipeline.

    Args:
        calls: `module:name` or `module:class.name` whose calls are counted.
        before: die before the n-th call, otherwise after it.
        within: count only calls out of a function of this name.
        settle: before dying, hold the whole process so long that brokers answer, and nobody reads the answer.
        most: the n-th call is chosen from 1 to this number.
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
    "produce": Stage("translator.kafka.producer:RecordProducer.offer", settle=True, most=3000),
    "seal": Stage(f"{_DELIVERY}.exactly_once:_Batch.end_message", settle=True, most=100),
    "report": Stage("translator.service.faust_transport:BatchConsumer.ack", most=12),
    "commit": Stage("translator.service.faust_transport:BatchConsumerThread._commit", before=True, most=4),
    "end": Stage(f"{_DELIVERY}.exactly_once:ExactlyOnceDelivery._commit", before=True, most=8),
    "learn-read": Stage("translator.resolution.resolve:Resolver.learn", before=True),
    "learn-taught": Stage("translator.translation.metadata_catalog:MetadataCatalog.register", within="learn"),
    "learn-told": Stage(f"{_DELIVERY}.at_least_once:AtLeastOnceDelivery.confirm", within="_write_learned"),
    "learn-told-aside": Stage(f"{_DELIVERY}.exactly_once:ExactlyOnceDelivery.confirm", within="_write_learned"),
}


# What stands for a stage when delivery is exactly_once: records are written, and offsets committed, by transactions.
WITH_TRANSACTIONS = {"produce": "seal", "commit": "end", "learn-told": "learn-told-aside"}


class _Death:
    def __init__(self, stage: Stage, number: int) -> None:
        self._stage = stage
        self._left = number

    def arm(self) -> None:
        """Puts the counting wrapper in the place of what the stage names."""
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
            time.sleep(SETTLE_SECONDS)  # threads of librdkafka go on; ours do not
        os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--die"]:
        name, _, number = arguments[1].partition(":")
        _Death(STAGES[name], int(number)).arm()
        arguments = arguments[2:]
    from translator.commands import main as translator  # armed first: others import names from what was changed

    sys.argv = ["translator", *arguments]
    translator()


if __name__ == "__main__":
    main(sys.argv[1:])
