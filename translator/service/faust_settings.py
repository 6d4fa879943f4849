"""Faust's settings, derived from ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import faust
import structlog
from faust.auth import OAuthCredentials
from faust.types.auth import AuthProtocol

from cdc_core.kafka_settings import tokens_of
from translator.config.settings import Kafka, Settings
from translator.kafka import client_config
from translator.kafka.oauth import EndpointTokens, ProvidedTokens
from translator.service.faust_pauses import PromptTables
from translator.service.start_offsets import offset_lookup_timeout

log = structlog.get_logger("translator")


def faust_settings(settings: Settings, datadir: str) -> dict[str, Any]:
    timing = settings.timing
    return {
        "env": {},
        "broker": [f"kafka://{server.strip()}" for server in settings.kafka.bootstrap_servers.split(",")],
        "broker_credentials": _credentials(settings.kafka),
        "datadir": datadir,
        "store": "memory://",
        "key_serializer": "raw",
        "value_serializer": "raw",
        "processing_guarantee": "at_least_once",
        "consumer_group_instance_id": settings.group_instance_id,
        "broker_commit_interval": timing.commit_interval,
        "broker_commit_every": 1_000_000_000,  # only the timer commits, because an inline commit stalls fetching
        "stream_buffer_maxsize": 8,  # counted in fetches
        "stream_wait_empty": True,
        "broker_max_poll_records": 1000,
        "consumer_max_fetch_size": 1024 * 1024,
        "consumer_auto_offset_reset": "none",  # the library would skip records silently (start_offsets)
        "broker_session_timeout": timing.session,
        "broker_heartbeat_interval": timing.session / 10,
        # After this time, Faust continues without partition positions, so it must be longer than the time that it takes
        # to find the positions.
        "broker_request_timeout": max(60.0, timing.session, offset_lookup_timeout(settings) + 5),
        "broker_rebalance_timeout": timing.rebalance,
        "broker_max_poll_interval": 300.0,
        "producer_request_timeout": 60.0,
        "TableManager": PromptTables,
        "table_standby_replicas": 0,
        "topic_disable_leader": True,
        "topic_allow_declare": False,
        "debug": False,
        "web_enabled": True,
        "web_bind": settings.web.host,
        "web_port": settings.web.port,
        "web_tables_enabled": False,
        "web_router_enabled": False,
        "web_stats_enabled": False,
        "web_graph_enabled": False,
        "worker_redirect_stdouts": False,
    }


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the names of settings, because Faust silently ignores unknown ones."""
    unknown = set(given) - faust.Settings.setting_names() - {"env"}
    if unknown:
        raise TypeError(f"Faust has no setting {', '.join(sorted(unknown))}")
    return dict(given)


def _credentials(kafka: Kafka) -> Any:
    context = client_config.ssl_context(kafka)
    credentials: Any
    if kafka.sasl_mechanism is None:
        return faust.SSLCredentials(context) if context is not None else None
    if kafka.sasl_mechanism == "OAUTHBEARER":
        tokens = tokens_of(kafka)
        source = EndpointTokens(kafka) if tokens is None else ProvidedTokens(tokens)
        credentials = OAuthCredentials(oauth_cb=source, ssl_context=context)
    else:
        credentials = faust.SASLCredentials(
            username=kafka.sasl_username,
            password=kafka.sasl_password.get_secret_value() if kafka.sasl_password else None,
            mechanism=kafka.sasl_mechanism,
            ssl_context=context,
        )
    credentials.protocol = AuthProtocol(kafka.security_protocol)
    return credentials
