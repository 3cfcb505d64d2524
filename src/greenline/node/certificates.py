"""Certificates: who has the cluster's key can tell its nodes from anybody else's, and nothing has to be handed around.

A certificate authority follows from the key alone: every node derives the same one, byte for byte, and each issues
itself a certificate when it starts, for a key that is never kept. What clients trust is `ca_pem`. It follows the
cluster's key: when that is rotated, clients are given the new one, and until then may trust both.
"""

from __future__ import annotations

import datetime
import ipaddress
import secrets
import ssl
import tempfile
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from greenline.node.envelope import derived

_SINCE = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_UNTIL = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
"""No node stops on the day that a certificate ends, and no clock that is wrong keeps clients away: keys are rotated."""


def ca_pem(*keys: bytes) -> bytes:
    """What a client trusts: the authority of each of these cluster keys."""
    return b"".join(_authority(key)[1].public_bytes(serialization.Encoding.PEM) for key in keys)


def server_context(key: bytes, name: str, hosts: Iterable[str]) -> ssl.SSLContext:
    """TLS for the node of this name, which clients reach at these addresses or host names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    certify(context, key, name, hosts)
    return context


def certify(context: ssl.SSLContext, key: bytes, name: str, hosts: Iterable[str]) -> None:
    """Connections that come from now on are shown a certificate of this key: after a rotation, of the new one."""
    leaf = Ed25519PrivateKey.generate()
    certificate = _issued(key, leaf, name, hosts)
    # `ssl` reads keys from files only. What may stay on a disk opens with a password that nobody keeps.
    password = secrets.token_bytes(32).hex().encode()
    sealed = leaf.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    with tempfile.NamedTemporaryFile() as file:
        file.write(sealed + certificate.public_bytes(serialization.Encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name, password=password)


def client_context(ca: bytes) -> ssl.SSLContext:
    """Of somebody who trusts this authority, and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=ca.decode())
    return context


def _authority(key: bytes) -> tuple[Ed25519PrivateKey, x509.Certificate]:
    """Ed25519 signs alike every time, so that this is the same at every node."""
    private = Ed25519PrivateKey.from_private_bytes(derived(key, "greenline client authority"))
    public = private.public_key()
    name = _named("Greenline cluster")
    builder = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=public, serial_number=1)
        .not_valid_before(_SINCE)
        .not_valid_after(_UNTIL)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )
    return private, builder.sign(private, algorithm=None)


def _issued(key: bytes, leaf: Ed25519PrivateKey, name: str, hosts: Iterable[str]) -> x509.Certificate:
    private, authority = _authority(key)
    known_as = dict.fromkeys([*hosts, name, "localhost", "127.0.0.1", "::1"])
    return (
        x509.CertificateBuilder(
            issuer_name=authority.subject,
            subject_name=_named(name),
            public_key=leaf.public_key(),
            serial_number=x509.random_serial_number(),
        )
        .not_valid_before(_SINCE)
        .not_valid_after(_UNTIL)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(each) for each in known_as]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(private.public_key()), critical=False)
        .sign(private, algorithm=None)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
