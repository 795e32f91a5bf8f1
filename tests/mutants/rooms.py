"""What is mutated, by which tests that should be noticed, and how much of it must be."""

from dataclasses import dataclass

from mutants.changes import SOURCE


@dataclass(frozen=True)
class Room:
    """Files of the package, and where the tests are that answer for them."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


def _in(folder: str) -> tuple[str, ...]:
    found = (SOURCE / folder).glob("*.py")
    return tuple(sorted(f"{folder}/{path.name}" for path in found if path.name != "__init__.py"))


#: What decides that something may leave.
DECIDING = (
    "core/requirement.py",
    "releasing/decide.py",
    "releasing/carry_out.py",
    "releasing/destination.py",
)

WAY_OUT = (
    "tests/unit/releasing",
    "tests/cli/test_gate_verb.py",
    "tests/cli/test_way_out.py",
    "tests/cli/test_release_verb.py",
)

ENFORCED = (
    "tests/unit/methods/test_enforcing.py",
    "tests/unit/methods/test_mondrian.py",
    "tests/unit/methods/test_suppression.py",
    "tests/property/test_groups.py",
    "tests/property/test_enforced_models.py",
)

RISKS = (
    "tests/unit/risk",
    "tests/property/test_anonymity.py",
    "tests/property/test_combinations.py",
    "tests/property/test_exact_match.py",
    "tests/property/test_linkage.py",
    "tests/property/test_models.py",
    "tests/property/test_series_measures.py",
    "tests/property/test_uniqueness.py",
    "tests/property/test_worst_scores.py",
)

ROOMS = {
    "deciding": Room(DECIDING, ("tests/unit/core/test_requirement.py", *WAY_OUT)),
    "core": Room(("core/requirement.py", "core/measure.py"), ("tests/unit/core", *ENFORCED, *RISKS)),
    "releasing": Room(_in("releasing"), WAY_OUT),
    "risk": Room(_in("risk"), RISKS),
    "methods": Room(("methods/_enforcing.py",), ENFORCED),
    "data": Room(
        ("data/generalised/cover.py",),
        (
            "tests/unit/data/test_cover.py",
            "tests/unit/data/test_generalised.py",
            "tests/property/test_generalised.py",
        ),
    ),
}


def bar_of(file: str) -> float:
    """The share of mutants that tests must notice."""
    return 0.98 if file in DECIDING else 0.90
