"""Certificates that follow from the cluster's key: the same at every node, and trusted by nobody else."""

from __future__ import annotations

import ssl

import pytest

from greenline.access import wire
from greenline.node.certificates import ca_pem, certify, client_context, server_context
from greenline.node.tls import Broken, Tls
from tests.node.callers import KEY, Caller, House, play

OTHER = b"o" * 32


def test_every_node_derives_the_same_authority_and_another_key_another_one() -> None:
    assert ca_pem(KEY) == ca_pem(bytes(KEY))
    assert ca_pem(KEY) != ca_pem(OTHER)


def meet(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    """A handshake in memory. Raises what the client has against it."""
    ours, to_client, to_server = Tls(server), ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(to_client, to_server, server_hostname=host)
    for _ in range(4):
        try:
            theirs.do_handshake()
        except ssl.SSLWantReadError:
            ours.opened(to_server.read())
            to_client.write(ours.leaving())
    ours.opened(to_server.read())
    assert ours.is_agreed


@pytest.mark.parametrize("host", ["10.0.0.7", "db.example.org", "p", "localhost", "127.0.0.1", "::1", "fd00::7"])
def test_a_node_is_known_by_its_addresses_and_by_its_name(host: str) -> None:
    server = server_context(KEY, "p", ["10.0.0.7", "db.example.org", "fd00::7"])
    meet(server, client_context(ca_pem(KEY)), host)


def test_a_node_is_not_taken_for_another() -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        meet(server_context(KEY, "p", ["10.0.0.7"]), client_context(ca_pem(KEY)), "10.0.0.8")


def test_a_node_of_another_cluster_is_not_trusted() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        meet(server_context(OTHER, "p", []), client_context(ca_pem(KEY)), "localhost")


def test_whoever_trusts_both_keys_comes_through_a_rotation() -> None:
    both = client_context(ca_pem(KEY, OTHER))
    meet(server_context(KEY, "p", []), both, "localhost")
    meet(server_context(OTHER, "p", []), both, "localhost")


def test_a_running_node_shows_the_certificate_of_its_newest_key() -> None:
    context = server_context(KEY, "p", [])
    certify(context, OTHER, "p", [])
    meet(context, client_context(ca_pem(OTHER)), "localhost")
    with pytest.raises(ssl.SSLCertVerificationError):
        meet(context, client_context(ca_pem(KEY)), "localhost")


def test_a_strict_reader_of_certificates_is_content() -> None:
    """As Python is by default from 3.13 on."""
    strict = client_context(ca_pem(KEY))
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    meet(server_context(KEY, "p", []), strict, "localhost")


def test_what_is_changed_on_the_way_is_noticed() -> None:
    ours = Tls(server_context(KEY, "p", []))
    with pytest.raises(Broken):
        ours.opened(b"\x16\x03\x01\x00\x05hello")
    assert ours.leaving(), "the peer is told"


def test_a_client_that_trusts_another_cluster_hangs_up() -> None:
    async def story(house: House) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            await Caller.at(house.address, client_context(ca_pem(OTHER)))
        async with await house.welcomed() as will:
            assert isinstance(await will.ask(wire.Digests(1)), wire.Stands), "and others are served"

    play(story)
