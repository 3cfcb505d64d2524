"""One Spark session for all tests of the pipeline: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from greenline.pipeline import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield session.spark("greenline tests", master="local[2,4]")
    session.stop()
