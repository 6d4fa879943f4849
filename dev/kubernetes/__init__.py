"""A real API server of Kubernetes on this machine, for the tests of the charts: no nodes, so that no container runs."""
