"""Guards of partitions: what one message cannot show, held against the messages before it (message.Guard)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from translator._native.layout import TakenMessage
from translator.errors import ContradictionError
from translator.message import Dialect, Finding, Guard, Guarded, Message
from translator.translation.dead_letter import DeadLetter
from translator.translation.translate import Events, Result


class Guards:
    """The guards of a dialect's partitions. They see every message in order, before anything of it is written.

    Args:
        warn: is told what does not stop the process.
    """

    def __init__(self, dialect: Dialect, warn: Callable[[str], object]) -> None:
        self._new = dialect.guard if isinstance(dialect, Guarded) else _no_guard
        self._warn = warn
        self._guards: dict[tuple[str, int], Guard | None] = {}

    def inspect(self, message: Message, result: Result) -> None:
        """Takes the next message of a partition in.

        Raises:
            ContradictionError: nothing of the message may be written, nor of any after it.
        """
        guard = self._guard_of(message)
        if guard is None:
            return
        if isinstance(result, DeadLetter):
            guard.missed()
        elif isinstance(result, Events):
            self._tell(guard.inspect(message, result.changes))

    def missed(self, message: Message) -> None:
        """Take in that the next message of a partition is not written now: what it changed is not known."""
        guard = self._guard_of(message)
        if guard is not None:
            guard.missed()

    def inspect_run(
        self, messages: Sequence[Message], results: Sequence[Result]
    ) -> tuple[int, ContradictionError | None]:
        """Takes the next messages of a partition in.

        Returns how many of them may be written, and why not the one behind them, nor any after it.
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
        """As `inspect_run`, of messages that the native path took."""
        guard = self._guard_of(messages[0])
        # Asked by the name: what a protocol asks of an instance takes 20 us.
        inspect: Callable[[Message, TakenMessage], list[Finding]] | None = getattr(guard, "inspect_taken", None)
        if inspect is not None:
            for number, (message, found) in enumerate(zip(messages, taken, strict=True)):
                try:
                    self._tell(inspect(message, found))
                except ContradictionError as error:
                    return number, error
        return len(taken), None

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
        """Begins anew: other processes may go on with the partitions."""
        self._guards.clear()


def _no_guard() -> Guard | None:
    return None
