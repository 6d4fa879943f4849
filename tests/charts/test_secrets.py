"""Secrets never reach a ConfigMap: the charts reject them in plain text, and accept variables instead."""

from __future__ import annotations

from typing import Any

import pytest

from dev.release.charts import CHARTS, FOLDER, ChartError, render

# Chart, path of the setting, a value that is secret, and the same setting with a variable instead.
_SECRETS: list[tuple[str, str, Any, Any]] = [
    ("translator", "kafka.sasl_password", "hunter2", "${PART}"),
    ("translator", "kafka.sasl_password", "hunter2${PART}", "${PART}"),
    ("translator", "kafka.oauth_client_secret", "hunter2", "${PART}"),
    ("translator", "kafka.ssl_key_password", "20220320", "${PART}"),
    ("translator", "masks", {"key": "k" * 32, "rules": []}, {"key": "${PART}", "rules": []}),
    (
        "translator",
        "registry",
        {"url": "https://r", "password": "hunter2"},
        {"url": "https://r", "password": "${PART}"},
    ),
    ("translator", "registry", {"url": "https://cdc:hunter2@r"}, {"url": "https://${PART}:${PART}@r"}),
    (
        "translator",
        "metrics",
        {"otlp": {"endpoint": "http://c/v1", "headers": {"Authorization": "Bearer hunter2"}}},
        {"otlp": {"endpoint": "http://c/v1", "headers": {"Authorization": "Bearer ${PART}"}}},
    ),
    (
        "translator",
        "metrics",
        {"otlp": {"endpoint": "http://cdc:hunter2@c/v1"}},
        {"otlp": {"endpoint": "http://cdc:${PART}@c/v1"}},
    ),
    ("spark-sink", "kafka.sasl_password", "hunter2", "${PART}"),
    (
        "spark-sink",
        "metrics",
        {"otlp": {"endpoint": "http://c/v1", "headers": {"api-key": "hunter2"}}},
        {"otlp": {"endpoint": "http://c/v1", "headers": {"api-key": "${PART}"}}},
    ),
]

# Settings of Spark, and properties of an Iceberg catalog.
_SPARK = [
    ("spark.hadoop.fs.s3a.secret.key", "hunter2", "${PART}"),
    ("spark.hadoop.fs.s3a.access.key", "hunter2", "${PART}"),
    ("spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net", "hunter2", "${PART}"),
    ("spark.hadoop.fs.azure.sas.lake", "https://a/b?sv=1&sig=hunter2", "https://a/b?sv=1&sig=${PART}"),
    ("spark.executorEnv.AWS_SECRET_ACCESS_KEY", "hunter2", "${PART}"),
    ("spark.authenticate.secret", "hunter2", "${PART}"),
    ("spark.ssl.keyStorePassword", "hunter2", "${PART}"),
    ("spark.sql.catalog.other.header.Authorization", "Bearer hunter2", "Bearer ${PART}"),
    (
        "spark.hadoop.javax.jdo.option.ConnectionURL",
        "jdbc:mysql://h/d?password=hunter2",
        "jdbc:mysql://h/d?password=${PART}",
    ),
    (
        "spark.kafka.sasl.jaas.config",
        'Module required username="${PART}" password="hunter2";',
        'Module required username="${PART}" password="${PART}";',
    ),
]
_CATALOG = [
    ("token", "hunter2", "${PART}"),
    ("credential", "id:hunter2", "id:${PART}"),
    ("s3.access-key-id", "hunter2", "${PART}"),
    ("s3.secret-access-key", "hunter2", "${PART}"),
    ("header.X-Api-Key", "hunter2", "${PART}"),
    ("client.api.key", "hunter2", "${PART}"),
]
_SECRETS += [("spark-sink", "spark.conf", {name: bad}, {name: good}) for name, bad, good in _SPARK]
_SECRETS += [
    (
        "spark-sink",
        "tables.iceberg_catalog",
        {"type": "rest", "uri": "https://c", "properties": {name: bad}},
        {"type": "rest", "uri": "https://c", "properties": {name: good}},
    )
    for name, bad, good in _CATALOG
]


@pytest.mark.parametrize(("chart", "path", "bad", "good"), _SECRETS)
def test_secrets(chart: str, path: str, bad: Any, good: Any) -> None:
    """The error names the setting but not the secret, and a variable is accepted."""
    with pytest.raises(ChartError, match="holds a secret in plain text") as refusal:
        _render(chart, {f"config.{path}": bad})
    assert f"config.{path}" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)
    assert _render(chart, {f"config.{path}": good, "env": [{"name": "PART", "value": "-"}]})


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.hadoop.fs.s3a.aws.credentials.provider": "com.example.Provider"},
        {"spark.sql.catalog.other.header.X-Iceberg-Access-Delegation": "vended-credentials"},
        {"spark.sql.catalog.other.token-refresh-enabled": "true"},
        {"spark.kubernetes.driver.secrets.login": "/etc/secrets"},
        {"spark.sql.catalog.other.oauth2-server-uri": "https://login/token"},
    ],
)
def test_names_that_only_sound_secret(conf: dict[str, str]) -> None:
    assert _render("spark-sink", {"config.spark.conf": conf})


@pytest.mark.parametrize("chart", CHARTS)
def test_a_secret_in_a_variable(chart: str) -> None:
    """A variable in plain text is in the pod's specification, which more people can read than a Secret."""
    with pytest.raises(ChartError, match=r"env\.AWS_SECRET_ACCESS_KEY holds a secret") as refusal:
        _render(chart, {"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}]})
    assert "hunter2" not in str(refusal.value)
    assert _render(chart, {"env": [{"name": "AWS_WEB_IDENTITY_TOKEN_FILE", "value": "/var/run/token"}]})


def test_both_charts_have_the_same_rule() -> None:
    first, second = (FOLDER / chart / "templates" / "_secrets.tpl" for chart in CHARTS)
    assert first.read_bytes() == second.read_bytes()


def _render(chart: str, overrides: dict[str, Any]) -> list[dict[str, Any]]:

    return render(chart, FOLDER / chart / "ci" / "default-values.yaml", overrides=overrides)
