"""The fixture `corpus`, a generated corpus for training runs."""

from tests.programs.train.conftest import corpus  # noqa: F401
