"""The specification: one SQL file a rule, each returning the rows of a trace that break it, with a *because*.

A rule reads the table `trace` (`greenline.trace.schema`) and judges every run in it at once. What it says of
liveness it says only of runs that are marked quiet: elsewhere "never" cannot be told from "not yet".
"""
