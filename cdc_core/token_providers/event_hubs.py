"""Get tokens for Azure Event Hubs. Azure's library requests them from Microsoft Entra ID."""

from __future__ import annotations

from azure.identity import DefaultAzureCredential


class EventHubs:
    """Requests tokens with the credentials that Azure's default search finds: environment, workload identity, or
    managed identity.

    Args:
        namespace: name of the Event Hubs namespace, without the domain.
        domain: domain of the namespace. It differs in national clouds.
    """

    def __init__(self, *, namespace: str, domain: str = "servicebus.windows.net") -> None:
        self._scope = f"https://{namespace}.{domain}/.default"
        self._credential = DefaultAzureCredential()

    def __call__(self) -> tuple[str, float]:
        found = self._credential.get_token(self._scope)
        return found.token, float(found.expires_on)
