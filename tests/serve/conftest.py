"""Logs of each test start at the root logger, where pytest hears them."""

import logging

import pytest

from ohmlearn.serve.http_logs import LOGGERS


@pytest.fixture(autouse=True)
def logs_reach_the_root(monkeypatch):
    """Servers of one process that overlap give the loggers back in the wrong order."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "propagate", True)
        monkeypatch.setattr(logger, "handlers", [])
