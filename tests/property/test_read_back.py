"""A release scores the same in memory and read back from its file: whoever asks sees the same values."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.generalised.cover import cover_of
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.load import load_resources
from sfumato.releasing.read_release import read_release

ORDER = ["low", "mid", "high", "top"]
MEASURES = (
    "dbrl",
    "k-anonymity",
    "nearest-record-distance",
    "direct-matching",
    "column-emd",
    "total-variation",
)
SETTINGS = {
    "recoded": [("recoding", {"levels": 1})],
    "suppressed, then in groups": [("local-suppression", {"k": 2}), ("mondrian", {"k": 2})],
    "suppressed, then recoded": [("local-suppression", {"k": 2}), ("recoding", {"levels": 1})],
    "averaged, then recoded": [("mdav", {"k": 2}), ("recoding", {"levels": 1})],
    "in groups": [("mondrian", {"k": 2})],
    "searched": [("global-recoding", {"k": 2})],
}


def columns_of(rng, n):
    """A mixed table: text, an order with a value that nobody may have, numbers, dates; some is missing."""
    days = [
        dt.datetime.fromisoformat("2020-01-01") + dt.timedelta(minutes=977 * int(d))
        for d in rng.integers(0, 9, n)
    ]
    drawn = {
        "word": rng.choice(["x", "y", "z", "w"], n).tolist(),
        "level": rng.choice(ORDER[:3], n).tolist(),
        "code": rng.integers(1, 6, n).tolist(),
        "size": rng.choice([1.5, 2.0, 4.0, 10.0], n).tolist(),
        "day": days,
    }
    kinds = {"word": "nominal", "level": "ordinal", "code": "nominal", "size": "continuous", "day": "date"}
    chosen = rng.permutation(list(drawn))[:3]
    cells = {name: [None if rng.random() < 0.1 else cell for cell in drawn[name]] for name in chosen}
    declared = {name: {"kind": kinds[name], "role": "key"} for name in chosen}
    if "level" in declared:
        declared["level"]["order"] = ORDER
    return pl.DataFrame(cells), declared


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_release_scores_the_same_in_memory_and_in_its_file(tmp_path, setting, ending):
    for seed in range(4):
        rng, folder = np.random.default_rng(seed), tmp_path / str(seed)
        folder.mkdir()
        frame, declared = columns_of(rng, int(rng.integers(5, 20)))
        frame.write_parquet(folder / "in.parquet")
        able = {name: registry.method(name).kinds for name, _ in SETTINGS[setting]}
        steps = [
            {
                "method": name,
                "columns": [each for each, said in declared.items() if said["kind"] in able[name]],
                "parameters": parameters,
            }
            for name, parameters in SETTINGS[setting]
        ]
        said = {"data": {"path": "in.parquet"}, "columns": declared, "steps": steps}
        plan = Plan.from_dict({**said, "output": {"path": f"out.{ending}"}}, folder=folder)
        outcome = carry_out(plan, Run(seed=LARGE))
        write_release(decide(outcome, subject="it", unjudged=True, override="a test"), Destination(plan))
        part = outcome.parts[""]
        again = read_release(part.original, folder / f"out.{ending}", aligned=False)
        for name in MEASURES:
            measure = registry.measure(name)()
            before, after = (
                measure.score(Evidence(part.original, each), Run(seed=1)) for each in (part.release, again)
            )
            assert (before.status, before.reason) == (after.status, after.reason), (seed, name)
            np.testing.assert_allclose(after.value, before.value, rtol=1e-9, err_msg=f"{seed} {name}")


def test_values_of_a_hierarchy_that_nobody_has_count_for_both(tmp_path):
    """North is a third of the places of the hierarchy, though half of those that people have."""
    tree = pl.DataFrame({"place": [*"abcdef"], "region": ["north"] * 2 + ["south"] * 2 + ["west"] * 2})
    tree.write_csv(tmp_path / "tree.csv", include_header=False)
    pl.DataFrame({"place": [*"aabbccdd"]}).write_csv(tmp_path / "in.csv")
    said = {
        "data": {"path": "in.csv"},
        "columns": {"place": {"kind": "nominal", "role": "key", "hierarchy": "tree"}},
        "resources": {"tree": {"path": "tree.csv", "holds": "hierarchy"}},
        "steps": [{"method": "recoding", "columns": ["place"], "parameters": {"levels": 1}}],
        "output": {"path": "out.csv"},
    }
    plan = Plan.from_dict(said, folder=tmp_path)
    outcome = carry_out(plan, Run(seed=LARGE))
    write_release(decide(outcome, subject="it", unjudged=True, override="a test"), Destination(plan))
    part, resources = outcome.parts[""], load_resources(plan)
    again = read_release(part.original, tmp_path / "out.csv", aligned=False, resources=resources)
    for release in (part.release, again):
        assert release.table.nodes["place"].leaves.sort().to_list() == [*"abcdef"]
        _, cover = cover_of(part.original, release.table, "place")
        np.testing.assert_allclose(cover.share_of_domain(), 1 / 5)
