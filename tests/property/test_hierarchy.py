"""Laws of hierarchies, against brute force on random trees."""

import tempfile
from fractions import Fraction
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from brute import covers
from effort import examples
from sfumato.data.generalised.text_forms import looks_generalised, parse_intervals, parse_nodes, to_text
from sfumato.data.hierarchy.build import from_cuts, from_intervals, from_prefix
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.io.hierarchies import read_hierarchy, write_hierarchy

modest = examples(40)

# A byte order mark and a zero byte are no text, and `*` is the wildcard's name.
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\0")
texts = st.one_of(st.text(alphabet='ab;,"|\t \n*-1', max_size=4), st.text(alphabet=letters, max_size=4))
leaf_texts = texts.filter(lambda text: text != "*")
label_texts = texts.filter(bool)


@st.composite
def hierarchies(draw):
    """Each label of a level is given one parent, so that the levels nest."""
    leaves = draw(st.lists(leaf_texts, min_size=1, max_size=8, unique=True))
    levels = [leaves]
    for _ in range(draw(st.integers(0, 3))):
        labels = draw(st.lists(label_texts, min_size=1, max_size=4, unique=True))
        parent = {label: draw(st.sampled_from(labels)) for label in sorted(set(levels[-1]))} | {"*": "*"}
        levels.append([parent[label] for label in levels[-1]])
    table = {str(i): level for i, level in enumerate([*levels, ["*"] * len(leaves)])}
    return Hierarchy.from_levels(pl.DataFrame(table, schema=dict.fromkeys(table, pl.String)), name="random")


@given(hierarchies())
@modest
def test_a_hierarchy_survives_its_file(hierarchy):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.csv"
        write_hierarchy(hierarchy, path)
        assert read_hierarchy(path, separator=";") == hierarchy


@given(hierarchies(), st.data())
@modest
def test_values_climb_as_a_dictionary_says(hierarchy, data):
    leaves = hierarchy.levels["0"].to_list()
    values = data.draw(st.lists(st.one_of(st.none(), st.sampled_from(leaves)), max_size=12))
    column = pl.Series("x", values, dtype=pl.String)
    for level in range(hierarchy.height):
        climbed = hierarchy.climb(column, level)
        shown = dict(zip(leaves, hierarchy.levels[str(level)], strict=True))
        for value, label in zip(values, climbed, strict=True):
            plain = None if value is None else shown[value]
            assert label == plain or label.rstrip("'") == f"{plain} (level {level})"
        codes = hierarchy.codes(column, level)
        assert [
            None if code < 0 else hierarchy.labels(level)[int(code)] for code in codes
        ] == climbed.to_list()


@given(hierarchies())
@modest
def test_nodes_are_the_rows_under_each_label(hierarchy):
    nodes = hierarchy.nodes()
    leaves = hierarchy.levels["0"]
    under = {}
    for level in range(hierarchy.height):
        for leaf, label in zip(leaves, hierarchy.climb(leaves, level), strict=True):
            under.setdefault((level, label), set()).add(leaf)
    members = {label: set(nodes.members_of(code)) for code, label in enumerate(nodes.labels)}
    # One entry per label serves all levels: wherever it stands, it stands for the same leaves.
    assert all(members[label] == group or label == "*" for (_, label), group in under.items())
    assert members["*"] == set(leaves)
    assert members.keys() == {label for _, label in under} | {"*"}


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=3, max_size=3), min_size=1, max_size=6))
@modest
def test_faults_are_those_that_brute_force_finds(rows):
    faults = Hierarchy("x", pl.DataFrame(rows, schema=["0", "1", "2"], orient="row")).check()
    leaves = [row[0] for row in rows]
    assert any("on more than one row" in fault for fault in faults) == (len(set(leaves)) < len(leaves))
    for level in (0, 1):
        parents = {}
        for row in rows:
            parents.setdefault(row[level], set()).add(row[level + 1])
        n_split = sum(len(group) > 1 for group in parents.values())
        found = [fault for fault in faults if f"of level {level} with several parents" in fault]
        assert [int(fault.split()[0]) for fault in found] == ([n_split] if n_split else [])
    n_roots = len({row[2] for row in rows})
    assert any("roots instead of one" in fault for fault in faults) == (n_roots > 1)


numbers = st.one_of(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=10),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=10),
    st.lists(st.decimals(-1000, 1000, places=2).map(float), min_size=1, max_size=10),
)


@given(
    numbers, st.sampled_from([1, 5, 0.1, 0.25]), st.lists(st.integers(1, 4), max_size=2), st.integers(-3, 3)
)
@modest
def test_intervals_cover_their_values_and_nest(values, width, factors, origin):
    widths = [width]
    for factor in factors:
        widths.append(float(Fraction(str(widths[-1])) * factor))
    column = pl.Series("x", values)
    hierarchy = from_intervals(column, widths=widths, origin=origin)
    assert hierarchy.check(column) == []
    assert hierarchy.height == len(widths) + 2
    for level in range(hierarchy.height):
        labels = hierarchy.levels[str(level)]
        assert covers(parse_intervals(labels, pl.Float64), hierarchy.levels["0"].cast(pl.Float64)).all()


@given(numbers, st.sets(st.integers(-100, 100), min_size=2, max_size=6), st.data())
@modest
def test_cuts_part_the_values_as_comparison_does(values, cuts, data):
    ordered = sorted(cuts)
    kept = sorted(data.draw(st.sets(st.sampled_from(ordered), min_size=1)))
    hierarchy = from_cuts(pl.Series("x", values), cuts=[ordered, kept])
    for level, level_cuts in enumerate([ordered, kept], start=1):
        climbed = hierarchy.climb(pl.Series("x", values), level)
        places = [sum(cut <= value for cut in level_cuts) for value in values]
        # Two values share a label if and only if the same number of cuts lies at or below them.
        assert len(set(zip(places, climbed, strict=True))) == len(set(places)) == climbed.n_unique()


@given(st.lists(st.text(alphabet="0123", min_size=1, max_size=6), min_size=1, max_size=12))
@modest
def test_prefixes_keep_the_beginning_and_the_length_if_all_have_one(codes):
    hierarchy, alike = from_prefix(codes, lengths=[4, 2, 1]), len(set(map(len, codes))) == 1
    for leaf, *labels, _ in hierarchy.levels.iter_rows():
        for label, length in zip(labels, (4, 2, 1), strict=True):
            assert len(label) == (len(leaf) if alike else min(len(leaf), length) + (len(leaf) >= length))
            assert label.rstrip("*") == leaf[:length]


CODE = st.text(alphabet="0123456789", min_size=3, max_size=3)


@given(st.lists(CODE, min_size=1, max_size=8), st.lists(CODE, min_size=1, max_size=8), st.data())
@modest
def test_a_beginning_covers_every_code_that_begins_so_whoever_has_it(codes, others, data):
    nodes = from_prefix(codes, lengths=[2, 1]).nodes()
    assert nodes == from_prefix(others, lengths=[2, 1]).nodes()
    forms = [f"{code[:kept]}{'*' * (3 - kept)}" if kept else "*" for code in codes for kept in range(4)]
    shown = data.draw(st.lists(st.sampled_from(forms), min_size=1, max_size=6))
    column = pl.Series("zip", shown, dtype=nodes.dtype)
    text = to_text(column, nodes)
    assert text.to_list() == shown
    if looks_generalised(text) == "node":
        again, table = parse_nodes(text)
        for form, code in zip(shown, table.codes(again), strict=True):
            expected = [f"{i:03}" for i in range(1000) if f"{i:03}".startswith(form.rstrip("*"))]
            if form != "*":
                assert table.members_of(code).to_list() == expected
