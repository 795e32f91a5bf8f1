"""Every engine gives the same bytes and scores: columns in files, and work on two processes in many parts."""

import hashlib
import io
import json
import math
import pickle
import secrets
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.core import registry
from sfumato.core.run import Progress, Run
from sfumato.data.digest import BLOCK_RECORDS
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.engines import cluster
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.parcel import StaysHereError
from sfumato.errors import Cancelled, MemoryLimitError, SfumatoError
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.sampling import Sampling
from sfumato.methods.scalable_microaggregation import MdavInParts
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.testing.engines import columns_in_files, forms_of
from sfumato.testing.tables import with_declared_domains

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.xdist_group("cluster"),
    # dask leaves sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

SEED, RECORDS, FEW = 5, 450, 64
PARTS = (1, 2, 7)
MEASURES = ("uniqueness", "il1s", "hellinger")
#: Some of each shape; the others are proved at leisure.
USUAL = {
    "rank-swapping",
    "rounding",
    "correlated-noise",
    "uniform-noise",
    "pram",
    "mondrian",
    "sullivan-noise",
}
METHODS = [
    pytest.param(cls, marks=() if name in USUAL else pytest.mark.slow, id=name)
    for name, cls in registry.methods().items()
    if cls.randomness.replay
]


def mixed_table():
    """Numbers, categories and dates with missing cells, of persons with up to three records and a weight."""
    rng = np.random.default_rng(3)
    gone = rng.random((4, RECORDS)) < 0.1
    days = (np.datetime64("1990-01-01") + rng.integers(0, 9000, RECORDS)).astype("datetime64[D]")
    frame = pl.DataFrame({
        "pay": pl.Series(rng.lognormal(8, 1, RECORDS)).set(pl.Series(gone[0]), None),
        "age": pl.Series(rng.integers(18, 90, RECORDS)).set(pl.Series(gone[1]), None),
        "job": pl.Series(rng.choice(["baker", "smith", "miller"], RECORDS)).set(pl.Series(gone[2]), None),
        "rank": pl.Series(rng.integers(1, 6, RECORDS)),
        "born": pl.Series(days).set(pl.Series(gone[3]), None),
        "illness": rng.choice(["flu", "cold", "none"], RECORDS),
        "person": np.sort(rng.integers(0, RECORDS // 2, RECORDS)),
        "weight": rng.integers(1, 5, RECORDS).astype(float),
    })  # fmt: skip
    kinds = dict(zip(frame.columns, ("continuous",) * 2 + ("nominal", "ordinal", "date"), strict=False))
    columns = [Column(name, Kind(kind), Role.KEY) for name, kind in kinds.items()]
    rest = {"illness": Role.SENSITIVE, "person": Role.PERSON}
    columns += [Column(name, Kind.NOMINAL, role) for name, role in rest.items()]
    return Table(frame, Schema((*columns, Column("weight", Kind.CONTINUOUS, Role.WEIGHT))))


@pytest.fixture(scope="module")
def local():
    with sfumato.engine("local:2") as engine:
        yield engine


@pytest.fixture(scope="module")
def table():
    return mixed_table()


def outcome(cls, table, engine, *, score=True):
    """The SHA-256 of what a method writes and its scores; or the sentence with which it refuses."""
    table = with_declared_domains(table) if cls.randomness.epsilon_parameter else table
    names = [name for name in table.schema.with_role(Role.KEY) if table.schema[name].kind in cls.kinds]
    run = Run(seed=SEED, engine=engine)
    try:
        release = Recipe((Step(cls(), tuple(names)),)).apply(table, run)
    except SfumatoError as error:
        return str(error), {}
    content = hashlib.sha256()
    for each in release.tables.values():
        file = io.BytesIO()
        each.frame.write_parquet(file)
        content.update(file.getvalue())
    scores = sfumato.assess(table, release, MEASURES, run=run) if score and release.plain else {}
    return content.hexdigest(), {name: repr(score.value) for name, score in scores.items()}


@pytest.mark.parametrize("records", [FEW, BLOCK_RECORDS])
@pytest.mark.parametrize("cls", METHODS)
def test_the_same_bytes_and_scores_on_every_engine(cls, records, table, local, monkeypatch):
    alone = outcome(cls, table, MemoryEngine(records))
    with columns_in_files():
        assert outcome(cls, replace(table), MemoryEngine(records)) == alone, "stream"
    is_block = cls.shape() == "block"
    n_items, of_item = (math.ceil(RECORDS / records), records) if is_block else (len(table.names), RECORDS)
    engine = replace(local, block_records=records)
    for parts in PARTS:
        monkeypatch.setattr(cluster, "_RECORDS_PER_TASK", of_item * math.ceil(n_items / parts))
        assert outcome(cls, table, engine, score=False)[0] == alone[0], f"{parts} parts"
    assert outcome(cls, table, engine) == alone


# ------------------------------------------------------------------------------------ trials side by side


def compare(table, engine, **progress):
    found = []
    run = Run(seed=SEED, engine=engine, progress=Progress(found=found.append, **progress))
    study = sfumato.compare(
        table, ["rank-swapping", "rank-shuffling", "mdav", "private-laplace"], columns=["pay", "age"],
        rank_by="il1s", hold="uniqueness", level=0.5, points=2, repeats=1, run=run,
    )  # fmt: skip
    examples = [each.example and each.example.table.digest.hex() for each in study.outcomes]
    return json.dumps([study.to_dict(), examples, found])


def tune(table, engine):
    found = []
    run = Run(seed=SEED, engine=engine, progress=Progress(found=found.append))
    tuned = sfumato.tune(
        table, "k >= 2", columns=["pay", "age"], methods=["mondrian", "mdav", "rounding"], utility="il1s",
        trials=4, repeats=1, confirmations=1, minutes=None, run=run,
    )  # fmt: skip
    return json.dumps([tuned.to_dict(), tuned.plan.to_toml(), found])


@pytest.fixture
def pieces(monkeypatch):
    """How many pieces of work came back from workers."""
    opened, came = cluster.ClusterEngine._open, []
    monkeypatch.setattr(
        cluster.ClusterEngine, "_open", lambda self, answer: came.append(1) or opened(self, answer)
    )
    return came


@pytest.mark.parametrize("search", [compare, tune])
def test_trials_side_by_side_come_to_the_same(search, table, local, pieces):
    small = table.take(np.arange(60))
    alone = search(small, MemoryEngine())
    assert not pieces
    assert search(small, local) == alone
    assert len(pieces) > 3


# ------------------------------------------------------------------------------ one step, or one judgement


STEPS = {
    "parts": Step(MdavInParts(k=3, part=60), ("pay", "age")),
    "clusters": Step(MdavInParts(k=3, part=60, clusters=3), ("pay", "age")),
    "strata": Step(RankSwapping(), ("pay", "age"), within=("job", "rank")),
    "enforced in strata": Step(Mondrian(k=3), ("pay", "age"), within=("job",)),
    "sampled in strata": Step(Sampling(), ("pay",), within=("job",)),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
def test_parts_and_strata_on_workers(step, table, local, pieces, monkeypatch):
    def protect(engine):
        release = Recipe((step,)).apply(table, Run(seed=SEED, engine=engine))
        return release.table.digest, release.source_rows.tolist(), release.notes

    alone = protect(MemoryEngine())
    assert not pieces
    monkeypatch.setattr(cluster, "_RECORDS_PER_TASK", 1)
    assert protect(local) == alone
    assert len(pieces) > 3


def test_columns_go_to_the_workers_one_by_one(table, local, pieces, monkeypatch):
    monkeypatch.setattr(cluster, "_RECORDS_PER_TASK", RECORDS)
    Recipe((Step(RankSwapping(), ("pay", "age", "rank")),)).apply(table, Run(seed=SEED, engine=local))
    assert len(pieces) == 3


def test_measures_on_workers_score_the_same(table, local, pieces, monkeypatch):
    monkeypatch.setattr("sfumato.study.evaluate._WORTH_SHARING", 0)
    step = Step(RankSwapping(), ("pay", "age", "rank"))
    release = Recipe((step,)).apply(table, Run(seed=SEED, engine=MemoryEngine()))

    def score(engine):
        scores = sfumato.assess(table, release, "all", run=Run(seed=SEED, engine=engine))
        return {
            name: (
                each.status,
                repr(each.value),
                each.interval,
                each.reason,
                each.by_record is None,
                each.details,
            )
            for name, each in scores.items()
        }

    alone = score(MemoryEngine())
    assert not pieces
    found = score(local)
    assert {name for name in alone if repr(found[name]) != repr(alone[name])} == set()
    assert len(pieces) == 2


def test_trials_that_nobody_awaits_are_stopped(local, tmp_path):
    stopped = Progress(stopped=lambda: any(tmp_path.glob("*.begun")))
    with pytest.raises(Cancelled):
        list(Run(seed=SEED, engine=local, progress=stopped).spread(wait_until_stopped, [str(tmp_path)] * 3))
    until = time.monotonic() + 60
    while not any(tmp_path.glob("*.ended")) and time.monotonic() < until:
        time.sleep(0.05)
    assert any(tmp_path.glob("*.ended"))  # a worker saw it too


def wait_until_stopped(folder, run):
    place = Path(folder) / secrets.token_hex(8)
    place.with_suffix(".begun").touch()
    try:
        while True:
            run.check()
            time.sleep(0.01)
    except Cancelled:
        place.with_suffix(".ended").touch()
        raise


def test_work_that_needs_the_seed_is_done_here(local, pieces):
    run = Run(seed=SEED, engine=local)
    secret = run.randomness.person_secret
    assert list(run.spread(tell_secret, [True, False, True])) == [secret, 2, secret]
    assert len(pieces) == 1
    assert list(run.spread(lambda item, _run: item, "ab")) == ["a", "b"]  # has no name: cannot travel


def tell_secret(whether, run):
    return run.randomness.person_secret if whether else 2


def test_chance_that_travels_draws_the_same_and_has_no_seed():
    seed = 0xD15EA5E0FBADC0DE8BADF00DCAFED00D
    run = Run(seed=seed).at("tuner", 3)
    carried = run.randomness.carried()
    assert carried.at(b"table").key("a").key == run.random_key(b"table", "a").key
    assert carried.at_root().key("m").key == run.randomness.at_root().key("m").key
    arrived = pickle.loads(pickle.dumps(carried))
    assert arrived.key("a").key == run.random_key("a").key
    assert not any(form in pickle.dumps(carried) for form in forms_of(seed))
    with pytest.raises(StaysHereError):
        _ = arrived.series_secret


def test_workers_keep_to_the_memory_that_the_command_may_use(local):
    run = Run(seed=SEED, engine=replace(local, memory=10**12))
    assert list(run.spread(tell_limit, [1, 2])) == [10**12] * 2
    strict = Run(seed=SEED, engine=replace(local, memory=10**6), progress=Progress())
    with pytest.raises(MemoryLimitError, match="more memory than it may use"):
        list(strict.engine.spread(check_in_worker, [1, 2], tell_limit, lambda: None))


def tell_limit(_item, run):
    return run.engine.memory


def check_in_worker(_item, _stopped):
    Run(seed=SEED).check()
