"""The generated corpus that runs train on."""

from tests.programs.train.conftest import corpus  # noqa: F401
