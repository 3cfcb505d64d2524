"""The kernel: the contract between protocol cores and the world.

Events, effects, timers, gates, identities, ports, codecs, and the router that composes a node's cores. No I/O.
"""
