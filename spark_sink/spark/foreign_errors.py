"""Errors of deltalake and of stores, told in one line for the operator."""

from __future__ import annotations

import re

# How deltalake, in colours, tells what has caused an error, and how an S3 server says why it refuses.
_CAUSE = re.compile(r"\n\s*(?:\x1b\[\d+m)?↳(?:\x1b\[0m)?")
_S3_REASON = re.compile(r"<Code>([^<]*)</Code>\s*<Message>([^<]*)</Message>")


def reason(error: Exception) -> str:
    """The first line of an error, and of the last of those that deltalake says have caused it.

    Of the answer of an S3 server only the reason: the rest of it holds the request, signed with our key.
    """
    causes = _CAUSE.split(str(error).strip())
    if found := _S3_REASON.search(causes[-1]):
        causes[-1] = ": ".join(found.groups()).rstrip(".")
    first, *others = (cause.strip().partition("\n")[0] for cause in causes)
    return ": ".join((first, *others[-1:]))
