"""Which papers can be rerun: each has a file of its own, loaded when it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from sfumato.core.run import Run
from sfumato.reproduce.bench import Paper

#: The file of each paper, by the number that the project gives it.
FILES = {
    "000": "equal_risk",
    "001": "global_linkage",
    "002": "survey",
    "003": "discharges",
    "004": "permutation",
    "crc": "research_cycle",
}


#: The survey: a catalogue in place of experiments.
CATALOGUE = "002"


def numbers() -> tuple[str, ...]:
    """The papers that are here."""
    return tuple(number for number, file in FILES.items() if _is_here(file))


def catalogue() -> tuple[Any, ...]:
    """The rows of the survey's catalogue (002): its place and term, what it is here, a verdict."""
    rows: tuple[Any, ...] = importlib.import_module("sfumato.reproduce.survey").catalogue()
    return rows


def measured_claims(run: Run) -> tuple[Any, ...]:
    """What the survey's Table 3 says of each family of methods, each with two measured numbers."""
    survey = importlib.import_module("sfumato.reproduce.survey")
    families = importlib.import_module("sfumato.reproduce.families")
    return tuple(families.measure_claim(each, run) for each in survey.claims())


def paper_of(number: str) -> Paper:
    """A paper by its number; the survey has a catalogue in place of experiments."""
    found: Paper = importlib.import_module(f"sfumato.reproduce.{FILES[number]}").PAPER
    return found


def _is_here(file: str) -> bool:
    return importlib.util.find_spec(f"sfumato.reproduce.{file}") is not None
