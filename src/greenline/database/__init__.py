"""Adapters of the database port: what stands behind a replica. SQLite for now, in memory, for the simulator.

May do I/O. Imports only the kernel, and the database that it speaks to.
"""
