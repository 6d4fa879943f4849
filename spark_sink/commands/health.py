"""`spark-sink health`: query the probes and metrics of a running sink."""

from __future__ import annotations

import math
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime

import click
from prometheus_client.parser import text_string_to_metric_families

from spark_sink.errors import ConfigError, FatalError

_ANSWER_SECONDS = 10.0
_PAUSE_SECONDS = 1.0

# Every sink has this metric from startup on.
_BATCHES = "cdc_sink_batches_total"


@click.command()
@click.option(
    "--timeout",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds to wait for the sink to become healthy.",
)
@click.argument("url")
def health(url: str, timeout: float) -> None:
    """Check whether the sink that runs at URL (http://HOST:PORT, its `metrics.port`) is healthy.

    A sink is healthy if it is alive and has planned its first batch, or has nothing to read. The output shows the
    newest batch, the lag and the number of parked tables. Exit code 1 means that the sink does not respond or reports a
    problem. Exit code 2 means that the program at URL is not a sink.
    """
    base = url.rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise click.BadParameter(f"{url} is not an address such as http://HOST:PORT", param_hint="URL")
    deadline = time.monotonic() + timeout
    while wrong := _wrong(base):
        if time.monotonic() >= deadline:
            raise FatalError(wrong)
        time.sleep(_PAUSE_SECONDS)
    click.echo(_summary(base, _asked(f"{base}/metrics")))


def _wrong(base: str) -> str | None:
    """Return the sink's problem, or None if the sink is healthy."""
    for page in ("/livez", "/readyz"):
        try:
            _asked(base + page)
        except urllib.error.HTTPError as answer:
            return f"{base}{page} answers {answer.code}: {answer.read(1000).decode(errors='replace').strip()}"
        except OSError as error:
            return f"{base} does not respond: {getattr(error, 'reason', error)}"
    return None


def _asked(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310 - http or https, as looked at above
        text: str = answer.read().decode()
    return text


def _summary(url: str, metrics: str) -> str:
    """Describe the sink.

    Raises:
        ConfigError: the metrics do not come from a sink.
    """
    told = {
        sample.name: sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if not sample.labels
    }
    if _BATCHES not in told:
        raise ConfigError(
            f"{url} responds but is not a spark-sink: its metrics lack {_BATCHES}. Check the host and port"
        )
    batches = int(told[_BATCHES])
    parts = ["no batch yet"]
    if batches:
        newest = datetime.fromtimestamp(told["cdc_sink_last_batch_timestamp_seconds"], UTC)
        parts = [f"batches since startup: {batches}, newest ended {newest:%Y-%m-%d %H:%M:%S} UTC"]
    lag = told.get("cdc_sink_lag_records", math.nan)
    parts.append("lag: " + ("unknown" if math.isnan(lag) else f"{lag:.0f} records"))
    parts.append(f"parked tables: {told.get('cdc_sink_parked_tables', 0):.0f}")
    return f"alive and ready; {'; '.join(parts)}"
