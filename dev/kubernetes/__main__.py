"""`python -m dev.kubernetes [--build]`: an API server of Kubernetes until Ctrl-C; it prints the path of its kubeconfig.

With `--build` its programs are built and fetched, once, and nothing runs. Exit code 1: they are not to be had.
"""

from __future__ import annotations

import signal
import sys

from dev.kubernetes.cluster import Kubernetes
from dev.kubernetes.programs import KubernetesError, build, kubernetes


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if "--build" in arguments:
            build()
            print(kubernetes())
            return 0
        with Kubernetes() as cluster:
            print(cluster.kubeconfig, flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except KubernetesError as error:
        print(f"kubernetes: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
