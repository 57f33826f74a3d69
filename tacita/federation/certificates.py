"""The federation's own certificate authority: who may reach the broker at all.

Certificates open the door to the broker and say which subjects a party may use; they
prove nothing about letters, which are signed and sealed by the parties themselves.
"""

from __future__ import annotations

import datetime
import ipaddress
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacita.check import refuse

_DAY = datetime.timedelta(days=1)
#: Days that a party's or a broker's certificate holds.
DAYS = 825
#: Days before its end from which on a certificate's end is announced.
WARN_DAYS = 30


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
    key = new_key()
    extensions = [(constraints, True), (usage, True)]
    made = _certificate(subject, subject, key.public_key(), key, days, extensions)
    return Certificate(made, key_pem(key))


def issue(
    by: Certificate, name: str, hosts: Sequence[str] = (), days: int = DAYS
) -> Certificate:
    """A certificate for a party, or for the broker at `hosts`, and its new key."""
    key = new_key()
    return Certificate(certify(by, name, key.public_key(), hosts, days), key_pem(key))


def certify(
    by: Certificate, name: str, key: Any, hosts: Sequence[str] = (), days: int = DAYS
) -> bytes:
    """A certificate for whoever holds the private half of this public key.

    Args:
        by: The authority.
        name: The common name.
        key: The public key.
        hosts: Where it serves, if it does; brokers also call each other.
        days: How long it holds.
    """
    issuer = x509.load_pem_x509_certificate(by.certificate)
    signer = load_key(by.key)
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True)
    ]
    if hosts:
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        extensions.append((names, False))
    extensions.append((x509.ExtendedKeyUsage(uses), False))
    return _certificate(_name(name), issuer.subject, key, signer, days, extensions)


def signing_request(name: str, key: Any) -> bytes:
    """A request for a certificate, PEM; the key stays with its owner."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(name))
    made = builder.sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


def requested_key(request: bytes, name: str) -> Any:
    """The public key of a signing request; refused unless its holder asks for it."""
    try:
        asked = x509.load_pem_x509_csr(request)
        good = asked.is_signature_valid and asked.subject == _name(name)
        key = asked.public_key()
    except ValueError:
        good, key = False, None
    if not (good and isinstance(key, ec.EllipticCurvePublicKey)):
        refuse(f"the signing request of {name!r} is damaged; ask for a new one")
    return key


def read(path: Path) -> bytes:
    """A certificate out of its file; refused if it is damaged."""
    try:
        content = path.read_bytes()
        x509.load_pem_x509_certificate(content)
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}; restore it from a backup")
    except ValueError:
        refuse(f"{path} is damaged; restore it from a backup")
    return content


def public_key_of(certificate: bytes) -> Any:
    """The public key of a certificate; `ValueError` if its kind is not known."""
    with _known_kind():
        return x509.load_pem_x509_certificate(certificate).public_key()


def fits(certificate: bytes, key: bytes) -> bool:
    """Whether a private key belongs to a certificate."""
    return load_key(key).public_key() == public_key_of(certificate)


def expires(certificate: bytes) -> int:
    """When a certificate ends, in seconds since 1970."""
    made = x509.load_pem_x509_certificate(certificate)
    return int(made.not_valid_after_utc.timestamp())


def days_left(ends: int) -> int:
    """Whole days from now until then; negative if it is over."""
    return int((ends - time.time()) // 86400)


def is_issued_by(authority: bytes, certificate: bytes) -> bool:
    """Whether the authority has signed the certificate."""
    made = x509.load_pem_x509_certificate(certificate)
    try:
        made.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def common_name(certificate: bytes) -> str:
    """The common name in a certificate."""
    subject = x509.load_pem_x509_certificate(certificate).subject
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def hosts(certificate: bytes) -> list[str]:
    """Names and addresses that a broker's certificate is for."""
    made = x509.load_pem_x509_certificate(certificate)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = names.get_values_for_type(x509.IPAddress)
    return [*names.get_values_for_type(x509.DNSName), *map(str, addresses)]


def new_key() -> ec.EllipticCurvePrivateKey:
    """A new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def load_key(pem: bytes) -> Any:
    """A private key out of PEM; `ValueError` if it is none of a kind that is known."""
    with _known_kind():
        return serialization.load_pem_private_key(pem, None)


@contextmanager
def _known_kind() -> Iterator[None]:
    """A flipped bit may turn a key into one of a kind that nobody knows: damaged."""
    try:
        yield
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from None


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: Any,
    signer: Any,
    days: int,
    extensions: Sequence[tuple[x509.ExtensionType, bool]],
) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + days * _DAY)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    made = builder.sign(signer, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
