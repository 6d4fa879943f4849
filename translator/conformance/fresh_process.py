"""Compute digests of all results, either here or in a new process (`python -m translator.conformance.fresh_process`).

The process reads a `DigestRequest` from standard input, and writes one line for each message.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from translator.conformance.cases import Case
from translator.conformance.package import Package
from translator.conformance.trial import Trial
from translator.dialects import DialectPlugin
from translator.message import Learned

_SECONDS = 300
"""Maximum time for a process. It is reached only if the process hangs."""


class DigestRequest(Struct, frozen=True):
    """The messages to translate in another process."""

    package: Package
    cases: Sequence[Case]
    backward: bool


def digests(plugin: DialectPlugin, cases: Sequence[Case], *, backward: bool = False) -> list[str]:
    """Return a digest of each message's result, in the order of the cases.

    Cases with the same options share a dialect. If one message leaves state behind, this state could change the next
    result. This does not apply to cases with metadata messages.

    Args:
        backward: whether to translate the cases in reverse order. The messages of a case are also reversed, unless they
            depend on metadata. If they do, the first message is translated twice, and its second result counts.
    """
    shared: dict[bytes, Trial] = {}
    found: dict[str, list[str]] = {}
    for case in reversed(cases) if backward else cases:
        trial, numbers = Trial(plugin, case), [*range(len(case.messages))]
        if not _learns(plugin, case):
            trial = shared.setdefault(msgspec.msgpack.encode((case.options, case.tables)), trial)
            if backward:
                numbers = [numbers[-1], *reversed(numbers)]
        by_number = {number: _digest(trial, case, number) for number in numbers}
        found[case.name] = [by_number[number] for number in range(len(case.messages))]
    return [digest for case in cases for digest in found[case.name]]


def _learns(plugin: DialectPlugin, case: Case) -> bool:
    """Return whether a case's messages may depend on metadata from other messages."""
    trial = Trial(plugin, case)
    return getattr(trial.dialect, "learns", False) or any(
        isinstance(trial.translate(message).read, Learned) for message in case.messages
    )


def _digest(trial: Trial, case: Case, number: int) -> str:
    translation = trial.translate(case.messages[number])
    records = [(record.key, record.value, record.headers) for record in translation.canonical]
    return hashlib.sha256(msgspec.msgpack.encode((translation.outcome, records))).hexdigest()


def digests_elsewhere(package: Package, cases: Sequence[Case], *, seed: str, backward: bool) -> list[str] | None:
    """Return the digests from a new process with a different hash seed, or None if it fails or hangs."""
    request = msgspec.msgpack.encode(DigestRequest(package, cases, backward))
    try:
        ran = subprocess.run(
            [sys.executable, "-m", __name__],
            input=request,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return ran.stdout.decode().split() if ran.returncode == 0 else None


def _main() -> None:
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=DigestRequest)
    answer = os.dup(1)
    os.dup2(2, 1)  # a plug-in could print, also to a stream that it keeps
    lines = digests(request.package.load(), request.cases, backward=request.backward)
    with os.fdopen(answer, "w") as output:
        output.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    _main()
