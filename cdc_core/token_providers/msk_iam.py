"""Get tokens for Amazon MSK with IAM. AWS's library signs them locally, without a request to MSK."""

from __future__ import annotations

from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.credentials import CredentialProvider, Credentials
from botocore.session import Session


class MskIam:
    """Signs tokens with the credentials that AWS's default search finds: environment, files, or metadata services.

    Args:
        region: region of the cluster.
        role_arn: role to assume with these credentials. Each token then requires a request to AWS STS.
    """

    def __init__(self, *, region: str, role_arn: str | None = None) -> None:
        self._region = region
        self._role_arn = role_arn
        self._credentials = _DefaultSearch()

    def __call__(self) -> tuple[str, float]:
        sign = MSKAuthTokenProvider
        if self._role_arn is None:
            token, expires_ms = sign.generate_auth_token_from_credentials_provider(self._region, self._credentials)
        else:
            token, expires_ms = sign.generate_auth_token_from_role_arn(self._region, self._role_arn)
        return token, expires_ms / 1000


class _DefaultSearch(CredentialProvider):  # type: ignore[misc]  # botocore has no types
    """The default search for credentials. If there are no credentials, the library's own search raises an
    AttributeError.
    """

    def load(self) -> Credentials:
        found = Session().get_credentials()
        if found is None:
            raise LookupError("AWS's default search found no credentials")
        return found
