"""Mondrian against a naive recursive one, and what it does with hierarchies, targets, persons and models."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.generalised.rare_values import known_of
from sfumato.data.generalised.text_forms import parse_nodes, to_text
from sfumato.data.hierarchy.build import from_tree
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, RefusedError, SfumatoError, UnreachableError
from sfumato.methods._clusters import clusters_of
from sfumato.methods._local_recoding import Canvas, natural_places
from sfumato.methods.mondrian import Mondrian, coded_keys, target_classes
from sfumato.methods.recoding import Recoding
from sfumato.methods.sorted_generalisation import SortedGeneralisation
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

TREE = {"x": {"a": {}, "b": {}}, "y": {"c": {}, "d": {}, "e": {}}}


# A naive Mondrian: lists of row numbers, cut by plain counting. -----------------------------------------


class Naive:
    """Columns are lists of values, None where missing; ``kinds`` are number, place, set or a tree."""

    def __init__(self, columns, kinds, k, allowed=lambda rows: True):
        self.columns, self.kinds, self.k, self.allowed = columns, kinds, k, allowed
        self.known = {name: [v for v in values if v is not None] for name, values in columns.items()}

    def values(self, rows, name):
        return [self.columns[name][row] for row in rows]

    def width(self, rows, name):  # noqa: PLR0911  — one for each kind
        values = self.values(rows, name)
        present = {value for value in values if value is not None}
        if len(present) < 1 or (len(present) == 1 and None not in values):
            return 0.0
        if None in values:
            return 1.0
        everything, kind = sorted(set(self.known[name])), self.kinds[name]
        if kind == "number":
            return (max(present) - min(present)) / (everything[-1] - everything[0])
        if kind == "place":
            places = [everything.index(value) for value in present]
            return (max(places) - min(places)) / (len(everything) - 1)
        if kind in ("set", "words"):
            return (len(present) - 1) / (len(everything) - 1)
        of_leaf = {leaf: label for label, leaves in kind.items() for leaf in leaves}
        labels = {of_leaf[value] for value in present}
        if len(labels) > 1:
            return 1.0
        return (len(kind[labels.pop()]) - 1) / (len(of_leaf) - 1)

    def sides(self, rows, name, how):
        values = self.values(rows, name)
        if how == "holes":
            tell = [value is None for value in values]
        elif self.kinds[name] in ("number", "place"):
            keys = [(-1, 0) if value is None else (0, value) for value in values]
            cuts = []
            for cut in sorted(set(keys))[1:]:
                left = sum(key < cut for key in keys)
                cuts.append((-min(left, len(rows) - left), cut))
            if not cuts:
                return None
            tell = [key < min(cuts)[1] for key in keys]
        else:
            tell = self.parted(values, self.kinds[name])
        left = [row for row, here in zip(rows, tell, strict=True) if here]
        return left, [row for row in rows if row not in set(left)]

    def parted(self, values, kind):
        """Two runs of texts with numbers, or, if none leaves k on both sides, dealt out by frequency."""
        labels, listed = list(values), sorted({*values} - {None})
        if kind not in ("set", "words"):
            of_leaf = {leaf: label for label, leaves in kind.items() for leaf in leaves}
            above = {of_leaf[value] for value in values if value is not None}
            if len(above) > 1:
                labels = [None if value is None else of_leaf[value] for value in values]
        counts = Counter(labels)
        listed = [None, *listed] if None in counts else listed
        listed = listed if kind == "set" else []
        runs = [listed[:end] for end in range(1, len(listed))]
        lighter = {
            end: min(n := sum(counts[e] for e in run), len(values) - n) for end, run in enumerate(runs)
        }
        best = max(lighter, key=lambda end: (lighter[end], -end), default=None)
        if best is not None and lighter[best] >= self.k:
            return [label in runs[best] for label in labels]
        left, right = set(), set()
        for label in sorted(counts, key=lambda each: (-counts[each], each is not None, each or "")):
            lighter = left if sum(counts[e] for e in left) <= sum(counts[e] for e in right) else right
            lighter.add(label)
        return [label in left for label in labels]

    def parts(self, rows):
        names = sorted(self.columns, key=lambda name: (-self.width(rows, name), name))
        for name in names:
            if not self.width(rows, name):
                continue
            mixed = None in self.values(rows, name)
            for how in ("holes", "middle") if mixed else ("middle",):
                sides = self.sides(rows, name, how)
                if sides and all(len(side) >= self.k and self.allowed(side) for side in sides):
                    return self.parts(sides[0]) + self.parts(sides[1])
        return [sorted(rows)]


def table_of(columns, kinds, **roles):
    facts = {"number": Kind.CONTINUOUS, "place": Kind.ORDINAL, "set": Kind.NOMINAL, "words": Kind.NOMINAL}
    schema = Schema(
        tuple(
            Column(name, Kind.NOMINAL, Role.KEY, hierarchy="tree")
            if isinstance(kinds[name], dict)
            else Column(name, facts[kinds[name]], roles.get(name, Role.KEY))
            for name in columns
        )
    )
    keys = [name for name in columns if name not in roles]
    return Table(pl.DataFrame(columns, strict=False), schema, targets=tuple(keys))


def drawn(seed, n, missing):
    rng = np.random.default_rng(seed)
    columns = {
        "n": rng.integers(0, 6, n).tolist(),
        "f": np.round(rng.lognormal(0, 1, n), 2).tolist(),
        "p": rng.integers(0, 4, n).tolist(),
        "s": [f"v{code}" for code in rng.integers(0, 4, n)],
        "w": ["xyz"[code] for code in rng.integers(0, 3, n)],
        "t": ["abcde"[code] for code in rng.integers(0, 5, n)],
    }
    for values in columns.values():
        for place in np.flatnonzero(rng.random(n) < missing):
            values[place] = None
    kinds = {"n": "number", "f": "number", "p": "place", "s": "set", "w": "words", "t": TREE}
    # A column of one value has no width for anyone; the naive one would divide by 0.
    return {name: values for name, values in columns.items() if len({*values} - {None}) > 1}, kinds


def parts_of_groups(method, table):
    """The groups that are cut, which may show alike where labels of a tree do."""
    run = Run(seed=1, resources={"tree": from_tree(TREE, name="tree")})
    groups, _ = method.group(Canvas(table, method.guarantee_for(table), run))
    cuts = zip(groups.starts[:-1], groups.starts[1:], strict=True)
    return sorted(sorted(groups.order[start:end].tolist()) for start, end in cuts)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(12))
def test_equals_a_naive_mondrian(seed, missing):
    columns, kinds = drawn(seed, 10 + 5 * seed, missing)
    for k in (1, 2, 5):
        found = parts_of_groups(Mondrian(k=k), table_of(columns, kinds))
        assert found == sorted(Naive(columns, kinds, k).parts(list(range(10 + 5 * seed))))


@pytest.mark.parametrize("seed", range(6))
def test_equals_a_naive_mondrian_that_asks_for_diversity(seed):
    columns, kinds = drawn(seed, 40, 0.2)
    sensitive = np.random.default_rng(seed + 100).integers(0, 4, 40).tolist()
    naive = Naive(columns, kinds, 3, lambda rows: len({sensitive[row] for row in rows}) >= 3)
    table = table_of({**columns, "z": sensitive}, {**kinds, "z": "set"}, z=Role.SENSITIVE)
    assert parts_of_groups(Mondrian(k=3, also="l >= 3"), table) == sorted(naive.parts(list(range(40))))


def test_record_order_does_not_matter():
    columns, kinds = drawn(3, 60, 0.1)
    shuffled = np.random.default_rng(9).permutation(60)
    moved = {name: [values[row] for row in shuffled] for name, values in columns.items()}
    straight = parts_of_groups(Mondrian(k=3), table_of(columns, kinds))
    turned = parts_of_groups(Mondrian(k=3), table_of(moved, kinds))
    assert sorted(sorted(shuffled[rows].tolist()) for rows in turned) == straight


# Worked examples ---------------------------------------------------------------------------------------


def released(method, frame, schema, **run):
    table = Table(pl.DataFrame(frame), Schema(schema))
    return method.apply(table.aimed_at(table.schema.with_role(Role.KEY)), Run(seed=1, **run)).table


def test_ties_stay_together_unless_relaxed():
    age = (Column("age", Kind.CONTINUOUS, Role.KEY),)
    values = {"age": [1, 2, 2, 2, 2, 3]}
    strict = released(Mondrian(k=2), values, age)
    assert to_text(strict.frame["age"]).to_list() == ["[1;3]"] * 6
    relaxed = released(Mondrian(k=2, relaxed=True), values, age)
    assert to_text(relaxed.frame["age"]).to_list() == ["[1;2]"] * 3 + ["[2;3]"] * 3


def test_relaxed_groups_are_smaller_than_2k():
    rng = np.random.default_rng(4)
    frame = {"a": rng.integers(0, 3, 500), "b": rng.integers(0, 2, 500)}
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame)
    table = Table(pl.DataFrame(frame), Schema(columns))
    for part in parts_of_groups(Mondrian(k=4, relaxed=True), table):
        values = {(frame["a"][row], frame["b"][row]) for row in part}
        assert len(part) >= 4
        assert len(part) < 8 or len(values) == 1


def test_widest_first_and_the_most_equal_cut():
    """Both keys span all at first, so that the first in the alphabet is cut, between 22 and 38."""
    frame = {"age": [20, 21, 22, 38, 39, 40], "stay": [1, 9, 1, 1, 9, 9]}
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame)
    shown = released(Mondrian(k=3), frame, columns)
    assert to_text(shown.frame["age"]).to_list() == ["[20;24]"] * 3 + ["[35;44]"] * 3
    shown = released(Mondrian(k=1), frame, columns)
    assert to_text(shown.frame["age"]).to_list() == ["20", "21", "22", "38", "39", "40"]


def test_a_hierarchy_is_cut_and_shown_by_its_labels():
    hierarchy = from_tree(TREE, name="tree")
    town = (Column("town", Kind.NOMINAL, Role.KEY, hierarchy="tree"),)
    frame = {"town": ["a", "b", "c", "c", "d", "e"]}
    shown = released(Mondrian(k=2), frame, town, resources={"tree": hierarchy})
    assert shown.frame["town"].to_list() == ["x", "x", "c", "c", "y", "y"]
    with pytest.raises(SfumatoError, match="hierarchy of `town`"):
        released(Mondrian(k=2), frame, town)


def test_grades_are_cut_in_their_order_though_they_are_nominal():
    rng = np.random.default_rng(8)
    grades = [f"G{step}" for step in (3, 5, 7, 9, 10, 11, 12, 13, 15)] + ["SES"]
    places = rng.choice(10, 400)
    frame = {"grade": [grades[place] for place in places], "age": rng.integers(20, 60, 400)}
    columns = (Column("grade", Kind.NOMINAL, Role.KEY), Column("age", Kind.CONTINUOUS, Role.KEY))
    shown = to_text(released(Mondrian(k=20), frame, columns).frame["grade"])
    for text in shown.unique():
        members = sorted(grades.index(member) for member in text.strip("{}").split("|"))
        assert members == list(range(members[0], members[-1] + 1))
    pay = places * 1000.0 + rng.normal(0, 300, 400)
    means = pl.DataFrame({"grade": shown, "pay": pay}).select(pl.col("pay").mean().over("grade"))["pay"]
    assert np.var(means.to_numpy()) / np.var(pay) > 0.7  # dealt out by frequency it is below 0.3


def test_words_and_numbers_without_an_order_are_dealt_out():
    """Two rare values beside a frequent one: in order nothing could be cut."""
    for values in (["b"] * 6 + ["a", "c"] * 2, [2] * 6 + [1, 3] * 2, ["v2"] * 6 + ["v1", "v3"] * 2):
        shown = released(Mondrian(k=4), {"x": values}, (Column("x", Kind.NOMINAL, Role.KEY),)).frame["x"]
        assert shown.n_unique() == 2


def zips(n, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    regions, codes = ["02139", "02140", "10001", "94110"], rng.integers(1000, 1999, n)
    values = [f"{regions[place]}-{code}" for place, code in zip(rng.choice(4, n), codes, strict=True)]
    return [None if hole else value for value, hole in zip(values, rng.random(n) < missing, strict=True)]


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("method", [Mondrian(k=6), SortedGeneralisation(k=6)])
def test_codes_are_shown_by_what_all_of_a_group_begin_with(method, missing):
    values = zips(300, 4, missing)
    ages = np.random.default_rng(5).integers(20, 60, 300)
    columns = (Column("zip", Kind.NOMINAL, Role.KEY), Column("age", Kind.CONTINUOUS, Role.KEY))
    table = Table(pl.DataFrame({"zip": values, "age": ages}), Schema(columns))
    lengths = [*map(len, ["02139-100", "02139-10", "02139-1", "0213", "021"]), 10]  # at which codes part
    groups, _ = method.group(canvas := Canvas(table, method.guarantee_for(table), Run(seed=1)))
    shown = canvas.show_groups(groups)
    texts = to_text(shown.frame["zip"], shown.nodes["zip"]).to_list()
    found = set()
    for start, end in zip(groups.starts[:-1], groups.starts[1:], strict=True):
        rows = groups.order[start:end]
        own = {values[row] for row in rows}
        common = [
            n for n in sorted(lengths, reverse=True) if None not in own and len({v[:n] for v in own}) == 1
        ]
        if None in own:
            expected = None if own == {None} else "*"
        elif common:
            expected = next(iter(own))[: common[0]].ljust(10, "*")
        else:
            expected = "{" + "|".join(sorted(own)) + "}"
        assert {texts[row] for row in rows} == {expected}
        found.add(str(expected)[:1])
    assert found - {"*", "N"} >= ({"0", "1", "9"} if isinstance(method, Mondrian) else {"{"})


def test_what_codes_begin_with_reads_back_as_what_it_stands_for():
    values = zips(200, 6)
    table = Table(pl.DataFrame({"zip": values}), Schema((Column("zip", Kind.NOMINAL, Role.KEY),)))
    shown = Mondrian(k=5).apply(table, Run(seed=1)).table
    nodes = shown.nodes["zip"]
    texts = to_text(shown.frame["zip"], nodes)
    column, read = parse_nodes(texts, known=known_of(table, "zip"))
    for value, label, back in zip(values, shown.frame["zip"], column, strict=True):
        own = set(nodes.members_of(nodes.labels.index_of(label)))
        assert value in own
        assert set(read.members_of(read.labels.index_of(back))) == own
        assert own == {other for other in values if other.startswith(label.rstrip("*"))}


@pytest.mark.parametrize("method", [Mondrian(k=6), Recoding(levels={"default": 2})])
def test_within_strata_a_beginning_stands_for_the_codes_of_all(method):
    """Each stratum has other codes, of which it knows; the same label must mean the same in all."""
    values, sexes = zips(300, 9), np.random.default_rng(9).choice(["f", "m"], 300)
    columns = (Column("zip", Kind.NOMINAL, Role.KEY), Column("sex", Kind.NOMINAL, Role.KEY))
    table = Table(pl.DataFrame({"zip": values, "sex": sexes}), Schema(columns))
    recipe = Recipe((Step(method, columns=("zip",), within=("sex",)),))
    shown = recipe.apply(table, Run(seed=1)).table
    nodes = shown.nodes["zip"]
    texts = to_text(shown.frame["zip"], nodes)
    assert texts.str.contains(r"^[0-9-]+\*+$").all()
    for value, text in zip(values, texts, strict=True):
        own = set(nodes.members_of(nodes.labels.index_of(text)))
        assert value.startswith(text.rstrip("*"))
        assert own == {other for other in values if other.startswith(text.rstrip("*"))}


def test_codes_of_which_the_table_holds_a_part_are_cut_as_much_as_other_keys():
    """All begin with 9: their share of all codes there can be says nothing of the table."""
    rng = np.random.default_rng(3)
    frame = {"zip": rng.integers(90000, 96000, 200), "age": rng.integers(20, 60, 200)}
    columns = (Column("zip", Kind.NOMINAL, Role.KEY), Column("age", Kind.CONTINUOUS, Role.KEY))
    release = Mondrian(k=10).apply(Table(pl.DataFrame(frame), Schema(columns)), Run(seed=1))
    assert to_text(release.table.frame["zip"]).n_unique() > 3
    assert "codes of `zip` are shown by the prefix that each group shares" in release.notes


def test_texts_with_numbers_have_a_natural_order():
    texts = pl.Series(["A10", "A2", "A2b", "SES", "a1", "007", "7"])
    assert natural_places(texts).tolist() == [4, 2, 3, 5, 6, 0, 1]
    assert natural_places(pl.Series(["x", "y1", "z"])) is None
    assert natural_places(pl.Series([3, 1])) is None
    assert natural_places(pl.Series([], dtype=pl.String)) is None
    assert natural_places(pl.Series(["9" * 5000, "8" * 5000])).tolist() == [1, 0]


def test_cuts_go_where_a_target_is_told():
    """By width the ages are cut in the middle; what tells the target apart lies at 50."""
    frame = {"age": list(range(20, 60)), "sex": ["f", "m"] * 20, "ill": [age > 50 for age in range(20, 60)]}
    columns = (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.OTHER),
    )
    plain = released(Mondrian(k=9), frame, columns)
    aware = released(Mondrian(k=9, target="ill"), frame, columns)
    ends = aware.frame["age"].struct.field("hi")
    assert {
        end <= 50 or low > 50 for low, end in zip(aware.frame["age"].struct.field("lo"), ends, strict=True)
    } == {True}
    assert (plain.frame["age"].struct.field("lo") <= 50).sum() > (
        plain.frame["age"].struct.field("hi") <= 50
    ).sum()


def test_a_target_is_told_by_sets_of_categories():
    towns = ["a", "b", "c", "d"] * 10
    frame = {"town": towns, "rich": [town in "ad" for town in towns], "age": [30] * 40}
    columns = (
        Column("town", Kind.NOMINAL, Role.KEY),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("rich", Kind.NOMINAL, Role.OTHER),
    )
    shown = released(Mondrian(k=20, target="rich"), frame, columns)
    assert set(shown.frame["town"]) == {"{a|d}", "{b|c}"}


@pytest.mark.parametrize("seed", range(8))
def test_the_cut_that_tells_most_equals_a_naive_search(seed):
    """Of 14 records with k = 5 only one cut can be made: the best of all places of all keys."""
    rng = np.random.default_rng(seed)
    frame = {"a": rng.integers(0, 6, 14), "b": rng.integers(0, 9, 14), "ill": rng.integers(0, 3, 14)}
    columns = (
        Column("a", Kind.CONTINUOUS, Role.KEY),
        Column("b", Kind.CONTINUOUS, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.OTHER),
    )

    def disorder(rows):
        counts = np.bincount(frame["ill"][rows])
        return sum(-count * np.log(count / len(rows)) for count in counts if count)

    def after(name, cut):
        left = np.flatnonzero(frame[name] < cut)
        right = np.flatnonzero(frame[name] >= cut)
        return disorder(left) + disorder(right) if min(len(left), len(right)) >= 5 else np.inf

    best = min(after(name, cut) for name in "ab" for cut in range(10))
    table = Table(pl.DataFrame(frame), Schema(columns), targets=("a", "b"))
    parts = parts_of_groups(Mondrian(k=5, target="ill"), table)
    assert len(parts) == 2
    assert sum(map(disorder, parts)) == pytest.approx(best, abs=1e-9)


def test_target_classes_are_tenths_of_numbers():
    columns = (Column("a", Kind.CONTINUOUS), Column("b", Kind.NOMINAL))
    frame = pl.DataFrame({"a": [None, *range(1, 101)], "b": [None, *["x", "y"] * 50]})
    table = Table(frame, Schema(columns))
    numbers = target_classes(table, "a")
    assert np.bincount(numbers).tolist() == [1, *[10] * 10]
    assert target_classes(table, "b").tolist() == [0, *[1, 2] * 50]


@pytest.mark.parametrize("target", ["age", "@key", "@weight"])
def test_a_target_is_one_column_outside_the_keys(target):
    with pytest.raises(RefusedError, match="`target` of mondrian must be one column"):
        released(Mondrian(k=1, target=target), {"age": [1, 2]}, (Column("age", Kind.CONTINUOUS, Role.KEY),))


def test_persons_are_counted_not_records():
    frame = {"age": [1, 1, 2, 2, 8, 8, 9, 9], "who": [1, 1, 1, 1, 2, 2, 3, 3]}
    columns = (Column("age", Kind.CONTINUOUS, Role.KEY), Column("who", Kind.NOMINAL, Role.PERSON))
    shown = released(Mondrian(k=2), frame, columns)
    assert to_text(shown.frame["age"]).to_list() == ["[1;9]"] * 8
    shown = released(Mondrian(k=1), frame, columns)
    assert to_text(shown.frame["age"]).to_list() == ["1", "1", "2", "2", "8", "8", "9", "9"]


def test_missing_keys_stay_among_themselves_if_they_are_enough():
    age = (Column("age", Kind.CONTINUOUS, Role.KEY),)
    frame = {"age": [1, 2, 9, 10, None, None]}
    shown = released(Mondrian(k=2), frame, age)
    assert to_text(shown.frame["age"]).to_list() == ["[0;3]", "[0;3]", "[8;11]", "[8;11]", None, None]
    covered = released(Mondrian(k=2, missing="worst"), frame, age)
    assert to_text(covered.frame["age"]).to_list() == ["[0;3]", "[0;3]", "[8;11]", "[8;11]", "*", "*"]


def test_one_missing_key_takes_the_lowest_along():
    age = (Column("age", Kind.CONTINUOUS, Role.KEY),)
    table = Table(pl.DataFrame({"age": [1, 2, 9, 10, None]}), Schema(age))
    release = Mondrian(k=2).apply(table, Run(seed=1))
    assert to_text(release.table.frame["age"]).to_list() == ["*", "[2;11]", "[2;11]", "[2;11]", "*"]
    assert release.notes == ("2 cells show the wildcard, as the key is missing for others in their group",)


def test_what_cannot_hold_is_an_error_and_no_release():
    age = (Column("age", Kind.CONTINUOUS, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE))
    frame = {"age": [1, 2, 3], "ill": ["a", "a", "b"]}
    with pytest.raises(UnreachableError, match="k-anonymity"):
        released(Mondrian(k=4), frame, age)
    with pytest.raises(UnreachableError, match="l-diversity"):
        released(Mondrian(k=1, also="l >= 3"), frame, age)
    with pytest.raises(ParameterError):
        Mondrian(k=0)


def test_a_second_time_is_refused():
    age = (Column("age", Kind.CONTINUOUS, Role.KEY),)
    once = released(Mondrian(k=1), {"age": [1, 2, 3]}, age)
    with pytest.raises(RefusedError, match="exact values, got: generalised ones in `age`"):
        Mondrian(k=2).apply(once, Run(seed=1))


def test_keys_are_coded_in_their_order():
    columns = (
        Column("d", Kind.CONTINUOUS),
        Column("o", Kind.ORDINAL, order=("lo", "mid", "hi")),
        Column("t", Kind.NOMINAL, hierarchy="tree"),
    )
    frame = pl.DataFrame({"d": [5.0, None, -1e308, 1e308], "o": ["hi", "lo", None, "hi"], "t": list("caed")})
    keys = coded_keys(Table(frame, Schema(columns)), {"t": from_tree(TREE, name="t")})
    assert keys.codes.tolist() == [[2, 3, 2], [0, 1, 1], [1, 0, 4], [3, 3, 3]]
    assert keys.places[keys.place_starts[0] :][:4].tolist() == [0.0, 0.0, 0.5, 1.0]
    assert keys.places[keys.place_starts[1] :][:4].tolist() == [0.0, 0.0, 0.5, 1.0]
    assert keys.n_levels.tolist() == [0, 0, 2]
    levels = keys.labels.reshape(2, 5)
    assert levels[0].tolist() == [0, 1, 2, 3, 4]
    assert levels[1, 1] != levels[1, 2] == levels[1, 3] == levels[1, 4]
    assert keys.widths.reshape(2, 5)[1].tolist() == [0.0, 0.25, 0.5, 0.5, 0.5]


def test_groups_keep_clusters_of_the_keys():
    """Two clouds of unequal size: the cut at the middle goes through the larger, one by cluster between them."""
    rng = np.random.default_rng(1)
    which = np.repeat([0, 1], (40, 80))
    points = rng.normal(size=(120, 2)) + 12 * which[:, None]
    frame = pl.DataFrame({"a": points[:, 0], "b": points[:, 1]})
    table = Table(frame, Schema((Column("a", Kind.CONTINUOUS), Column("b", Kind.CONTINUOUS))))
    assert len(set(zip(clusters_of(points, 2), which, strict=True))) == 2
    plain, kept = (Mondrian(k=35, clusters=n).apply(table, Run(seed=1)).table for n in (0, 2))
    mixed = [
        pl.DataFrame({"shown": to_text(each.frame["a"]), "cluster": which})
        .group_by("shown")
        .agg(pl.col("cluster").n_unique())["cluster"]
        .max()
        for each in (plain, kept)
    ]
    assert mixed == [2, 1]
    with pytest.raises(RefusedError, match="got: both"):
        Mondrian(target=["b"], clusters=2).apply(table.aimed_at(("a",)), Run(seed=1))


def test_clusters_of_equal_and_of_few_points():
    assert clusters_of(np.ones((4, 2)), 3).tolist() == [0, 0, 0, 0]
    assert len(set(clusters_of(np.arange(3.0)[:, None], 10))) == 3
    assert clusters_of(np.ones((1, 1)), 2).tolist() == [0]
