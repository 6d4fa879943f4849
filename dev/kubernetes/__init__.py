"""Run a real Kubernetes API server on this machine, to test the charts. The cluster has no nodes, so no container
runs.
"""
