#!/usr/bin/env bash
# dev/test.sh [--faults] [ARGUMENTS OF PYTEST]
# Runs the tests in two parts at the same time, as most of their time is spent waiting for brokers, Spark and processes.
# With --faults it runs those that kill such things on the way, and else all others. Arguments go to both parts. The
# first part prints as it goes, the other when both have ended. (Three parts were slower in each, not faster in all, on
# two processors.)
# Exit code: 0 when both are green; a part for which the arguments leave no test is green, unless that is so for both.
set -uo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --faults ]; then
    shift
    chosen=(-m faults)
    first=(tests/integration)
    second=(tests/chaos)
else
    chosen=(-m "not faults")
    second=(tests/integration tests/spark_sink)
    first=(tests "${second[@]/#/--ignore=}")
fi

# Who names files or tests wants those, in one go.
for argument in "$@"; do
    if [ -e "${argument%%::*}" ]; then exec .venv/bin/pytest "$@"; fi
done

output=$(mktemp)
trap 'rm -f "$output"' EXIT
trap 'kill "$pid" 2>/dev/null' INT TERM
.venv/bin/pytest "${second[@]}" "${chosen[@]}" "$@" >"$output" 2>&1 &
pid=$!
.venv/bin/pytest "${first[@]}" "${chosen[@]}" "$@"
codes=($?)
wait "$pid"
codes+=($?)
cat "$output"

no_tests=5
result=$no_tests
for code in "${codes[@]}"; do
    if [ "$code" = "$no_tests" ]; then continue; fi
    if [ "$code" != 0 ]; then exit "$code"; fi
    result=0
done
exit "$result"
