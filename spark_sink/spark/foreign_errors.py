"""Report an error from deltalake or an object store to the operator in one line."""

from __future__ import annotations

import re

# The format in which deltalake reports the cause of an error, including colors, and the format in which an S3 server
# reports why it rejects a request.
_CAUSE = re.compile(r"\n\s*(?:\x1b\[\d+m)?↳(?:\x1b\[0m)?")
_S3_REASON = re.compile(r"<Code>([^<]*)</Code>\s*<Message>([^<]*)</Message>")


def reason(error: Exception) -> str:
    """Return the first line of an error, and the first line of its last cause in deltalake's message.

    Only the reason is taken from the response of an S3 server, because the rest contains the signed request.
    """
    causes = _CAUSE.split(str(error).strip())
    if found := _S3_REASON.search(causes[-1]):
        causes[-1] = ": ".join(found.groups()).rstrip(".")
    first, *others = (cause.strip().partition("\n")[0] for cause in causes)
    return ": ".join((first, *others[-1:]))
