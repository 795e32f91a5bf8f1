"""What a search has settled is told at once, so that who waits can see it: methods compared, recipes confirmed."""

import json

import numpy as np
import polars as pl

import sfumato
from sfumato.core.run import Progress, Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

SEED = 0xD15EA5E0FBADC0DE8BADF00DCAFED00D
#: Cells that would stand out.
INCOMES = 77_000_000.25 + np.random.default_rng(1).permutation(40) * 1000.5
COLUMNS = (Column("income", Kind.CONTINUOUS, Role.KEY), Column("sex", Kind.NOMINAL, Role.KEY))
TABLE = Table(pl.DataFrame({"income": INCOMES, "sex": ["SENTINEL", "other"] * 20}), Schema(COLUMNS))


def listening():
    found = []
    return found, Run(seed=SEED, progress=Progress(found=found.append))


def require_public(found):
    text = json.dumps(found, allow_nan=False)
    for secret in (str(SEED), f"{SEED:x}", "SENTINEL", *map(str, INCOMES)):
        assert secret not in text


def test_each_method_compared_is_told_once_it_is_settled():
    found, run = listening()
    methods = ["rank-swapping", "mdav"]
    study = sfumato.compare(TABLE, methods, columns=["income"], repeats=2, run=run)
    assert [each["method"] for each in found] == methods
    assert all(each["rank"] is None for each in found)  # which no one knows before the last
    told = {each["method"]: each for each in found}
    for outcome in study.outcomes:
        last = {"rank": None, "tied_with": [], "like_sample": None}  # known when all are settled
        said = outcome.to_dict() | last | {"axes": [str(each) for each in study.axes]}
        assert told[said["method"]] == said
    require_public(found)


def test_each_recipe_that_a_search_confirms_is_told():
    found, run = listening()
    tuned = sfumato.tune(TABLE, "k >= 4", utility="column-emd", run=run, trials=8)
    confirmed = [tuned.best, *tuned.runners_up]
    assert sorted(json.dumps(each["steps"]) for each in found) == sorted(
        json.dumps(each.recipe.to_list()) for each in confirmed
    )
    assert all(each["requirements"][0]["score"]["mean"] >= 4 for each in found)
    require_public(found)
