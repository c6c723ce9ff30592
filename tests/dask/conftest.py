"""Most tests run in this thread; some on a cluster in this process, which they share."""

import logging

import dask
import pytest


@pytest.fixture(autouse=True)
def _this_thread(request):
    """No scheduler but the simplest, unless a test asks for another one."""
    if "cluster" in request.fixturenames:
        yield
        return
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def cluster():
    """A client of two workers, which are threads of this process."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as local,
        Client(local) as client,
    ):
        yield client
