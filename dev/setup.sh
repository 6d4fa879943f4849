#!/usr/bin/env bash
# Makes .venv from requirements.lock, fetches the jars, compiles that of the sink, makes them the default of its Spark,
# and builds the native path where cargo is there. Quick when nothing changed; `make` calls it before anything.
# $PYTHON selects the Python to build on; the default is python3. If Python is missing or too old, the script exits with
# code 2 and one line that says how to install it. If Java is, it uses a Java runtime that comes as a Python package.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "setup: $1" >&2
    exit 2
}

python=${PYTHON:-python3}
python_help="install it (Debian, Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python), \
or name one: make setup PYTHON=python3.12"
command -v "$python" >/dev/null || fail "Python 3.11 or newer is needed, '$python' was not found; $python_help"
version=$("$python" -c 'import platform; print(platform.python_version())' 2>/dev/null) ||
    fail "Python 3.11 or newer is needed, '$python' does not run; $python_help"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "Python 3.11 or newer is needed, '$python' is $version; $python_help"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "'$python' cannot make virtual environments; install its part for that: sudo apt-get install python3-venv"
[ -x .venv/bin/python ] && .venv/bin/python -m dev.java >/dev/null 2>&1 ||
    "$python" -m dev.java --before-packages >/dev/null || exit 2

# One at a time in this checkout: two that fill the same .venv spoil it. (macOS has no flock; there it is up to you.)
if command -v flock >/dev/null; then
    exec 9>.venv.lock
    flock 9
fi

# The stamp names what .venv was made from, so that any other lock, project file or Python makes it anew.
stamp=$("$python" - <<'PY'
import hashlib, pathlib, sys

made_from = [pathlib.Path(name).read_bytes() for name in ("requirements.lock", "pyproject.toml", "dev/setup.sh")]
print(hashlib.sha256(b"\0".join([*made_from, sys.version.encode()])).hexdigest())
PY
)
if [ "$(cat .venv/setup-stamp 2>/dev/null)" != "$stamp" ]; then
    count=$(grep -c '^[a-z].*==' requirements.lock)
    echo "setup: installing $count packages into .venv (Python $version; a minute or two, once)" >&2
    # Kept when it is of this Python: others may be running from it. Packages that left the lock go with `make clean`.
    if [ "$(.venv/bin/python -c 'import platform; print(platform.python_version())' 2>/dev/null)" != "$version" ]; then
        "$python" -m venv --clear .venv
    fi
    # --require-hashes: nothing but the very files that the lock names, from whatever index this machine uses.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
    echo "$stamp" > .venv/setup-stamp
fi

.venv/bin/python -m dev.spark_class_path
.venv/bin/python -m dev.native
