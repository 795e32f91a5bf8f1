"""Where experiments find their data and their randomness, and what a piece of work is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure
from sfumato.core.method import Method
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ReadError, trouble_with
from sfumato.recipes.recipe import Recipe
from sfumato.report.frame import Spec
from sfumato.reproduce.cells import Published, published
from sfumato.study.evaluate import EvaluationCase, evaluate

#: Names the folder of the reference data, if no folder is given; else it is this folder, where you are.
DATA_VARIABLE, DATA_FOLDER = "SFUMATO_REFERENCE_DATA", "reference-data"
#: Data that are drawn come from this seed, whatever the seed of the methods is.
DATA_SEED = 11

#: Numbers by cell (TABLE/ROW/COLUMN); of noise that cannot be repeated the mean, the least and the most.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """A piece of work: the cells that it gives, by a key under which the ledger keeps them.

    ``varies`` says why two runs of one seed differ: private noise is never seeded.
    ``seconds`` is what it takes about, to be told before.
    """

    key: str
    work: Callable[[Run], Values]
    seconds: float = 1.0
    varies: Literal["", "noise"] = ""


def nothing(_values: Values) -> dict[str, Any]:
    """No figures, or no conclusions."""
    return {}


@dataclass(frozen=True)
class Paper:
    """A paper: the work that reruns its experiments, the figures drawn of the numbers, and what follows.

    ``conclude`` gives cells that follow from those of several experiments.
    """

    number: str
    experiments: Callable[[Bench], Iterable[Experiment]]
    figures: Callable[[Values], Mapping[str, Spec]] = nothing
    conclude: Callable[[Values], Values] = nothing

    @property
    def published(self) -> Published:
        """What it printed."""
        return published(self.number)


@dataclass(frozen=True)
class Bench:
    """Where a paper's experiments are carried out: its data, and whether only a quick look is wanted."""

    published: Published
    folder: Path
    quick: bool = False

    def path(self, name: str) -> Path:
        """Where a file is, once it is known to be the right one."""
        path, known = self.folder / name, self.published.data[name]
        hint = f"{known.origin}; put it into the folder given by --data or {DATA_VARIABLE}"
        try:
            frame = pl.read_csv(path, separator=known.separator, infer_schema=False)
        except OSError as error:
            raise ReadError(f"`{name}` cannot be read: {trouble_with(error)}", hint=hint) from None
        except pl.exceptions.PolarsError:  # its text may quote cells
            raise ReadError(f"`{name}` is not a table of the expected form", hint=hint) from None
        missing = [column for column in known.columns if column not in frame.columns]
        if missing:
            raise ReadError(f"`{name}` has no column `{missing[0]}`, so it is another file", hint=hint)
        if frame.height != known.records:
            count = f"{known.records:,} records, got: {frame.height:,}"
            raise ReadError(f"`{name}` must have {count}; it is truncated or another file", hint=hint)
        return path

    @cached_property
    def paths(self) -> dict[str, Path]:
        """All files of the paper, each known to be the right one."""
        return {name: self.path(name) for name in self.published.data}

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each file."""
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self.paths.items()}

    def runs(self, full: int, quick: int = 1) -> range:
        """The runs of a cell: as many as the paper has, or a few."""
        return range(quick if self.quick else full)


def data_folder(given: Path | None) -> Path:
    """The folder of the reference data: as given, as the environment says, or the usual one."""
    return given or Path(os.environ.get(DATA_VARIABLE) or DATA_FOLDER)


def nominal_keys(frame: pl.DataFrame) -> Table:
    """A table whose columns are all nominal keys."""
    return Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in frame.columns)))


def numeric_keys(frame: pl.DataFrame) -> Table:
    """A table whose columns are all continuous keys."""
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns)))


def numbers_of(
    what: Method | Recipe | Release, table: Table, measures: Sequence[Measure], run: Run, *,
    scenario: Scenario | None = None,
) -> list[float | None]:  # fmt: skip
    """What measures give of one release; None where one has no number."""
    recipe = Recipe.of(what) if isinstance(what, Method) else what
    case = EvaluationCase(table, scenario or Scenario())
    scores = evaluate(recipe, case, measures, run).scores
    return [_number(scores[str(measure)].value) for measure in measures]


def mean_numbers(
    method: Method | Recipe, table: Table, measures: Sequence[Measure], run: Run, runs: range
) -> list[float | None]:
    """Means over runs, each with randomness of its own; one run is enough of a method without any."""
    recipe = Recipe.of(method) if isinstance(method, Method) else method
    turns = runs if recipe.stochastic else range(1)
    found = [numbers_of(recipe, table, measures, run.at("run", number)) for number in turns]
    return [mean_of(column) for column in zip(*found, strict=True)]


def mean_of(numbers: Iterable[float | None]) -> float | None:
    """The mean; None if a number is missing."""
    known = list(numbers)
    return None if None in known or not known else float(np.mean(np.array(known, dtype=float)))


def band_of(numbers: Sequence[float]) -> list[float]:
    """Mean, least and most of numbers that two runs do not repeat."""
    return [float(np.mean(numbers)), float(np.min(numbers)), float(np.max(numbers))]


def rank_correlation(one: object, other: object) -> float:
    """Spearman's rank correlation, to twelve digits."""
    from scipy.stats import spearmanr

    return round(float(spearmanr(one, other).statistic), 12)


def score_number(measure: Measure, evidence: Evidence, run: Run) -> float | None:
    """The number of a measure of this evidence, if it has one."""
    return _number(measure.score(evidence, run).value)


def _number(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
