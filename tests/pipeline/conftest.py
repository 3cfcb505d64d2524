"""One Spark session for tests of the pipeline: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from greenline.pipeline import session

ALSO_IN_MAKE_TEST = "test_source.py"
"""With the demo, which ends with the whole pipeline: each process that runs tests would start a session of its own."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.path.name != ALSO_IN_MAKE_TEST:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def _java() -> Iterator[None]:
    yield
    session.stop()


@pytest.fixture(scope="module")
def spark(_java: None) -> SparkSession:
    """The one that there is; a new one after tests that have ended it, as those of the command do."""
    return session.spark("greenline tests", master="local[2,4]")
