"""The replicated database on this machine: what it does in a second, and what long absences and large states cost.

`python -m benchmarks.database` runs all of it, `... recovery away` only these. Sizes come from the environment
(`sizes`), so that a machine with more time can be asked for more.
"""
