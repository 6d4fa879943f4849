"""A real Kubernetes API server on this machine for tests of the charts. It has no nodes, so no container runs."""
