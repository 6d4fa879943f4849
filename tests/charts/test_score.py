"""The remarks of kube-score on every example, with the reasons to keep them."""

from __future__ import annotations

from dev.release.charts import CHARTS, examples, remarks

_TMP = "nothing but /tmp can be written, and its volume has a size (tmpSizeLimit)"
_PLATFORM = "platform-user-values.yaml: the platform assigns the user"
_POLICY = "networkPolicy.enabled is for the operator: a policy knows no host names, and a wrong one cuts the pods off"
_SPREAD = "topologySpreadConstraints and affinity are values"

# Remark -> reason to keep it.
STAYS = {
    "CPU limit is not set": "a throttled process misses heartbeats and loses its partitions",
    "Memory limit is not set": "platform-user-values.yaml takes it away, as an example",
    "Ephemeral Storage request is not set": _TMP,
    "Ephemeral Storage limit is not set": _TMP,
    "ImagePullPolicy is not set to Always": "tags of releases do not move; image.digest is for who wants to be sure",
    "The pod does not have a matching NetworkPolicy": _POLICY,
    "The container is running with a low user ID": _PLATFORM,
    "The container running with a low group ID": _PLATFORM,
    "Deployment update strategy": "Recreate: one release and one configuration at a time (the chart's README)",
    "Deployment few replicas": "one pod is enough for most, and a second one is `replicas: 2`",
    "Deployment does not have a host podAntiAffinity set": _SPREAD,
    "StatefulSet does not have a host podAntiAffinity set": _SPREAD,
}


def test_every_remark_has_its_reason() -> None:
    """A remark without a reason must be fixed, and a reason without a remark must be removed."""
    found = set().union(*(remarks(chart, values) for chart in CHARTS for values in examples(chart)))
    assert sorted(STAYS) == sorted(found)
