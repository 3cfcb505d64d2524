"""What the files of a local cluster tell: where its nodes are, and all that its operator needs."""

from __future__ import annotations

from pathlib import Path

from greenline.node.certificates import ca_pem
from greenline.node.config import FILE, BadConfig, Checked, Tls, load, written
from greenline.node.envelope import credential
from greenline.node.users import OPERATOR
from greenline.pipeline.reaching import BadOption


def files_of(place: Path) -> tuple[str, str, str, str]:
    """Addresses, user, password, certificate."""
    paths = [place / FILE] if (place / FILE).exists() else sorted(place.glob("*.toml"))
    if not paths:
        raise BadOption(f'there is no node in {place}: start a cluster with `greenline up`, or give addresses as "at"')
    try:
        configs = [load(path) for path in paths]
    except BadConfig as mistake:
        raise BadOption(str(mistake)) from None
    addresses = {**configs[0].clients, **{config.name: config.clients[config.name] for config in configs}}
    return ",".join(map(written, addresses.values())), OPERATOR, *_secrets(configs[0])


def _secrets(config: Checked) -> tuple[str, str]:
    """The operator's password and the certificate: both follow from the cluster's key."""
    if config.kept is None:
        return "", ""
    ring = config.kept.keyring
    ca = "" if config.tls is Tls.OFF else ca_pem(*(ring.keys[number] for number in sorted(ring.keys))).decode()
    return credential(ring.keys[ring.current]), ca
