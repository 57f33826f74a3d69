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
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"{name} authority")
    builder = _builder(subject, subject, key.public_key(), days).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
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
    builder = builder.add_extension(usage, critical=True)
    return _finish(builder.sign(key, hashes.SHA256()), key)


def issue(
    by: Certificate, name: str, hosts: Sequence[str] = (), days: int = 825
) -> Certificate:
    """A certificate for a party, or for the broker at `hosts`."""
    issuer = x509.load_pem_x509_certificate(by.certificate)
    signer: Any = serialization.load_pem_private_key(by.key, None)
    key = ec.generate_private_key(ec.SECP256R1())
    purpose = (
        ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    )
    builder = (
        _builder(_name(name), issuer.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return _finish(builder.sign(signer, hashes.SHA256()), key)


def _builder(subject: Any, issuer: Any, key: Any, days: int) -> Any:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + days * _DAY)
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _finish(certificate: Any, key: Any) -> Certificate:
    return Certificate(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
