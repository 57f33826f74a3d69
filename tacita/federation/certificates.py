"""The federation's own certificate authority: who may reach the broker at all.

Certificates open the door to the broker and say which subjects a party may use; they
prove nothing about letters, which are signed and sealed by the parties themselves.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, repr=False)
class Certificate:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


def authority(name: str, days: int = 3650) -> Certificate:
    """A new certificate authority."""
    subject = _name(f"{name} authority")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    return _signed(subject, subject, None, days, (constraints, True), (usage, True))


def issue(
    by: Certificate, name: str, hosts: Sequence[str] = (), days: int = 825
) -> Certificate:
    """A certificate for a party, or for the broker at `hosts`."""
    issuer = x509.load_pem_x509_certificate(by.certificate)
    signer: Any = serialization.load_pem_private_key(by.key, None)
    purpose = (
        ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    )
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.ExtendedKeyUsage([purpose]), False),
    ]
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        extensions.append((names, False))
    return _signed(_name(name), issuer.subject, signer, days, *extensions)


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    signer: Any,
    days: int,
    *extensions: tuple[x509.ExtensionType, bool],
) -> Certificate:
    """A certificate of a new key, signed by the issuer's, or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + days * _DAY)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    certificate = builder.sign(signer or key, hashes.SHA256())
    return Certificate(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
