"""`python -m dev.kubernetes [--build]`: an API server of Kubernetes until Ctrl-C; it prints the path of its kubeconfig.

With `--build` its programs are built and fetched, once, and nothing runs. Exit code 1: they are not to be had.
"""

from __future__ import annotations

import sys

from dev.kubernetes.cluster import Kubernetes
from dev.kubernetes.programs import KubernetesError, build, kubernetes
from dev.servers.server import hold


def main(arguments: list[str]) -> int:
    if "--build" not in arguments:
        return hold("kubernetes", Kubernetes(), lambda cluster: str(cluster.kubeconfig))
    try:
        build()
    except KubernetesError as error:
        print(f"kubernetes: {error}", file=sys.stderr)
        return 1
    print(kubernetes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
