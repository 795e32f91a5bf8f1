"""Clusters: whether the release falls into the same groups as the original."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Laws, Needs, Score
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.errors import MissingDependencyError
from sfumato.kernels.arrays import Floats, Ints
from sfumato.utility._features import ModelMeasure, features_of

#: Rounds after which k-means is taken as it is.
_ROUNDS = 300
#: Distances held at a time.
_AT_ONCE = 4_000_000


class ClusterMeasure(ModelMeasure):
    """A measure by k-means of both tables: what its kind have in common."""

    cost = "n"
    counts = Counting(
        laws=Laws(reads_names="Its draws follow the order of the columns, which is that of their names.")
    )

    records: int = param(
        10_000, "Largest number of records clustered; larger tables are sampled.", ge=20, unit="records"
    )
    clusters: int = param(5, "Number of clusters.", ge=2, le=100, symbol="k")
    starts: int = param(5, "Number of starts of k-means; the best result counts.", ge=1, le=100)

    def cluster_both(self, evidence: Evidence, run: Run) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        """The points of both tables with the cluster of each."""
        names = self.columns(evidence)
        first, second = evidence.remember(("points", names), lambda: _points(evidence, names))
        seed = int(run.rng("start").integers(1 << 31))
        original_clusters, centres = k_means(first, self.clusters, self.starts, seed)
        # The release may begin where the original ended, so that a difference is one of the data.
        released_clusters, _ = k_means(second, self.clusters, self.starts, seed, also=centres)
        return (first, original_clusters), (second, released_clusters)


class ClusterAgreement(ClusterMeasure):
    r"""Agreement of the clusters of the release with those of the original.

    Both tables are clustered by k-means. With :math:`n_{11}` the pairs of records that are together in both,
    :math:`n_{00}` those that are apart in both, and :math:`n_{10}`, :math:`n_{01}` those that are together
    only in the original or only in the release,

    .. math::

        \text{Rand} = \frac{n_{11} + n_{00}}{n_{11} + n_{00} + n_{10} + n_{01}}, \qquad
        \text{Fowlkes–Mallows} = \frac{n_{11}}{\sqrt{(n_{11} + n_{10})(n_{11} + n_{01})}}.

    See Also
    --------
    ClusterStructure : how clear the clusters are, for releases whose records do not map.

    Notes
    -----
    **How to read it.** 1 means the same clusters. ``baseline`` is what clusters of the same
    sizes have that were drawn by chance, which for the Rand index is far from 0; ``details`` has the
    adjusted Rand index (0: chance, 1: the same). Higher is better.

    **Doubt.** scikit-learn's k-means (extra ``models``) finds a good end, not always the best: it begins
    ``starts`` times (k-means++), and in the release once more from the centres of the original. Where the
    data have no clusters, ends differ by chance alone. Tables above ``records`` are sampled, and the status
    is then approximate.

    **Missing.** A missing value or wildcard lies at the mean, one standard step apart from those that are
    there. Generalised values are taken at their expectation: ranges at their middle, sets of categories in
    equal shares. Each nominal column varies as much as a number. Records must map; those without an original
    are left out of the pairs. Weights are not used.

    **Cost.** :math:`O(n k)` for each round, which ``records`` bounds; pairs are counted from a
    :math:`k \times k` table.
    """

    name = "cluster-agreement"
    family = "analyses"
    title = "Agreement of clusters"
    better = "high"
    bounds = (0.0, 1.0)
    needs = Needs(mapping=True, exact_original=True, records=True)
    references = ("rand1971", "fowlkes1983", "hubert1985", "arthur2007")

    index: Literal["rand", "fowlkes-mallows"] = param(
        "rand",
        "How agreement is measured.",
        choices={
            "rand": "The share of pairs of records that are together in both tables, or apart in both.",
            "fowlkes-mallows": "Of pairs together in one table, the share that are in the other: a mean.",
        },
        synonyms={"Rand index": "rand", "Fowlkes-Mallows index": "fowlkes-mallows"},
    )

    def fit(self, evidence: Evidence, run: Run) -> Score:
        """Cluster both tables and count the pairs."""
        assert evidence.source_rows is not None
        (_, original_clusters), (_, released_clusters) = self.cluster_both(evidence, run)
        known = evidence.source_rows >= 0
        if known.sum() < 2:  # noqa: PLR2004
            return Score.not_estimable("fewer than two released records have an original")
        if not original_clusters.any():
            return Score.not_estimable("all original records are equal, so there are no clusters")
        found = agreement(original_clusters[evidence.source_rows[known]], released_clusters[known])
        value, baseline = found[self.index]
        return Score(
            value=value,
            baseline=baseline,
            details={
                "adjusted_rand": found["adjusted-rand"][0],
                "clusters": int(original_clusters.max()) + 1,
                "clusters_released": int(released_clusters.max()) + 1,
            },
        )


class ClusterStructure(ClusterMeasure):
    r"""Difference in how clear the clusters are, between release and original.

    Both tables are clustered by k-means on their own, and the indices of the two are compared,
    :math:`|I(X) - I(Y)|`. The silhouette is the mean over records of

    .. math::

        s_i = \frac{b_i - a_i}{\max(a_i, b_i)}

    where :math:`a_i` is the mean distance to the others of its own cluster and :math:`b_i` that to the
    nearest other cluster (0 where it is alone in its cluster). The Davies–Bouldin index is the mean over
    clusters of

    .. math::

        \max_{j \ne i} \frac{S_i + S_j}{d_{ij}}

    where :math:`S_i` is the mean distance of its records to its centre and :math:`d_{ij}` that between
    centres.

    See Also
    --------
    ClusterAgreement : whether the same records are together.

    Notes
    -----
    **How to read it.** 0 means clusters as clear as before; the silhouette lies from −1 to 1, so its
    difference is at most 2. Lower is better. ``details`` has both indices. A release that is clearer than the
    original (microaggregation) is as far off as one that is as much more blurred.

    **Doubt.** Exact for the clusters that scikit-learn (extra ``models``) found, up to ``probes`` records;
    beyond, the silhouettes of so many records of each table are taken, each against all, and the interval is
    that of their mean in 95 of 100 cases. Tables above ``records`` are sampled, and the status is then
    approximate.

    **Missing.** A missing value or wildcard lies at the mean, one standard step apart from those that are
    there. Generalised values are taken at their expectation: ranges at their middle, sets of categories in
    equal shares. Each nominal column varies as much as a number. Records need not map. Weights are not used.

    **Cost.** :math:`O(n k)` for each round of k-means; silhouettes take ``probes`` × :math:`n` distances,
    never all at once.
    """

    name = "cluster-structure"
    family = "analyses"
    title = "Structure of clusters"
    better = "low"
    bounds = (0.0, np.inf)
    references = ("rousseeuw1987", "davies1979", "arthur2007")

    index: Literal["silhouette", "davies-bouldin"] = param(
        "silhouette",
        "How the separation of clusters is measured.",
        choices={
            "silhouette": "How much nearer records are to their own cluster than to the next, on average.",
            "davies-bouldin": "How wide clusters are against the distance to the next; mean over clusters.",
        },
        synonyms={"silhouette coefficient": "silhouette", "Davies-Bouldin index": "davies-bouldin"},
    )
    probes: int = param(
        2000,
        "Largest number of records whose silhouette is taken.",
        ge=20,
        unit="records",
        when="index=silhouette",
    )

    def fit(self, evidence: Evidence, run: Run) -> Score:
        """Cluster both tables and compare how clear the clusters are."""
        (first, original_clusters), (second, released_clusters) = self.cluster_both(evidence, run)
        if not original_clusters.any() or not released_clusters.any():
            return Score.not_estimable("all records of one table are equal, so there are no clusters")
        if self.index == "davies-bouldin":
            indices = davies_bouldin(first, original_clusters), davies_bouldin(second, released_clusters)
            return Score(value=abs(indices[0] - indices[1]), details=_score_details(*indices))
        found = [
            silhouettes(points, labels, _probes(len(points), self.probes, run.rng("probes", side)))
            for side, (points, labels) in enumerate(((first, original_clusters), (second, released_clusters)))
        ]
        value = float(abs(found[0].mean() - found[1].mean()))
        doubt = [_error(each, len(points)) for each, points in zip(found, (first, second), strict=True)]
        half = 1.96 * float(np.hypot(doubt[0], doubt[1]))
        return Score(
            value=value,
            interval=(max(value - half, 0.0), value + half) if half > 0 else None,
            details=_score_details(float(found[0].mean()), float(found[1].mean())),
        )


def _score_details(original: float, released: float) -> dict[str, float | int | str]:
    return {"original": original, "released": released}


def _probes(n: int, most: int, rng: np.random.Generator) -> Ints:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _error(drawn: Floats, n: int) -> float:
    """The standard error of the mean of a sample of ``n`` without repeats."""
    if len(drawn) >= n:
        return 0.0
    return float(drawn.std(ddof=1) * np.sqrt((1 - len(drawn) / n) / len(drawn)))


def _points(evidence: Evidence, names: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Both tables as points in which each nominal column varies as much as a number."""
    features = features_of(evidence, names)
    units = np.ones(len(features.columns))
    owners = np.array(features.columns, dtype=object)
    for name in dict.fromkeys(features.columns):
        places = np.intersect1d(features.places["share"], np.flatnonzero(owners == name))
        spread = features.original[:, places].var(axis=0).sum()
        units[places] = 1 / np.sqrt(spread) if spread > 0 else 1.0
    return features.original * units, features.released * units


# k-means -----------------------------------------------------------------------------------------------


def k_means(
    points: Floats, k: int, starts: int, seed: int, *, also: Floats | None = None
) -> tuple[Ints, Floats]:
    """Cluster points by scikit-learn from k-means++ starts, and from the centres ``also``; the best counts.

    There are fewer clusters than ``k`` where there are fewer different points.
    """
    try:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
    except ImportError as error:
        raise MissingDependencyError.of("scikit-learn", extra="models", purpose="k-means") from error
    k = min(k, len(np.unique(points, axis=0)))
    models = [KMeans(k, n_init=starts, max_iter=_ROUNDS, tol=0.0, random_state=seed)]
    if also is not None and len(also) == k:
        models.insert(0, KMeans(k, init=also, n_init=1, max_iter=_ROUNDS, tol=0.0))
    # A sum of several threads is rounded in another order; points that differ by rounding may end as one.
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = min((model.fit(points) for model in models), key=lambda model: float(model.inertia_))
    return best.labels_.astype(np.int64), best.cluster_centers_


def _distances(points: Floats, others: Floats) -> Iterator[tuple[int, Floats]]:
    """Distances of points to others, some points at a time."""
    from scipy.spatial.distance import cdist

    step = max(1, _AT_ONCE // max(len(others), 1))
    for start in range(0, len(points), step):
        yield start, cdist(points[start : start + step], others)


# Indices -----------------------------------------------------------------------------------------------


def agreement(first: Ints, second: Ints) -> dict[str, tuple[float, float]]:
    """Indices of agreement of two partitions of the same records, each with what chance gives."""
    n_pairs = len(first) * (len(first) - 1) / 2
    table = np.bincount(first * (int(second.max()) + 1) + second)
    both, original_pairs, released_pairs = (
        float((counts * (counts - 1.0) / 2).sum())
        for counts in (table, np.bincount(first), np.bincount(second))
    )
    by_chance = original_pairs * released_pairs / n_pairs
    room = (original_pairs + released_pairs) / 2 - by_chance
    scale = (
        float(np.sqrt(original_pairs * released_pairs)) or np.nan
    )  # where no two records are together it says nothing
    return {
        "rand": (
            _rand(both, original_pairs, released_pairs, n_pairs),
            _rand(by_chance, original_pairs, released_pairs, n_pairs),
        ),
        "fowlkes-mallows": (both / scale, by_chance / scale),
        "adjusted-rand": ((both - by_chance) / room if room > 0 else 1.0, 0.0),
    }


def _rand(both: float, original_pairs: float, released_pairs: float, n_pairs: float) -> float:
    """The share of pairs that are together in both or apart in both."""
    return (n_pairs + 2 * both - original_pairs - released_pairs) / n_pairs


def silhouettes(points: Floats, labels: Ints, probes: Ints) -> Floats:
    """The silhouettes of some records, each against all."""
    sizes = np.bincount(labels)
    members = np.zeros((len(points), len(sizes)))
    members[np.arange(len(points)), labels] = 1.0
    found = np.empty(len(probes))
    for start, distances in _distances(points[probes], points):
        own = labels[probes[start : start + len(distances)]]
        sums = distances @ members
        rows = np.arange(len(own))
        inside = sums[rows, own] / np.maximum(sizes[own] - 1, 1)
        means = sums / sizes
        means[rows, own] = np.inf
        beside = means.min(axis=1)
        larger = np.maximum(inside, beside)
        values = np.where(larger > 0, (beside - inside) / np.where(larger > 0, larger, 1.0), 0.0)
        found[start : start + len(own)] = np.where(sizes[own] > 1, values, 0.0)
    return found


def davies_bouldin(points: Floats, labels: Ints) -> float:
    """The mean over clusters of the worst ratio of their widths to the distance of their centres."""
    from sklearn.metrics import davies_bouldin_score  # k-means saw to it that it is there

    return float(davies_bouldin_score(points, labels)) if labels.max() + 1 < len(labels) else 0.0
