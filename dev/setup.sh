#!/usr/bin/env bash
# Creates .venv from requirements.lock, downloads the jars, compiles the sink's jar, makes Spark in .venv use them by
# default, and builds the native path if cargo is installed. Quick if nothing changed; `make` always runs it first.
# $PYTHON selects the Python to build on; the default is python3. If Python is missing or too old, the script exits with
# code 2 and one line that explains how to install it. If Java is missing or too old, the script uses the Java in a
# Python package.
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

# Run only one setup at a time per checkout, because two would corrupt the same .venv. macOS has no flock, so there you
# have to make sure yourself.
if command -v flock >/dev/null; then
    exec 9>.venv.lock
    flock 9
fi

# The stamp identifies what .venv was created from. A different lock, project file or Python recreates it.
stamp=$("$python" - <<'PY'
import hashlib, pathlib, sys

made_from = [pathlib.Path(name).read_bytes() for name in ("requirements.lock", "pyproject.toml", "dev/setup.sh")]
print(hashlib.sha256(b"\0".join([*made_from, sys.version.encode()])).hexdigest())
PY
)
if [ "$(cat .venv/setup-stamp 2>/dev/null)" != "$stamp" ]; then
    count=$(grep -c '^[a-z].*==' requirements.lock)
    echo "setup: installing $count packages into .venv (Python $version; a minute or two, once)" >&2
    # Keep .venv if it has the same Python, because processes may be running from it. `make clean` removes packages that
    # are no longer in the lock.
    if [ "$(.venv/bin/python -c 'import platform; print(platform.python_version())' 2>/dev/null)" != "$version" ]; then
        "$python" -m venv --clear .venv
    fi
    # --require-hashes only accepts the files listed in the lock, from whatever index this machine uses.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
    echo "$stamp" > .venv/setup-stamp
fi

.venv/bin/python -m dev.spark_class_path
.venv/bin/python -m dev.native
