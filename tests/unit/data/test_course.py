"""How much noise stays with a person, against the information that all releases carry, by brute force."""

import numpy as np
import pytest

from sfumato.data.series import Course


def information(share, moves, releases):
    """What all releases tell of an amount at its mean level, in units of one: c'V⁻¹c."""
    course = np.linspace(1.0, 1.0 + moves, releases)
    course /= course.mean()
    noise = share * np.ones((releases, releases)) + (1 - share) * np.eye(releases)
    return float(course @ np.linalg.solve(noise, course))


@pytest.mark.parametrize("releases", [2, 3, 10, 40])
@pytest.mark.parametrize("moves", [0.01, 0.03, 0.1, 0.3, 1.0, -0.2])
def test_the_share_that_stays_lets_all_releases_tell_least(moves, releases):
    course = Course(releases, {"x": moves})
    share = course.own_share(["x"])
    told = information(share, moves, releases)
    assert told == pytest.approx(course.gain(["x"]), rel=1e-9)
    others = [information(each, moves, releases) for each in np.linspace(0, 0.9999, 400)]
    assert told <= min(others) + 1e-9


def test_the_figures_of_the_guide():
    assert Course(2, {"x": 0.03}).gain(["x"]) == pytest.approx(1.03, abs=0.005)
    assert Course(10, {"x": 0.3}).gain(["x"]) == pytest.approx(1.56, abs=0.005)
    assert Course(10, {"x": 0.3}).own_share(["x"]) == pytest.approx(0.78, abs=0.005)
    assert Course().own_share(["x"]) == pytest.approx(0.907, abs=0.005)


def test_what_does_not_move_keeps_all_its_noise_and_the_column_that_moves_most_counts():
    course = Course(10, {"x": 0.0, "y": 0.5})
    assert course.own_share(["x"]) == 1.0
    assert course.gain(["x"]) == 1.0
    assert course.own_share(["x", "y"]) == course.own_share(["y"])
    assert course.own_share(["z"]) == Course().own_share(["z"])
