"""Descriptions of heads, in grades."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.trace.survey.survey import Estimate, KindSurvey
from attention_atlas.viz.wire.survey import describe_head


def surveyed(**values: tuple[float, float, float]) -> KindSurvey:
    """Return a survey of one head. values: statistic -> value, lower end of its interval, adjusted p-value."""
    statistics = {
        name: Estimate(*(np.array([[number]]) for number in (value, low, value, p)), chance=0.1, sentences=9)
        for name, (value, low, p) in values.items()
    }
    return KindSurvey(statistics, {}, np.ones((1, 1)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.94, "almost always looks at the token before (94%)"),
        (0.506, "mostly looks at the token before (51%)"),
        (0.31, "partly looks at the token before (31%)"),
        (0.12, "none of these habits stands out"),
    ],
)
def test_descriptions_are_graded(value, expected):
    survey = surveyed(previous=(value, 0.5, 0.0), punctuation=(0.11, 0.1, 0.0))
    assert describe_head(survey, 0, 0, ()) == expected


def test_values_at_chance_are_not_described():
    assert describe_head(surveyed(previous=(0.6, 0.1, 0.3)), 0, 0, ()) == "none of these habits stands out"


def test_the_leading_statistic_is_relative_to_its_threshold():
    survey = surveyed(previous=(0.45, 0.4, 0.0), same_token=(0.39, 0.3, 0.0))  # thresholds 0.5 and 0.4
    assert survey.leading(0, 0) == "same_token"
    assert describe_head(survey, 0, 0, ("previous", "same_token")) == (
        "partly looks at the token before (45%); partly looks at other copies of the same token (39%)"
    )
