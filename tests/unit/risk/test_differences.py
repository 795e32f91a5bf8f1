"""What several releases tell an intruder who knows how amounts move, against least squares by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from sfumato import methods
from sfumato.core.evidence import Evidence
from sfumato.core.randomness import ByPerson, Series, series_secret
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.waves import Waves
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.series import Course
from sfumato.data.table import Table
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.averaging import AveragingRisk
from sfumato.risk.differences import DifferenceRisk

RUN = Run(seed=1)
SCHEMA = Schema(
    (
        Column("who", Kind.NOMINAL, Role.PERSON),
        Column("pay", Kind.CONTINUOUS, Role.KEY),
        Column("tax", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)


def released(pay, noisy, *, tax=None, noisy_tax=None, who=None, schema=SCHEMA):
    """A release of one record of each person beside its original."""
    tax = np.zeros(len(pay)) if tax is None else tax
    frame = pl.DataFrame({"who": np.arange(len(pay)) if who is None else who, "pay": pay, "tax": tax})
    original = Table(frame.with_columns(pl.col("pay", "tax").fill_nan(None)), schema)
    said = {"pay": noisy, "tax": tax if noisy_tax is None else noisy_tax}
    table = original
    for name, values in said.items():
        table = table.with_values(name, pl.Series(values).fill_nan(None))
    return Evidence(original, Release.of(table, source_rows=np.arange(len(pay))))


def score(releases, measure=None, *, forget=False):
    *earlier, last = releases
    waves = Waves.of(earlier)
    if forget:
        waves = replace(waves, earlier=tuple(replace(each, original=None) for each in waves.earlier))
    return (measure or DifferenceRisk()).score(replace(last, resources={"series": waves}), RUN)


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    return rng.lognormal(10, 0.5, 200), rng.normal(0, 8000, 200)


def test_kept_noise_is_gone_where_amounts_rise_by_a_known_rate(people):
    pay, noise = people
    releases = [released(pay * rise, pay * rise + noise) for rise in (1.0, 1.03)]
    found = score(releases)
    assert found.value == 1.0
    assert found.baseline < 0.1
    assert found.by_column["pay"] > 0.9
    assert found.details["course"] == "proportional"
    assert score(releases, AveragingRisk()).value < 0.1


def test_kept_factors_are_gone_where_amounts_rise_by_a_known_sum(people):
    pay, noise = people
    factors = np.exp(noise / 30_000)
    releases = [released(pay + more, (pay + more) * factors) for more in (0.0, 500.0, 900.0)]
    assert score(releases).value == 1.0
    mixed = [released(c * pay + a, (c * pay + a) * factors) for c, a in ((1.0, 0.0), (1.02, 300.0))]
    assert score(mixed).value == 1.0


def test_fresh_noise_is_gone_in_the_mean_along_the_course(people):
    pay, _ = people
    rng = np.random.default_rng(1)
    releases = [released(pay * c, pay * c + rng.normal(0, 3000, 200)) for c in np.linspace(1, 1.3, 60)]
    found = score(releases)
    assert found.value > score(releases, AveragingRisk()).value
    assert found.value > 1.5 * found.baseline


def test_a_minority_that_keeps_to_the_course_is_told(people):
    pay, noise = people
    rng = np.random.default_rng(2)
    own = np.where(np.arange(200) < 60, 1.03, rng.uniform(0.7, 1.5, 200))
    found = score([released(pay, pay + noise), released(pay * own, pay * own + noise)])
    assert found.value >= 0.25


def test_sensitive_amounts_are_told_though_nobody_is_linked(people):
    pay, noise = people
    flat = np.full(200, 5.0)
    releases = [released(flat, flat, tax=pay * c, noisy_tax=pay * c + noise) for c in (1.0, 1.05)]
    found = score(releases)
    assert found.by_column["tax"] > 0.9
    assert found.value > 0.9
    assert found.baseline < 0.01


def test_where_the_earlier_original_is_gone_the_released_means_tell_the_course(people):
    pay, noise = people
    releases = [released(pay * rise, pay * rise + noise) for rise in (1.0, 1.03)]
    assert score(releases, forget=True).value > 0.9


def test_a_first_release_and_people_who_come_and_go(people):
    pay, noise = people
    first = score([released(pay, pay + noise)])
    assert first.value == first.baseline
    half = np.arange(200)[100:]
    early = released(pay[:100], (pay + noise)[:100])
    late = released(pay[100:] * 1.03, (pay * 1.03 + noise)[100:], who=half)
    nobody = score([early, late])
    assert nobody.value == pytest.approx(nobody.baseline)


@pytest.mark.parametrize("odd", [0.0, np.nan, 7.0])
def test_constants_and_holes_tell_nothing(odd):
    values = np.full(5, odd)
    found = score([released(values, values), released(values, values)])
    assert 0 <= found.value <= 1 or found.reason


def test_one_record(people):
    found = score([released(np.array([1.0]), np.array([2.0])), released(np.array([1.1]), np.array([2.1]))])
    assert found.value == 1.0


# What a series keeps ------------------------------------------------------------------------------------

WAVES, MOVE, PEOPLE = 10, 0.3, 1200
NOISES = [
    methods.UncorrelatedNoise(deviation=60), methods.CorrelatedNoise(ratio=0.4), methods.KimNoise(ratio=0.4),
    methods.UniformNoise(spread=0.4), methods.LognormalNoise(deviation=0.3), methods.HohneNoise(deviation=0.3),
    methods.LognormalNoise(deviation=0.3, per="record"),
]  # fmt: skip
COURSES = {"proportional": (1.0, 0.0), "absolute": (0.0, 1.0), "mixed": (0.5, 0.5)}


def series_of(method, factors, steps, amounts):
    """What each wave says of an amount, by one secret, the spread frozen by the first."""
    said, kept, recipe = [], {}, Recipe((Step(method, ("pay",)),))
    for factor, step in zip(factors, steps, strict=True):
        frame = pl.DataFrame({"who": np.arange(len(amounts)), "pay": factor * amounts + step, "tax": amounts})
        series = Series(series_secret(5), course=Course(WAVES, {"pay": MOVE}), previous_fits=kept)
        release = recipe.apply(Table(frame, SCHEMA), Run(randomness=ByPerson(5, series=series)))
        artifacts = release.byproducts.private_artifacts
        kept = kept or {
            (recipe.step_identities[0], ()): {k: v for a in artifacts for k, v in a.tables.items()}
        }
        said.append(release.table.frame["pay"].to_numpy())
    return np.stack(said, axis=1)


def least_squares(said, factors, steps):
    """Every estimate of the first amounts by generalised least squares, for additive noise and for factors."""
    design = np.stack([factors, steps], axis=1)
    for share in (0, 0.5, 0.8, 0.95, 0.999, 0.999999):
        noise = share * np.ones((WAVES, WAVES)) + (1 - share) * np.eye(WAVES)
        weights = np.linalg.solve(noise, factors)
        yield (said - steps) @ (weights / (weights @ factors))
        inverse = np.linalg.inv(noise)
        for prior in (1e-4, 1e-3, 1e-2, 0.1, 1.0):
            normal = np.broadcast_to(design.T @ inverse @ design, (len(said), 2, 2)).copy()
            normal[:, 1, 1] += prior * np.abs(said).mean(axis=1) ** 2
            found = np.linalg.solve(normal, ((said - steps) @ inverse @ design)[..., None])[..., 0]
            yield found[:, 0] / np.maximum(1 + found[:, 1], 0.05)


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("method", NOISES, ids=str)
def test_ten_releases_tell_no_more_than_the_stated_factor(method, course):
    amounts = np.random.default_rng(4).uniform(9_000, 11_000, PEOPLE)
    part, sum_ = COURSES[course]
    time = np.linspace(0, 1, WAVES)
    factors, steps = 1 + part * MOVE * time, sum_ * MOVE * 9_000 * time
    said = series_of(method, factors, steps, amounts)
    errors = [np.median(np.abs(each - amounts)) for each in least_squares(said, factors, steps)]
    alone = min(np.median(np.abs((said[:, t] - steps[t]) / factors[t] - amounts)) for t in range(WAVES))
    stated = Course(WAVES, {"pay": MOVE}).gain(["pay"])
    assert (alone / min(errors)) ** 2 <= 1.25 * stated  # a quarter for the doubt of two medians


def test_a_value_that_stays_is_released_as_it_was():
    amounts = np.random.default_rng(4).uniform(9_000, 11_000, 50)
    for method in NOISES[:5]:
        said = series_of(method, np.ones(WAVES), np.zeros(WAVES), amounts)
        assert np.array_equal(said, np.repeat(said[:, :1], WAVES, axis=1))
