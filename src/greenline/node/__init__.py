"""The node: the drivers that run a stack of cores on a real machine. A driver decides nothing.

`sealing` encrypts and authenticates every packet, `log` keeps what must survive, `driver` carries out the router's
orders on an event loop, a UDP socket and a disk thread.
"""
