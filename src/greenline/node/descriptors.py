"""File descriptors: every client takes one, and a node that has none left cannot open its own files either.

Systems grant a process few to begin with and more to whoever asks. What is not granted is not promised to clients.
"""

from __future__ import annotations

import resource

import msgspec

from greenline.node.edge import Limits
from greenline.node.logs import Logger

OWN = 256
"""For files, sockets and threads of the node itself, and callers who are told that it is full."""


def granted(limits: Limits, log: Logger) -> Limits:
    """The same, or with as many clients as there are descriptors for."""
    wanted = limits.connections + limits.http_connections + OWN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return limits
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most == wanted:
        return limits
    share = max(0, most - OWN) / (wanted - OWN)
    fewer = msgspec.structs.replace(
        limits,
        connections=max(1, int(limits.connections * share)),
        http_connections=max(1, int(limits.http_connections * share)),
    )
    log.warning(
        "few file descriptors",
        granted=most,
        wanted=wanted,
        connections=fewer.connections,
        remedy="raise the limit of open files (ulimit -n, LimitNOFILE), or lower [limits] connections",
    )
    return fewer
