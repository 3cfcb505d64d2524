"""Guesses: how often passwords may be wrong, from one host and for one user of it.

Each host has so many guesses, and so has each user at a host: one more comes every few seconds, up to that many. A
guess is paid for before it is looked at, slowly, and given back if it was right. Whoever has none left is told when
there is one, whether it would have been right or not: otherwise the answer would be worth guessing for. Who is wrong
about one user leaves the others at its host what the host has left in all.

All hosts together fill no more than a table of fixed size; the one that was seen longest ago is forgotten first.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict

OF_A_USER = 10
OF_A_HOST = 30
WITHIN_S = 60.0
"""Within which all of them come back."""
_MOST_KEPT = 10_000
_IPV6_SITE = 64
"""Bits of an address that whoever is at a site does not choose."""

Key = tuple[str, str]


class Guesses:
    """Of everybody. `now` is any clock that does not go back."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, tuple[float, float]] = OrderedDict()
        """What was left of each, and when; who is not here has all of them."""

    def __len__(self) -> int:
        return len(self._kept)

    def wait_s(self, host: str, user: str, now: float) -> float:
        """So long there is no guess left; 0: there is one."""
        return max(
            0.0,
            *((1 - self._left(key, most, now)) * WITHIN_S / most for key, most in _keys(host, user)),
        )

    def pay(self, host: str, user: str, now: float) -> None:
        for key, most in _keys(host, user):
            self._keep(key, self._left(key, most, now) - 1, now)

    def give_back(self, host: str, user: str, now: float) -> None:
        """It was right."""
        for key, most in _keys(host, user):
            left = self._left(key, most, now) + 1
            if left < most:
                self._keep(key, left, now)
            else:
                self._kept.pop(key, None)

    def _left(self, key: Key, most: int, now: float) -> float:
        left, since = self._kept.get(key, (float(most), now))
        return min(float(most), left + (now - since) * most / WITHIN_S)

    def _keep(self, key: Key, left: float, now: float) -> None:
        self._kept[key] = left, now
        self._kept.move_to_end(key)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)


def _keys(host: str, user: str) -> tuple[tuple[Key, int], ...]:
    site = _site(host)
    return ((site, ""), OF_A_HOST), ((site, user), OF_A_USER)


def _site(host: str) -> str:
    """Whoever has one address of IPv6 has very many."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_SITE), strict=False))
