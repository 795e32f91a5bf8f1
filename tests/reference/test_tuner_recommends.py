"""On the data sets of the literature the recommendation, measured anew, holds and loses to no single method.

Small samples and few methods, so that it takes seconds; the search is the same as on the whole.
"""

import numpy as np
import pytest

from sfumato import datasets, tune
from sfumato.core.run import Run
from sfumato.data.schema import Role
from sfumato.recipes.recipe import Recipe
from sfumato.study.evaluate import EvaluationCase
from sfumato.study.replicate_mean import ReplicateMean
from sfumato.tuning.candidate import loss_of

#: By data set: what is required, what is lost least, and the methods that compete.
NUMBERS = ["mdav", "rank-swapping", "correlated-noise"]
MIXED = ["mdav", "rank-swapping", "sequential-microaggregation"]
CASES = {
    "census": (["dbrl <= 0.2"], "column-emd", NUMBERS),
    "eia": (["dbrl <= 0.2", "uniqueness <= 0.9"], "il1s", NUMBERS),
    "adult": (["k >= 3"], "cells-changed", MIXED),
    "rand": (["dbrl <= 0.2"], "column-emd", MIXED),
    "patients": (["k >= 2", "dbrl <= 0.3"], "cells-changed", MIXED),
}
RECORDS, KEYS = 80, 6


def sample(name, reference_data):
    if name == "rand":
        pytest.importorskip("statsmodels", reason="the RAND data come with statsmodels")
        table = datasets.rand(per="person")
    elif name == "patients":
        table = datasets.patients(n=RECORDS, seed=5)
    elif name == "adult":
        table = datasets.adult(reference_data("adult/adult.csv"))
    else:
        table = getattr(datasets, name)(reference_data(f"{name}.csv"))
    keys = table.schema.with_role(Role.KEY)[:KEYS]
    table = table.select([*keys, *table.schema.with_role(Role.SENSITIVE)[:1]])
    rows = np.random.default_rng(11).choice(len(table), RECORDS, replace=False)
    return table.take(np.sort(rows))


def remeasured(recipe, table, judge):
    """Losses and verdicts in runs of another seed than the search had."""
    result = judge.evaluate(recipe, EvaluationCase(table), Run(seed=987654321), replicates=5)
    assert not result.refused
    met = [
        all(d.requirement.met_by(s) for d, s in zip(judge.demands, run.demands, strict=True))
        for run in result.runs
    ]
    losses = ReplicateMean.of([loss_of(judge.utilities[0], run.utilities[0].value) for run in result.runs])
    return met, losses


@pytest.mark.parametrize(
    "name",
    [
        "census",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("patients", "eia", "adult", "rand")),
    ],
)
def test_the_recommendation_holds_and_loses_to_no_single_method(name, reference_data):
    require, utility, methods = CASES[name]
    table = sample(name, reference_data)
    tuned = tune(
        table, require, utility=utility, methods=methods, trials=12, repeats=2, confirmations=3, seed=3
    )
    met, losses = remeasured(tuned.recipe, table, tuned.judge)
    # Passed in 3 fresh runs and in 2 of the search; here it may fail by chance in one of 5, not in more.
    assert sum(met) >= len(met) - 1
    alone = [each for each in tuned.found.candidates if each.origin == "single method" and each.feasible]
    assert alone
    for single in alone:
        holds, others = remeasured(Recipe(single.recipe.steps), table, tuned.judge)
        if all(holds):
            assert losses.mean <= others.mean or not losses.differs_from(others)
    assert not tuned.plan.blockers()
