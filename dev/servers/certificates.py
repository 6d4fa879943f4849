"""Create certificates for tests on request. An authority signs them."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


class Authority:
    """A certificate authority. Its certificate is a file in a folder, together with the certificates that it issues."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        now = datetime.now(UTC)
        self._certificate = (
            _builder(self._name, self._name, self._key, now - _DAY, now + _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def issue(
        self, name: str, *hosts: str, owner: str | None = None, days: int = 1, password: str | None = None
    ) -> tuple[Path, Path]:
        """Create a certificate for hosts (names or addresses) and the certificate's key (PKCS 8), as two files named
        after `name`.

        Args:
            owner: the certificate's subject. Defaults to `name`.
            days: the validity in days. If the number is negative, the certificate expired that many days ago.
            password: the password for the key file.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        end = datetime.now(UTC) + days * _DAY
        certificate = (
            _builder(_name(owner or name), self._name, key, end - 3 * _DAY, end)
            .add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts or (name,)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        files = (self.folder / f"{name}.crt", self.folder / f"{name}.key")
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
        return files


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
