#!/usr/bin/env bash
# Compile requirements.lock, requirements-docs.lock and requirements-audit.lock from pyproject.toml, with a temporary uv.
# Arguments are passed to uv.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
"${PYTHON:-python3}" -m venv "$tool/venv"
"$tool/venv/bin/pip" install --quiet --disable-pip-version-check uv

# compile LOCK ABOUT PART ARGUMENTS...: start from the current lock. Without --upgrade, only changes of pyproject.toml matter.
compile() {
    local lock=$1 about=$2 part=$3
    shift 3
    if [ -f "$lock" ]; then cp "$lock" "$tool/lock"; else rm -f "$tool/lock"; fi
    "$tool/venv/bin/uv" pip compile --quiet --no-header --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links $part "$@" -o "$tool/lock"
    {
        echo "# $about, exact and with hashes, for CPython 3.11 and newer. Renewed by \`make lock\`, which runs"
        echo "# uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url $part"
        cat "$tool/lock"
    } > "$lock"
}

compile requirements.lock "Every package of every extra" "--all-extras pyproject.toml" "$@"
compile requirements-docs.lock "The packages of the documentation site" "--group docs" "$@"
compile requirements-audit.lock "The packages of the audit" "--group audit" "$@"
