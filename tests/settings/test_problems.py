"""Wrong, contradicting and missing values, each told by its key with what would be right; secrets are never shown."""

import pytest
from shipped import SCALES, problems_of, shipped

from shapelaw.campaign.config import load_config
from shapelaw.settings.problems import ordinal

SECRET = "hunter2"


@pytest.mark.parametrize(
    "uri",
    [
        f"http://ada:{SECRET}@example.org",
        f"https://{SECRET}@example.org",
        f"postgresql://ada:{SECRET}@example.org/mlflow",
        f"postgresql://ada:x@{SECRET}@example.org/mlflow",
        f"mysql+pymysql://ada:'{SECRET}@example.org/mlflow",
        f"postgresql://example.org/mlflow?user=ada&password={SECRET}",
        f"postgresql://example.org/mlflow?sslpassword={SECRET}",
        f"https://example.org/?token={SECRET}",
    ],
)
def test_a_secret_in_the_tracking_uri_is_refused_and_not_shown(uri: str) -> None:
    said = problems_of(tracking={"uri": uri})
    assert "tracking.uri holds a password or a token" in said
    assert "MLFLOW_TRACKING_PASSWORD" in said
    assert "in the environment" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    "uri",
    [None, "sqlite:///results/mlflow.db", "http://example.org:5000", "postgresql://ada@example.org/mlflow"],
)
def test_a_tracking_uri_without_a_secret_is_taken(uri: str | None) -> None:
    assert load_config(shipped(tracking={"uri": uri}), SCALES).tracking.uri == uri


def test_places_are_counted_as_people_do() -> None:
    assert [ordinal(place) for place in (0, 1, 2, 3, 10, 11, 12, 20, 110)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th")
    ]


@pytest.mark.parametrize(
    "tracking",
    [
        {"uri": f"HTTP://ada:{SECRET}@example.org"},
        {"uri": f"ada:{SECRET}@example.org"},
        {"uri": f"http://ada:{SECRET}@[::1"},
        {"uri": f"http://ada:{SECRET}℀@example.org"},  # a letter that Python refuses with the whole address
        {"uri": [f"http://ada:{SECRET}@example.org"]},
        {"uri": {"http": f"//ada:{SECRET}@example.org"}},
        f"http://ada:{SECRET}@example.org",
        f"http://example.org?token={SECRET}",
        {"password": SECRET},
    ],
)
def test_no_other_mistake_shows_a_secret(tracking: object) -> None:
    said = problems_of(tracking=tracking)
    assert said.startswith("The config has 1 problem:\n  - tracking")
    assert SECRET not in said
