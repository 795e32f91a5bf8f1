"""Risk by possible worlds: what a published bound on changes leaves possible, and what it makes certain."""

from __future__ import annotations

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.persons import best_by_person
from sfumato.risk._spaces import LinkageMeasure
from sfumato.risk.global_linkage import distortion
from sfumato.risk.linkage import by_original


class CertainLinks(LinkageMeasure):
    r"""Share of people with no possible match but their own, given a bound on how far records moved.

    Who knows that no record moved by more than :math:`\Delta` links only pairs with
    :math:`d(v_n, v'_m) \le \Delta`, and of these only the *perfectly matchable* ones: those that are in some
    one-to-one linkage of everybody. Whoever has a record that is matchable with their own ones alone is
    found for certain.

    Notes
    -----
    **How to read it.** 0 is safe. What is counted here no intruder can be wrong about, so even a small share
    is grave. ``matchable_pairs`` against ``near_pairs`` in the details says how much linking everybody at
    once rules out; ``by_record`` is the share of the same person's among the matchable partners.

    **Doubt.** Exact. Not estimable where more than ``most_pairs`` pairs lie within the bound: then it rules
    out little.

    **Missing.** As in `dbrl`: a missing value is a value of its own. One that was suppressed has moved far
    off, and would make a bound that rules out nothing: without a ``bound`` there is no number then.

    **Units.** Persons are counted, each by the record that is found most surely; files must have equally many
    records, one for one.

    **Cost.** :math:`O(n^2)` time in the worst case, memory by the pairs within the bound.
    """

    name = "certain-links"
    vetted = "brute-forced: unit/risk/test_possible_worlds.py::test_against_all_permutations"
    family = "linkage"
    title = "Certain links within a bound"
    tells = Tells(intruder="rules out all pairs beyond the published bound")
    references = ("herranz2015", "tassa2012")
    cost = "n²"

    bound: float | None = param(None, "The published bound; by default the most that a record moved.", gt=0)
    most_pairs: int = param(20_000_000, "Largest number of pairs examined.", ge=1, le=10**9, unit="pairs")

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """List the near pairs and find which can be true together with a linkage of everybody else."""
        names = self.columns(evidence)
        space = self.space(evidence, run, names)
        assert space.truth is not None  # `refuses` saw to it
        n = len(space.known_points)
        if not n:
            return Score.not_estimable(space.why_empty)
        if len(space.released_points) != n or not np.array_equal(np.sort(space.truth), np.arange(n)):
            return Score.not_estimable("the two tables do not have the same records, one for one")
        known, released = evidence.known_table, evidence.protected
        assert released is not None  # `refuses` saw to it
        if self.bound is None and any(
            (released.missing(name)[space.truth] & ~known.missing(name)[space.rows]).any() for name in names
        ):
            return Score.not_estimable("values were suppressed, so the most that a record moved is unknown")
        moved = distortion(space)
        bound = moved if self.bound is None else self.bound
        if bound < moved:
            return Score.not_estimable("some record moved farther than the bound, so the bound is not true")
        found = kernels.assignment.matchable(
            *space.points, radii=np.full(n, bound), matching=space.truth, **space.distance,
            most_pairs=self.most_pairs, tick=run.ticker(self.title),
        )  # fmt: skip
        if found is None:
            return Score.not_estimable(f"more than {self.most_pairs:,} pairs lie within the bound")
        assert space.owners is not None  # `refuses` saw to it
        own = np.bincount(found.rows[space.persons[found.rows] == space.owners[found.columns]], minlength=n)
        certain = best_by_person(space.persons, (own == found.matchable).astype(np.float64))
        details = {
            **self.count_details(space, evidence, names),
            "bound": bound,
            "near_pairs": int(found.near.sum()),
            "matchable_pairs": len(found.rows),
            "links_certain": int(certain.sum()),
        }
        return Score(
            value=float(certain.mean()),
            by_record=by_original(space.rows, own / found.matchable, len(evidence.known_table)),
            baseline=0.0,
            details=details,
        )
