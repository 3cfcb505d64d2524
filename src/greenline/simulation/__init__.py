"""The simulation: a cluster in virtual time, on a network and on disks that fail as the seed says.

The same cores and the same router run here as in a node. A run is fully decided by its plan, and a plan by its
seed. `world` is what exists, `faults` what can go wrong, `profiles` what goes wrong together, `plan` one run
before it happens, `play` the run, `shrink` a failing one made short, `farm` many on all cores, `cluster` the
words in which scenarios are told.
"""
