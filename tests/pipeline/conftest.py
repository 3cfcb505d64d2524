"""One Spark session for tests of the pipeline: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from greenline.pipeline import session


@pytest.fixture(scope="session")
def _java() -> Iterator[None]:
    yield
    session.stop()


@pytest.fixture(scope="module")
def spark(_java: None) -> SparkSession:
    """The one that there is; a new one after tests that have ended it, as those of the command do."""
    return session.spark("greenline tests", master="local[2,4]")
