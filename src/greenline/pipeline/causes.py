"""Causes: of what Spark says, which is mostly where in its own code it was, the words that say what was wrong."""

from __future__ import annotations

import re

_CAUSES = re.compile(r"^(?:Caused by)?: [\w.$]+: (.+)$", re.MULTILINE)
_STATE = re.compile(r"\s*SQLSTATE: \w+$")


def cause(error: Exception) -> str:
    """The innermost, in a line; of what Python says, all."""
    text = str(error).strip() or type(error).__name__
    causes = _CAUSES.findall(text) or (text.splitlines()[:1] if "\tat " in text else [text])
    return _STATE.sub("", str(causes[-1]))
