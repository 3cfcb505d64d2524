"""The `greenline` command. Data goes to stdout and talk to stderr.

The exit status tells broken from stuck from misused.
"""
