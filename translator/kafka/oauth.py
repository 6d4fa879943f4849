"""Get OAuth tokens for aiokafka. Unless a token provider returns the tokens, librdkafka requests its own."""

from __future__ import annotations

import asyncio

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from httpx2 import HTTPError

from cdc_core.kafka_tokens import TokenError, Tokens
from translator.config.settings import Kafka
from translator.kafka.client_config import ssl_context_for

_TIMEOUT = 10.0


class ProvidedTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Passes the tokens of a token provider to aiokafka."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def token(self) -> str:
        """Return a valid token.

        Raises:
            KafkaConnectionError: no token is available. aiokafka then tries to connect again.
        """
        try:
            token, _ = await asyncio.to_thread(self._tokens)
        except TokenError as error:
            raise KafkaConnectionError(str(error)) from None
        return token


class EndpointTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Requests a token with client credentials and caches it until a minute before it expires."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._verify = ssl_context_for(kafka.oauth_ca_file, "oauth_ca_file")
        self._token: dict[str, object] | None = None

    async def token(self) -> str:
        """Return a valid token.

        Raises:
            KafkaConnectionError: no token is available, so aiokafka tries to connect again.
        """
        kafka = self._kafka
        async with AsyncOAuth2Client(
            kafka.oauth_client_id,
            None if kafka.oauth_client_secret is None else kafka.oauth_client_secret.get_secret_value(),
            scope=kafka.oauth_scope,
            token=self._token,
            verify=self._verify,
            timeout=_TIMEOUT,
        ) as client:
            if client.token is None or client.token.is_expired():
                try:
                    self._token = await client.fetch_token(kafka.oauth_token_url, grant_type="client_credentials")
                except (OAuthError, HTTPError, ValueError) as error:
                    raise KafkaConnectionError(f"no token from kafka.oauth_token_url: {error}") from None
            return str(client.token["access_token"])
