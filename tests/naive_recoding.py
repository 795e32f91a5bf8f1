"""The best recoding found the naive way: plain Python, a pass over the records for each node."""

import itertools
import math
from collections import Counter, defaultdict
from types import SimpleNamespace

import polars as pl
from hypothesis import strategies as st

from sfumato.core.run import Run
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

# Hierarchies with gaps (labels that stay the same for a level), branches of different depth, unused leaves.
TREES = {
    "a": [["p", "p", "P", "*"], ["q", "pq", "P", "*"], ["r", "pq", "P", "*"], ["s", "s", "s", "*"]],
    "b": [["x", "u", "*"], ["y", "u", "*"], ["z", "v", "*"], ["never", "v", "*"]],
    "c": [["0", "*"], ["1", "*"]],
}
RESOURCES = {
    name: Hierarchy.from_levels(
        pl.DataFrame(rows, schema=[str(i) for i in range(len(rows[0]))], orient="row")
    )
    for name, rows in TREES.items()
}
MODELS = [
    "", "l >= 2", "l(kind=entropy) >= 1.5", "l(kind=recursive, c=2) >= 2", "t <= 0.4", "alpha <= 0.7",
    "delta-disclosure <= 1.2", "beta <= 0.8", "p >= 2", "xy-anonymity >= 2",
]  # fmt: skip
OBJECTIVES = [
    "loss", "granularity", "precision", "non-uniform-entropy", "discernibility", "average-class-size",
    "classification", "payout",
]  # fmt: skip


@st.composite
def people(draw, *, holes=True):
    n = draw(st.integers(1, 14))
    columns = {
        name: st.sampled_from([row[0] for row in rows if row[0] != "never"] + [None] * holes)
        for name, rows in TREES.items()
    }
    columns["s"] = st.sampled_from(["ill", "well", "dead"])
    return [tuple(draw(strategy) for strategy in columns.values()) for _ in range(n)]


def table_of(records, keys=("a", "b", "c"), **more):
    frame = pl.DataFrame(records, schema=dict.fromkeys(["a", "b", "c", "s"], pl.String), orient="row")
    columns = [Column(key, Kind.NOMINAL, Role.KEY, hierarchy=key) for key in ("a", "b", "c")]
    schema = Schema((*columns, Column("s", Kind.NOMINAL, Role.SENSITIVE)))
    frame = frame.with_columns(pl.Series(name, values) for name, (values, _) in more.items())
    extra = tuple(column for _, column in more.values())
    return Table(frame, Schema((*schema.columns, *extra)), targets=keys)


def run():
    return Run(seed=1, resources=RESOURCES)


# The naive scan: plain Python, a pass over the records for each node -------------------------------------


def label(name, value, level):
    if level == len(TREES[name][0]) - 1:
        return "*"  # any value or none
    return None if value is None else next(row[level] for row in TREES[name] if row[0] == value)


def covered(name, level, shown):
    return {row[0] for row in TREES[name] if row[level] == shown}


def shown_at(records, keys, levels):
    places = ["abc".index(key) for key in keys]
    return [
        tuple(label(k, rec[p], lev) for k, p, lev in zip(keys, places, levels, strict=True))
        for rec in records
    ]


def groups_of(rows):
    groups = defaultdict(list)
    for i, row in enumerate(rows):
        groups[row].append(i)
    return groups


def holds(values, everyone, k, model):  # noqa: PLR0911  — one for each model
    """Whether a class of sensitive values meets what is asked."""
    shares = {v: c / len(values) for v, c in Counter(values).items()}
    whole = {v: c / len(everyone) for v, c in Counter(everyone).items()}
    if len(values) < k:
        return False
    if model in {"l >= 2", "p >= 2", "xy-anonymity >= 2"}:
        return len(shares) >= 2
    if model == "beta <= 0.8":
        return all((p - whole[v]) / whole[v] <= 0.8 + 1e-12 for v, p in shares.items())
    if model.startswith("l(kind=recursive"):
        counts = sorted(Counter(values).values(), reverse=True)
        return counts[0] < 2 * sum(counts[1:])
    if model == "t <= 0.4":
        return sum(abs(shares.get(v, 0) - q) for v, q in whole.items()) / 2 <= 0.4 + 1e-12
    if model.startswith("l(kind=entropy"):
        return math.exp(-sum(p * math.log(p) for p in shares.values())) >= 1.5 - 1e-12
    if model == "alpha <= 0.7":
        return max(shares.values()) <= 0.7
    if model.startswith("delta"):
        return all(v in shares and abs(math.log(shares[v] / q)) <= 1.2 + 1e-12 for v, q in whole.items())
    return True


def meets(rows, sensitive, k, model):
    return all(
        holds([sensitive[i] for i in members], sensitive, k, model) for members in groups_of(rows).values()
    )


def leftover(rows, sensitive, failing, k, model):
    """What can be done with the records that fail; None if nothing helps."""
    if not failing:
        return "none" if meets(rows, sensitive, k, model) else None
    stars = [("*",) * len(row) if i in failing else row for i, row in enumerate(rows)]
    if meets(stars, sensitive, k, model):
        return "suppressed"
    kept = [i for i in range(len(rows)) if i not in failing]
    if kept and meets([rows[i] for i in kept], [sensitive[i] for i in kept], k, model):
        return "dropped"
    return None


def depth(name, members):
    """How many labels that differ in what they cover lead from a value up to a set of values."""
    sets = {frozenset(covered(name, i, row[i])) for row in TREES[name] for i in range(len(row))}
    return max(len({len(s) for s in sets if leaf in s and 1 < len(s) <= len(members)}) for leaf in members)


def cell_cost(objective, name, value, level, column):
    """The loss of a cell; level None is suppressed. For entropy the bits lost."""
    wild = level is None or label(name, value, level) == "*"
    members = {row[0] for row in TREES[name]} if wild else covered(name, level, label(name, value, level))
    if objective == "non-uniform-entropy":
        known = Counter(each for each in column if each is not None)
        mass = sum(known.values()) if wild else sum(known[leaf] for leaf in members)
        return math.log2(mass / known[value])
    if wild:
        return 1.0
    if objective == "precision":
        return depth(name, members) / depth(name, {row[0] for row in TREES[name]})
    return (len(members) - 1) / (len(TREES[name]) - 1)


def n_like(population, keys, levels, row):
    """How many people of a population a record may be, as it is shown; nobody is like it less than itself."""

    def may_be(key, level, shown, value):
        return shown == "*" or (value is None if shown is None else value in covered(key, level, shown))

    like = (
        all(may_be(*each) for each in zip(keys, levels, row, person, strict=True)) for person in population
    )
    return max(sum(like), 1)


def value_of(  # noqa: PLR0911
    objective,
    aggregate,
    records,
    keys,
    levels,
    *,
    failing,
    importance=None,
    balance=0.5,
    population=None,
    price=4,
):
    rows = shown_at(records, keys, levels)
    n = len(records)
    kept = {row: [i for i in members if i not in failing] for row, members in groups_of(rows).items()}
    kept = {row: members for row, members in kept.items() if members}
    if objective == "discernibility":
        return (sum(len(m) ** 2 for m in kept.values()) + n * len(failing)) / n**2
    if objective == "average-class-size":
        return n / (len(kept) + bool(failing))
    if objective == "payout":  # at the prices of Wan and others
        lost = value_of("non-uniform-entropy", aggregate, records, keys, levels, failing=failing)
        shown = {**kept, ("*",) * len(keys): [*failing, *kept.get(("*",) * len(keys), ())]}
        sizes = [(len(m), len(m)) for m in (*kept.values(), failing) if m]
        if population is not None:
            sizes = [(len(m), n_like(population, keys, levels, row)) for row, m in shown.items() if m]
        found = sum(count / size for count, size in sizes if 300 / size > price)
        return lost + 300 / 1200 * found / n
    if objective == "classification":
        right = sum(max(Counter(records[i][3] for i in m).values()) for m in kept.values())
        return (n - right) / n
    means, weights, bits, held = [], [], 0.0, 0.0
    for key, level in zip(keys, levels, strict=True):
        column = [record["abc".index(key)] for record in records]
        known = [i for i in range(n) if column[i] is not None]
        costs = [cell_cost(objective, key, column[i], None if i in failing else level, column) for i in known]
        factors = [min(2 * balance, 1) if i in failing else min(2 - 2 * balance, 1) for i in known]
        costs = [cost * factor for cost, factor in zip(costs, factors, strict=True)]
        bits += sum(costs)
        held += sum(cell_cost(objective, key, column[i], None, column) for i in known)
        if known:
            means.append(sum(costs) / len(known))
            weights.append((importance or {}).get(key, 1.0))
    if objective == "non-uniform-entropy":
        return bits / held if held else 0.0
    if objective == "loss" and aggregate == "geometric":
        logs = [weight * math.log1p(mean) for weight, mean in zip(weights, means, strict=True)]
        return math.expm1(sum(logs) / sum(weights)) if means else 0.0
    both = zip(weights, means, strict=True)
    return sum(weight * mean for weight, mean in both) / sum(weights) if means else 0.0


def naive(records, keys, *, k, model, objective, aggregate, suppression, **weighing):
    """The best node of all: its value, levels, suppressed records and what becomes of them; or None."""
    limit = math.floor(suppression / 100 * len(records) + 1e-9)
    sensitive = [record[3] for record in records]
    best = None
    for levels in itertools.product(*(range(len(TREES[key][0])) for key in keys)):
        rows = shown_at(records, keys, levels)
        failing = {
            i
            for members in groups_of(rows).values()
            if not holds([sensitive[i] for i in members], sensitive, k, model)
            for i in members
        }
        if len(failing) > limit:
            continue
        value = value_of(objective, aggregate, records, keys, levels, failing=failing, **weighing)
        rank = (round(value, 10), len(failing), sum(levels), levels)
        if best is not None and rank >= best.rank:
            continue
        fate = leftover(rows, sensitive, failing, k, model)
        if fate is not None:
            best = SimpleNamespace(rank=rank, value=value, levels=levels, failing=failing, fate=fate)
    return best
