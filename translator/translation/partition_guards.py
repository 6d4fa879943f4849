"""Compare each message with earlier ones in its partition, to find problems that a single message cannot show
(message.Guard).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from translator._native.layout import NativeGuard, TakenMessage
from translator.errors import ContradictionError
from translator.message import Dialect, Finding, Guard, Guarded, Message
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Result


class Guards:
    """The guards for a dialect's partitions. The guards see every message in order, before anything from it is written.

    Args:
        warn: called for findings that do not stop the process.
    """

    def __init__(self, dialect: Dialect, warn: Callable[[str], object]) -> None:
        self._new = dialect.guard if isinstance(dialect, Guarded) else _no_guard
        self._warn = warn
        self._guards: dict[tuple[str, int], Guard | None] = {}

    def inspect(self, message: Message, result: Result) -> None:
        """Inspect a partition's next message.

        Raises:
            ContradictionError: this message and all later messages must not be written.
        """
        guard = self._guard_of(message)
        if guard is None:
            return
        if isinstance(result, DeadLetter):
            guard.missed()
        elif isinstance(result, Events):
            self._tell(guard.inspect(message, result.changes))

    def missed(self, message: Message) -> None:
        """Record that the partition's next message is not written now. The guard then does not know its changes."""
        guard = self._guard_of(message)
        if guard is not None:
            guard.missed()

    def inspect_run(
        self, messages: Sequence[Message], results: Sequence[Result]
    ) -> tuple[int, ContradictionError | None]:
        """Inspect a partition's next messages.

        It returns the number of messages that may be written, and the reason to stop before the next one.
        """
        if self._guard_of(messages[0]) is not None:
            for number, (message, result) in enumerate(zip(messages, results, strict=True)):
                try:
                    self.inspect(message, result)
                except ContradictionError as error:
                    return number, error
        return len(results), None

    def inspect_taken(
        self, messages: Sequence[Message], taken: Sequence[TakenMessage]
    ) -> tuple[int, ContradictionError | None]:
        """Inspect messages that the native path translated, in the same way as `inspect_run`."""
        guard = self._guard_of(messages[0])
        if guard is None:
            return len(taken), None
        # `native_path` checks that it is one. Here, isinstance with a protocol would take 20 us.
        native = cast(NativeGuard, guard)
        done = 0
        while done < len(taken):
            count, findings = native.inspect_taken(messages[done:], taken[done:])
            done += count
            try:
                self._tell(findings)
            except ContradictionError as error:
                return done - 1, error
        return done, None

    def _guard_of(self, message: Message) -> Guard | None:
        place = message.topic, message.partition
        if place not in self._guards:
            self._guards[place] = self._new()
        return self._guards[place]

    def _tell(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if finding.fatal:
                raise ContradictionError(finding.text)
            self._warn(finding.text)

    def forget(self) -> None:
        """Reset the guards, because other processes may have processed the partitions in the meantime."""
        self._guards.clear()


def _no_guard() -> Guard | None:
    return None
