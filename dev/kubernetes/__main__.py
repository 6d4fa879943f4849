"""Run a Kubernetes API server until Ctrl-C, and print the path of its kubeconfig: `python -m dev.kubernetes [--build]`.

`--build` only builds and downloads the server's programs, once. The exit code is 1 if the programs are not available.
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
