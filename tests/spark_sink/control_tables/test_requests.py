"""The command queue, without Spark: order, answers and restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_sink.control_tables.requests import Action, Request, RequestAnswer, Requests, RequestTable, State
from spark_sink.errors import FatalError


class Script:
    """Actions that record their calls and return prepared answers."""

    def __init__(self, *answers: RequestAnswer | Exception) -> None:
        self.called: list[tuple[str, str | None]] = []
        self._answers = list(answers)

    def __call__(self, target: str, argument: str | None) -> RequestAnswer:
        self.called.append((target, argument))
        answer = self._answers.pop(0) if self._answers else RequestAnswer("done")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def named(self, *names: str) -> dict[str, Action]:
        return dict.fromkeys(names, self)


@pytest.fixture
def control_table(tmp_path: Path) -> RequestTable:
    made = RequestTable(str(tmp_path), "p")
    made.create()
    return made


def _one(control_table: RequestTable, id: str) -> Request:
    return next(request for request in control_table.requests() if request.id == id)


def test_one_after_the_other(control_table: RequestTable) -> None:
    """Commands of a table wait for the one before; those of other tables and rounds do not; each is answered once."""
    script = Script(RequestAnswer("some", ended=False), RequestAnswer("other"), RequestAnswer("rest"))
    requests = Requests(control_table, script.named("resume", "park"))
    assert not requests.run()
    ids = [control_table.ask("resume", "a"), control_table.ask("park", "a"), control_table.ask("resume", "b", "x")]
    assert requests.run()
    assert [("a", None), ("b", "x")] == script.called
    assert [State.RUNNING, State.QUEUED, State.DONE] == [_one(control_table, id).state for id in ids]
    assert not requests.run()
    assert [("a", None), ("a", None)] == script.called[2:]
    assert ["rest", "done", "other"] == [_one(control_table, id).result for id in ids]
    assert not requests.run()
    assert 4 == len(script.called)


def test_another_process_goes_on(control_table: RequestTable) -> None:
    """What was not answered is executed by the next process, what was is not; other pipelines are not asked."""
    ended, begun = control_table.ask("resume", "a"), control_table.ask("resume", "b")
    Requests(control_table, Script(RequestAnswer("done"), RequestAnswer("half", ended=False)).named("resume")).run()
    script = Script()
    other = RequestTable(str(Path(control_table.path).parent.parent), "other")
    assert not Requests(other, script.named("resume")).run()
    assert [] == script.called
    assert not Requests(control_table, script.named("resume")).run()
    assert ([("b", None)], "done") == (script.called, _one(control_table, begun).result)
    assert State.DONE == _one(control_table, ended).state


def test_a_command_ends_nothing_else(control_table: RequestTable) -> None:
    """Whatever goes wrong is the command's answer, and the next one is executed."""
    script = Script(FatalError("no such thing"), RuntimeError("first line\nsecond line"), RequestAnswer("done"))
    ids = [control_table.ask("resume", name) for name in "abc"]
    assert not Requests(control_table, script.named("resume")).run()
    told = [(_one(control_table, id).state, _one(control_table, id).error) for id in ids]
    assert [(State.FAILED, "no such thing"), (State.FAILED, "RuntimeError: first line"), (State.DONE, None)] == told


def test_without_a_sink(tmp_path: Path) -> None:
    """A warehouse that no sink has written to takes no command: nobody would execute it."""
    with pytest.raises(
        FatalError, match=r"no sink has run on this warehouse yet, because the table _cdc.commands does not exist"
    ):
        RequestTable(str(tmp_path), "p").ask("park", "a")
    assert [] == RequestTable(str(tmp_path), "p").requests()
