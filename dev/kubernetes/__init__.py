"""A real Kubernetes API server on this machine for testing the charts. It has no nodes, so no container runs."""
