#!/usr/bin/env bash
# Compiles requirements.lock from pyproject.toml, with a uv of its own that leaves no trace. Arguments go to uv.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
"${PYTHON:-python3}" -m venv "$tool/venv"
"$tool/venv/bin/pip" install --quiet --disable-pip-version-check uv

# The present lock is the starting point: without --upgrade only what pyproject.toml asks for changes.
if [ -f requirements.lock ]; then cp requirements.lock "$tool/lock"; fi
"$tool/venv/bin/uv" pip compile --quiet --no-header --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --all-extras pyproject.toml -o "$tool/lock" "$@"

{
    echo "# Every package of every extra, exact and with hashes, for CPython 3.11 and newer. Renewed by \`make lock\`, which runs"
    echo "# uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --all-extras pyproject.toml"
    cat "$tool/lock"
} > requirements.lock
