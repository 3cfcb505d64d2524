"""The spine: 200-byte messages from client sockets through three nodes to three forced logs and back.

The way of a write without a database: a bundle's body is forced before it is sent, and its place in the order before
it is answered; everybody else forces both together. All of it on the real driver, sealed, with failure handling in
place.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.spine.run import run

LOOPBACK, ETHERNET = 300_000, 150_000
"""Messages of 200 bytes a second."""
SLOW_DISKS_S = (0.001, 0.005)
LEAST_SHARE = 0.6
TRIES = 3


def measure() -> Iterator[Figure]:
    for name, mtu, goal in (("on loopback", None, LOOPBACK), ("at MTU 1500", 1500, ETHERNET)):
        outcome = max((run(mtu=mtu) for _ in range(TRIES)), key=lambda each: each.rate)
        yield Figure(f"the spine {name}", outcome.rate, "messages/s", goal, True, str(outcome).partition("   ")[2])
        for delay in SLOW_DISKS_S:
            slow = max((run(mtu=mtu, delay=delay, window=4000) for _ in range(2)), key=lambda each: each.rate)
            share = f"{slow.rate:,.0f} messages/s"
            title = f"  with {1000 * delay:.0f} ms for each forced write, of the goal"
            yield Figure(title, slow.rate / goal, "times", LEAST_SHARE, True, share)
