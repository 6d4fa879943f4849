"""Faults for workers and brokers while messages are fed. Every fault waits for progress first."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from tests.chaos import verify
from tests.chaos.launcher import STAGES, WITH_TRANSACTIONS

if TYPE_CHECKING:
    from dev.servers.cluster import Node
    from tests.chaos.run import Run
    from tests.chaos.worker import Worker


def kills(run: Run, stages: tuple[str, ...], rounds: int) -> None:
    """One worker dies at each stage, the given number of times."""
    order = [stage for _ in range(rounds) for stage in run.dice.sample(stages, len(stages))]
    if run.delivery == "exactly_once":
        order = [WITH_TRANSACTIONS.get(stage, stage) for stage in order]
    worker = run.worker([(stage, run.dice.randint(2, STAGES[stage].most)) for stage in order])
    worker.wait_killed(len(order))
    run.progress.wait("after the last kill")


def compacted_then_kills(run: Run, stages: tuple[str, ...], rounds: int) -> None:
    """The broker compacts the raw topic before and while it is read."""
    deadline = time.monotonic() + 120
    while True:
        fed = run.feeder.count
        left = sum(1 for _ in verify.records(run.servers.bootstrap, run.raw))
        if left < fed * 0.7:
            break
        assert time.monotonic() < deadline, f"not compacted: {left} records of {fed}"
        time.sleep(1)
    run.say(f"compacted: {left} records are left of {fed}")
    kills(run, stages, rounds)


def terminations(run: Run, rounds: int) -> None:
    """One worker is terminated and restarted."""
    worker = run.worker()
    for number in range(rounds):
        run.progress.wait("before SIGTERM")
        run.pause()
        run.fault("SIGTERM")
        worker.signal(signal.SIGTERM)
        worker.wait_ended(number + 1)
    run.progress.wait("after the last SIGTERM")


def freezes(run: Run, rounds: int, seconds: float) -> None:
    """One of two workers is frozen for longer than its session, and resumes when others have its partitions."""
    workers = [run.worker(), run.worker()]
    for number in range(rounds):
        run.progress.wait("before SIGSTOP")
        run.pause()
        frozen = workers[number % 2]
        frozen.signal(signal.SIGSTOP)
        run.fault(f"SIGSTOP for {seconds:g} s")
        time.sleep(seconds)
        frozen.signal(signal.SIGCONT)
        run.progress.wait("after SIGCONT")


def scale(run: Run, rounds: int) -> None:
    """The group grows from one worker to three, and shrinks back to one."""
    run.worker()
    for _ in range(rounds):
        run.progress.wait("with one worker")
        run.fault("1 to 3 workers")
        more = [run.worker(), run.worker()]
        run.progress.wait("with three workers")
        time.sleep(5)  # they start in sequence, and each causes a rebalance
        run.progress.wait("with three workers")
        run.fault("3 to 1 workers")
        for worker in more:
            worker.stop()
        run.progress.wait("with one worker again")


def churn(run: Run, seconds: float, every: float) -> None:
    """At every beat, a worker is added or removed. The group has one to four workers."""
    running: list[Worker] = [run.worker(), run.worker()]
    run.progress.wait("before the churn")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        beat = time.monotonic() + every
        if len(running) == 1 or (len(running) < 4 and run.dice.random() < 0.5):
            running.append(run.worker())
            run.fault("worker added")
        else:
            leaving = running.pop(run.dice.randrange(len(running)))
            run.fault("worker removed")
            leaving.stop()
        time.sleep(max(0.0, beat - time.monotonic()))
    run.progress.wait("after the churn")


def broker_kills(run: Run, rounds: int, down: float) -> None:
    """The only broker is killed and restarted."""
    run.worker()
    run.worker()
    for _ in range(rounds):
        run.progress.wait("before the kill of the broker")
        run.pause()
        run.broker.kill()
        run.fault(f"broker SIGKILL, {down:g} s down")
        time.sleep(down)
        run.broker.start()
        run.healed("broker answers")
        run.progress.wait("after the start of the broker")


def leader_changes(run: Run, rounds: int) -> None:
    """The leader of an output partition is killed, restarted, and becomes leader again."""
    run.worker()
    run.worker()
    for number in range(rounds):
        run.progress.wait("before the change of leaders")
        run.pause()
        topic = (run.canonical, run.raw)[number % 2]
        _away(run, run.cluster.leader(topic, run.dice.randrange(4)), hard=True)
        run.cluster.elect_preferred([run.raw, run.canonical])
        run.fault("leaders moved back")
        run.progress.wait("after leaders moved back")


def coordinator_moves(run: Run, rounds: int) -> None:
    """The group coordinator is stopped cleanly and killed in turn."""
    run.worker()
    run.worker()
    for number in range(rounds):
        run.progress.wait("before the coordinator moves")
        run.pause()
        _away(run, run.cluster.coordinator(run.tag), hard=number % 2 == 1)


def _away(run: Run, node: Node, *, hard: bool) -> None:
    (node.kill if hard else node.stop)()
    run.fault(f"node {node.number} {'killed' if hard else 'stopped'}")
    run.progress.wait("with two nodes")
    node.start()
    run.cluster.wait_in_sync([run.raw, run.canonical, "__consumer_offsets"])


def below_min_isr(run: Run, seconds: float, *, coordinator: bool = False) -> None:
    """The canonical topic has fewer in-sync replicas than its minimum, for longer than `timing.delivery`.

    The stopped node is the leader of one of its partitions or the group coordinator.
    """
    workers = [run.worker(), run.worker()]
    run.progress.wait("before a replica goes")
    ended = [len(worker.codes) for worker in workers]
    node = run.cluster.coordinator(run.tag) if coordinator else run.cluster.leader(run.canonical, 0)
    node.kill()
    run.fault(f"canonical topic below min.insync.replicas for {seconds:g} s")
    over = time.monotonic() + seconds
    # Earlier writes are committed once a coordinator is available, not after the writers have ended.
    _wait_ended(workers, ended)
    before = run.progress.asked_now()
    _wait_ended(workers, [len(worker.codes) for worker in workers])  # they have retried
    time.sleep(max(0.0, over - time.monotonic()))
    assert before == run.progress.asked_now(), "what cannot be written was committed"
    node.start()
    run.cluster.wait_in_sync([run.canonical])
    run.healed("all replicas in sync")
    run.progress.wait("after the replicas came back")


def _wait_ended(workers: list[Worker], before: list[int]) -> None:
    """Wait until each worker has ended more often than before."""
    for worker, times in zip(workers, before, strict=True):
        worker.wait_ended(times + 1)


def made_again(run: Run, rounds: int) -> None:
    """The raw topic is deleted after it was read completely, and recreated under the running worker."""
    # The operator knows that nothing is missing. An offset from a deleted topic is a gap that has to be accepted.
    worker = run.worker(arguments=("--accept-gap",))
    for number in range(rounds):
        run.progress.wait("before the topic goes")
        run.make_raw_again()
        worker.wait_ended(number + 1)
        assert worker.codes[-1] == 1, f"it must stop with 1, and ended with {worker.codes[-1]}"


def mixed(run: Run, stop: float, down: float) -> None:
    """A few of all the faults that a single broker can show."""
    first = run.worker()
    run.progress.wait("with one worker")
    run.fault("1 to 2 workers")
    second = run.worker()
    run.progress.wait("with two workers")
    first.signal(signal.SIGSTOP)
    run.fault(f"SIGSTOP for {stop:g} s")
    time.sleep(stop)
    first.signal(signal.SIGCONT)
    run.progress.wait("after SIGCONT")
    run.broker.kill()
    run.fault(f"broker SIGKILL, {down:g} s down")
    time.sleep(down)
    run.broker.start()
    run.healed("broker answers")
    run.progress.wait("after the start of the broker")
    run.fault("2 to 1 workers")
    second.stop()
    run.progress.wait("with one worker again")
