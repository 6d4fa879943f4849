"""Store the operators' commands as rows in `_cdc.commands`.

The running job executes them between batches, because nothing else writes the tables. It answers with rows that have
the command's id.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import structlog

from spark_sink.errors import FatalError, Refused, unknown
from spark_sink.schema.table_naming import RESERVED
from spark_sink.tables.delta.control_tables import ControlTable

log = structlog.get_logger()

NAME = f"{RESERVED}.commands"

_TEXTS = ("id", "command", "target", "argument", "state", "result", "error")
ARROW = pa.schema(
    [
        pa.field("pipeline", pa.string()),
        *(pa.field(name, pa.string()) for name in _TEXTS),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)


class State(StrEnum):
    """The states of a command, in the order in which they occur. The last row of a command contains its current
    state.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


_ORDER = {state.value: number for number, state in enumerate(State)}


@dataclass(frozen=True)
class Request:
    """A command in its current state."""

    id: str
    command: str
    target: str
    argument: str | None
    state: str
    result: str | None = None
    error: str | None = None

    @property
    def ended(self) -> bool:
        return self.state in (State.DONE, State.FAILED)


class RequestTable(ControlTable):
    """The table `_cdc.commands`."""

    def __init__(self, warehouse: str, pipeline: str) -> None:
        super().__init__(warehouse, NAME, pipeline, ARROW)

    def check(self) -> None:
        """Raise an error unless some sink will execute commands.

        Raises:
            FatalError: no sink has ever run on this warehouse.
        """
        if not self.exists():
            raise FatalError(f"no sink has run on this warehouse yet, because the table {NAME} does not exist")

    def ask(self, command: str, target: str, argument: str | None = None) -> str:
        """Queue a command and return its id."""
        self.check()
        id = uuid.uuid4().hex
        self._say({"id": id, "command": command, "target": target, "argument": argument, "state": State.QUEUED.value})
        return id

    def answer(self, request: Request, state: State, *, result: str | None = None, error: str | None = None) -> None:
        fields = {"id": request.id, "command": request.command, "target": request.target, "argument": request.argument}
        self._say({**fields, "state": state.value, "result": result, "error": error})

    def requests(self) -> list[Request]:
        """Return all commands, in the order in which they were requested."""
        rows = sorted(self.read([*_TEXTS, "at"]).to_pylist(), key=lambda row: _ORDER.get(row["state"], 0))
        queued = {row["id"]: row["at"] for row in reversed(rows)}
        latest = {row["id"]: Request(**{name: row[name] for name in _TEXTS}) for row in rows}
        return sorted(latest.values(), key=lambda request: (queued[request.id], request.id))

    def open_targets(self, command: str) -> set[str]:
        """Return the tables that have an open command."""
        return {one.target for one in self.requests() if one.command == command and not one.ended}

    def forget_before(self, moment: float) -> int:
        """Delete the rows of commands that finished before a moment (seconds since 1970), and return how many were
        deleted. As long as a command is open, delete nothing.
        """
        if any(not request.ended for request in self.requests()):
            return 0
        return self.remove_before("at", moment)

    def _say(self, row: Mapping[str, Any]) -> None:
        self.append([{**row, "at": time.time_ns() // 1000}])


@dataclass(frozen=True)
class RequestAnswer:
    """The result of a command. If `ended` is false, the command continues after the next batch."""

    result: str
    ended: bool = True


# Executes a command on a table, with the command's argument. An action may be called again after a crash.
Action = Callable[[str, str | None], RequestAnswer]


@dataclass
class Requests:
    """Executes commands in order. Commands for the same table run one after another."""

    control_table: RequestTable
    actions: Mapping[str, Action]
    _seen: int = -1
    _open: list[Request] = field(default_factory=list)
    # The last result of each open command.
    _results: dict[str, str] = field(default_factory=dict)

    def run(self) -> bool:
        """Process all open commands once. Return whether any command is still open."""
        version = self.control_table.version()
        if version != self._seen:
            self._open = [request for request in self.control_table.requests() if not request.ended]
            self._seen = version
        waiting: list[Request] = []
        for request in self._open:
            if request.target in {before.target for before in waiting} or not self._execute(request):
                waiting.append(request)
        self._open = waiting
        return bool(waiting)

    def _execute(self, request: Request) -> bool:
        """Execute a command, and return whether it has finished."""
        fields = {"command": request.command, "table": request.target, "id": request.id}
        try:
            if request.command not in self.actions:
                raise FatalError(unknown("command", request.command, self.actions))
            answer = self.actions[request.command](request.target, request.argument)
        except Exception as error:
            # Catch any exception. Otherwise, a failing command would stop the sink at every start.
            known = isinstance(error, FatalError | Refused)
            why = str(error) if known else f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            log.error("command failed", **fields, error=why)
            self.control_table.answer(request, State.FAILED, error=why)
            self._results.pop(request.id, None)
            return True
        if not answer.ended and self._results.get(request.id) == answer.result:
            return False  # the command waits for work that runs elsewhere
        if answer.ended:
            self._results.pop(request.id, None)
        else:
            self._results[request.id] = answer.result
        log.info(
            "command executed" if answer.ended else "command continues after the next batch",
            **fields,
            result=answer.result,
        )
        self.control_table.answer(request, State.DONE if answer.ended else State.RUNNING, result=answer.result)
        return answer.ended
