"""Fixtures of the tests of the server: the served tiny model, for raw HTTP and for gradio_client."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from gradio_client import Client


@pytest.fixture(scope="session")
def port(tiny_url: str) -> int:
    """The port at which the tiny model is served."""
    return urlsplit(tiny_url).port


@pytest.fixture(scope="module")
def client(tiny_url: str) -> Client:
    return Client(tiny_url, verbose=False, analytics_enabled=False)
