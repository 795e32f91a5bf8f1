"""What was lost by column: worked-out shares and sizes, and the words for them."""

import json
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.masking import Masking
from sfumato.methods.mondrian import Mondrian
from sfumato.study.column_changes import Loss, PublicSizes, Vanished, losses
from sfumato.study.column_sentences import ColumnSentence, sentences


def table_of(**columns):
    """A table whose columns are (kind, values)."""
    schema = Schema(tuple(Column(name, kind, Role.KEY) for name, (kind, _) in columns.items()))
    return Table(pl.DataFrame({name: values for name, (_, values) in columns.items()}), schema)


def owner_text(loss):
    return str(ColumnSentence(loss))


def public_text(loss):
    return str(ColumnSentence(loss, public=True))


def lost(original, **changed):
    frame = original.frame.with_columns(**{name: pl.Series(values) for name, values in changed.items()})
    release = replace(Release.unchanged(original), tables=Release.of(replace(original, frame=frame)).tables)
    return {loss.column: loss for loss in losses(original, release)}


def test_numbers_that_moved():
    original = table_of(pay=(Kind.CONTINUOUS, [10.0, 20.0, 30.0, None]), age=(Kind.CONTINUOUS, [1, 2, 3, 4]))
    found = lost(original, pay=[10.0, 24.0, 36.0, None])
    assert found["pay"].changed == pytest.approx(2 / 3)
    assert found["pay"].moved == pytest.approx(5)
    assert owner_text(found["pay"]) == (
        "67 % of pay changed, by 5 on average (28 % of its spread); its mean and total are 17 % higher"
    )
    assert found["age"].fate == "untouched"


def test_suppressed_values_are_counted_among_those_that_were_there():
    original = table_of(sex=(Kind.NOMINAL, ["f", "m", None, "f"]))
    found = lost(original, sex=[None, "m", None, "f"])["sex"]
    assert (found.suppressed, found.changed) == (pytest.approx(1 / 3), 0)
    assert owner_text(found) == "33 % of sex suppressed"


@pytest.mark.parametrize(
    ("days", "words"),
    [(1461, "4 years"), (92, "3 months"), (10, "10 days")],
)
def test_dates_in_their_own_unit(days, words):
    original = table_of(born=(Kind.DATE, [date(1900, 1, 1), date(1980, 1, 2)]))
    lows = pl.Series([date(1899, 12, 31), date(1979, 12, 31)])
    shown = intervals(lows, lows.dt.offset_by(f"{days}d"))
    found = lost(original, born=shown)["born"]
    assert found.width == days
    assert found.of == pytest.approx(0.9 * 29_220, abs=1)  # nine tenths of the eighty years
    assert owner_text(found).startswith(f"born given as ranges, typically {words} wide (")


def test_groups_of_categories_and_what_leaves():
    n = 40
    rng = np.random.default_rng(1)
    original = table_of(
        plz=(Kind.NOMINAL, rng.choice(list("abcdefgh"), n)), age=(Kind.CONTINUOUS, rng.integers(0, 90, n))
    )
    release = Mondrian(k=5).apply(original.aimed_at(("plz", "age")), Run(seed=1))
    found = {loss.column: loss for loss in losses(original, release)}
    nodes = release.table.nodes["plz"]
    sizes = dict(zip(nodes.labels, nodes.sizes, strict=True))
    coarse = [sizes[label] for label in release.table.frame["plz"].cast(pl.String) if sizes.get(label, 1) > 1]
    assert found["plz"].size == np.median(coarse)
    assert found["plz"].coarser == pytest.approx(len(coarse) / n, abs=1e-9)
    gone = replace(release, tables=Release.of(release.table.select(["age"])).tables)
    assert owner_text(losses(original, gone)[0]) == "plz left out"


def test_words_for_all_columns_together():
    said = sentences(
        [
            Loss("name", "identifier", "left out"),
            Loss("plz", "key", "changed", coarser=0.86, size=3.0, of=6.0),
            Loss("income", "sensitive", "untouched"),
            Loss("ill", "sensitive", "untouched"),
            Loss("home", "household", "renamed"),
        ]
    )
    assert said == [
        "86 % of plz given as groups, typically of 3 of its 6 values", "income and ill untouched", "home replaced by pseudonyms", "name left out",
    ]  # fmt: skip


def test_no_more_digits_than_may_be_published():
    said = Loss("pay", "key", "changed", changed=0.12345, moved=1234.5).to_dict()
    assert (said["changed"], said["moved"]) == (0.12, 1200.0)


# What may be public ----------------------------------------------------------------------------------------


def public(original, **changed):
    return {name: public_text(loss) for name, loss in lost(original, **changed).items()}


def test_the_mean_of_changes_is_public_only_where_it_hides_each():
    values = [float(i) for i in range(40)]
    original = table_of(pay=(Kind.CONTINUOUS, values))
    even = [value + 13 * (place < 20) for place, value in enumerate(values)]
    said = "about 50 % of pay changed, by about 10 on average; its mean is about 35 % higher"
    assert public(original, pay=even)["pay"] == said
    one = [value + (9000 if place == 5 else 13 * (place < 20)) for place, value in enumerate(values)]
    assert public(original, pay=one)["pay"] == "about 50 % of pay changed, typically by about 10"
    few = [value + 13 * (place < 9) for place, value in enumerate(values)]
    assert public(original, pay=few)["pay"] == "fewer than 10 values of pay changed"


def test_changes_of_fewer_than_ten_people_have_no_size():
    frame = pl.DataFrame({"who": [i // 4 for i in range(36)], "pay": [float(i) for i in range(36)]})
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), Column("pay", Kind.CONTINUOUS, Role.KEY)))
    original = Table(frame, schema)
    assert public(original, pay=[i + 5.0 for i in range(36)])["pay"] == "over 95 % of pay changed"


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.002, "under 5 %"), (0.0499, "under 5 %"), (0.05, "about 5 %"), (0.29, "about 30 %"),
     (0.94, "about 95 %"), (0.96, "over 95 %"), (1.0, "over 95 %")],
)  # fmt: skip
def test_public_shares_are_in_steps_of_five(share, words):
    loss = Loss("job", "key", "changed", changed=share, public_sizes=PublicSizes(changed_cells=50))
    assert public_text(loss) == f"{words} of job changed"


def test_the_width_of_a_range_with_an_open_end_is_not_public():
    """Ended where the original ends, it is the largest value less a known number."""
    original = table_of(pay=(Kind.CONTINUOUS, [1.0, 5.0, 20.0, 8_133_777.0]))
    shown = intervals(pl.Series([0.0, 10.0, 10.0, 10.0]), pl.Series([10.0, None, None, None]))
    found = lost(original, pay=shown)["pay"]
    assert found.width == pytest.approx(8_133_767.0)
    assert public_text(found) == "pay given as wide ranges"


def test_values_where_there_was_none_have_moved_nowhere():
    original = table_of(pay=(Kind.CONTINUOUS, [1.0, None, None]))
    found = lost(original, pay=[1.0, 2.0, 3.0])["pay"]
    assert found.moved is None
    assert owner_text(found) == "100 % of pay changed; its mean is 100 % higher, its total 500 % higher"


# What an analyst loses --------------------------------------------------------------------------------------


def relations(*counts):
    """A column of categories a, b, c …, so many records each."""
    return [name for name, count in zip("abcdefghi", counts, strict=False) for _ in range(count)]


def test_categories_that_vanish_are_counted_with_those_who_had_them():
    values = relations(60, 20, 12, 5, 3)
    original = table_of(relat=(Kind.NOMINAL, values))
    found = lost(original, relat=[each if each in "ab" else "a" for each in values])["relat"]
    assert (found.vanished.categories, found.vanished.of, found.vanished.share) == (3, 5, 0.2)
    assert owner_text(found) == "20 % of relat changed; 3 of its 5 categories are gone (20 % of the records)"
    said = found.to_dict()
    assert (said["vanished"], said["categories"], said["vanished_share"]) == (3, 5, 0.2)


def test_public_are_only_categories_that_ten_people_have():
    """Of e, which one person has, nothing is told: the sentence is the same as if nobody had it."""
    values = relations(60, 20, 12, 0, 1)
    shown = [each if each in "ab" else "a" for each in values]
    told = public(table_of(relat=(Kind.NOMINAL, values)), relat=shown)["relat"]
    without = values[:-1]
    assert told == public(table_of(relat=(Kind.NOMINAL, without)), relat=shown[:-1])["relat"]
    gone = "1 of the 3 categories that at least 10 people have is gone (about 15 % of the records)"
    gone += "; rarer ones may be gone, too"
    assert told == f"about 15 % of relat changed; {gone}"


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((60, 20, 1), ""),  # one person's
        ((60, 20, 5, 4), ""),  # nine people's
        ((60, 20, 5, 5), ""),  # who knows of four would know that both are had
        ((60, 20, 9, 9, 10), "; 1 of the 3 categories that at least 10 people have is gone (about 10 % of the records); rarer ones may be gone, too"),
    ],
)  # fmt: skip
def test_rare_categories_are_not_told_of(counts, words):
    values = relations(*counts)
    shown = [each if each in "ab" else "a" for each in values]
    shown[:20] = ["b"] * 20  # so that enough cells change
    told = public(table_of(relat=(Kind.NOMINAL, values)), relat=shown)["relat"]
    assert told.partition(" changed")[2] == words


def test_a_category_of_one_person_with_many_records_is_rare():
    values = relations(60, 20) + ["c"] * 40
    original = table_of(relat=(Kind.NOMINAL, values), who=(Kind.NOMINAL, [*map(str, range(80)), *["x"] * 40]))
    roles = (original.schema["relat"], replace(original.schema["who"], role=Role.PERSON))
    shown = [each if each in "ab" else "a" for each in values]
    found = lost(Table(original.frame, Schema(roles)), relat=shown)["relat"]
    assert found.vanished.share == pytest.approx(1 / 3)
    assert found.public_sizes.vanished is None
    assert public_text(found) == "about 35 % of relat changed"


def test_categories_vanish_with_records_that_are_dropped():
    values = relations(60, 20, 12)
    original = table_of(relat=(Kind.NOMINAL, values), age=(Kind.CONTINUOUS, list(range(92))))
    rows = np.arange(80)
    release = Release.of(original.take(rows), source_rows=rows)
    found = {loss.column: loss for loss in losses(original, release)}
    assert found["relat"].fate == "untouched"
    assert sentences(list(found.values())) == [
        "relat untouched; 1 of its 3 categories is gone (13 % of the records)", "age untouched",
    ]  # fmt: skip


def test_numbers_of_households_are_no_categories():
    original = table_of(home=(Kind.NOMINAL, list("aabbcc")))
    schema = Schema((replace(original.schema["home"], role=Role.HOUSEHOLD),))
    rows = np.arange(4)
    table = Table(original.frame, schema)
    assert losses(table, Release.of(table.take(rows), source_rows=rows))[0].vanished is None


def test_records_made_anew_tell_what_is_gone_and_how_means_moved():
    values = relations(60, 20, 12)
    original = table_of(relat=(Kind.NOMINAL, values), pay=(Kind.CONTINUOUS, [100.0] * 92))
    drawn = table_of(relat=(Kind.NOMINAL, ["a"] * 46), pay=(Kind.CONTINUOUS, [110.0] * 46))
    found = {loss.column: loss for loss in losses(original, Release.of(drawn))}
    assert (
        owner_text(found["relat"])
        == "relat replaced by synthetic values; 2 of its 3 categories are gone (35 % of the records)"
    )
    assert (
        owner_text(found["pay"])
        == "pay replaced by synthetic values; its mean is 10 % higher, its total 45 % lower"
    )
    assert public_text(found["pay"]) == "pay replaced by synthetic values"  # nobody's changes are known


def test_an_emptied_column_is_said_to_be():
    original = table_of(
        sex=(Kind.NOMINAL, ["f", "m", None]), age=(Kind.CONTINUOUS, [1.0, 2.0, 3.0]), pay=(Kind.CONTINUOUS, [1.0, 2.0, 3.0])
    )  # fmt: skip
    found = lost(
        original, sex=pl.Series([None] * 3, dtype=pl.String), age=pl.Series([None] * 3, dtype=pl.Float64)
    )
    assert found["sex"].fate == found["sex"].outcome == "emptied"
    assert owner_text(found["sex"]) == public_text(found["sex"]) == "sex fully suppressed"
    assert sentences(list(found.values())) == ["sex and age fully suppressed", "pay untouched"]
    assert not found["age"].hides_each  # of three people


def test_groups_are_held_against_all_values():
    n = 60
    rng = np.random.default_rng(1)
    original = table_of(
        plz=(Kind.NOMINAL, [chr(97 + i % 20) * 3 for i in range(n)]),
        age=(Kind.CONTINUOUS, rng.integers(0, 90, n)),
    )
    release = Mondrian(k=30).apply(original.aimed_at(("plz", "age")), Run(seed=1))
    found = losses(original, release)[0]
    assert found.of == 20
    assert (
        owner_text(found)
        == "100 % of plz given as groups, typically of 18 of its 20 values: hardly any detail left"
    )
    said = "over 95 % of plz given as groups, typically of about 90 % of its values: hardly any detail left"
    assert public_text(found) == said  # how many rare ones there are is not told


def grouped(original, *groups):
    """The losses of a release of the first column in these groups of its values, each a text of letters."""
    name, leaves = original.names[0], sorted("".join(groups))
    labels = ["{" + "|".join(each) + "}" for each in groups]
    pairs = [(place, leaves.index(leaf)) for place, each in enumerate(groups) for leaf in each]
    nodes = Nodes.of_pairs(
        pl.Series("leaves", leaves), pl.Series("labels", labels),
        *(np.array(each, dtype=np.int32) for each in zip(*pairs, strict=True)),
    )  # fmt: skip
    owner = {leaf: label for label, each in zip(labels, groups, strict=True) for leaf in each}
    shown = pl.Series(name, [owner[each] for each in original.frame[name]]).cast(nodes.dtype)
    tables = Release.of(original.with_nodes(name, shown, nodes)).tables
    return losses(original, replace(Release.unchanged(original), tables=tables))[0]


def test_a_group_of_everything_leaves_nothing():
    found = grouped(table_of(town=(Kind.NOMINAL, list("abcd") * 10)), "abcd")
    assert (
        owner_text(found) == "100 % of town given as groups, typically of 4 of its 4 values: no detail left"
    )


def test_rare_values_of_groups_are_not_counted_in_public():
    """With or without e, which one person has, the public sentence is the same."""
    values = list("abcd") * 20
    without = public_text(grouped(table_of(town=(Kind.NOMINAL, values)), "ab", "cd"))
    found = grouped(table_of(town=(Kind.NOMINAL, [*values, "e"])), "abe", "cd")
    assert owner_text(found) == "100 % of town given as groups, typically of 3 of its 5 values"
    assert (
        public_text(found) == without == "over 95 % of town given as groups, typically of 2 of its 4 values"
    )


@pytest.mark.parametrize(
    ("groups", "words"), [(("ab", "cd"), ", each of neighbours"), (("ac", "bd"), ", not all of neighbours")]
)
def test_groups_of_an_ordered_column_keep_its_order_or_not(groups, words):
    schema = Schema((Column("grade", Kind.ORDINAL, Role.KEY, order=("d", "c", "b", "a")),))
    found = grouped(Table(pl.DataFrame({"grade": list("abcd") * 10}), schema), *groups)
    assert owner_text(found) == f"100 % of grade given as groups, typically of 2 of its 4 values{words}"
    assert found.vanished is None
    assert public_text(found) == f"over 95 % of grade given as groups, typically of 2 of its 4 values{words}"


def test_ranges_are_held_against_where_nine_of_ten_values_lie():
    values = [float(i) for i in range(401)] + [1e9]
    original = table_of(pay=(Kind.CONTINUOUS, values))
    lows = pl.Series(values) // 40 * 40
    found = lost(original, pay=intervals(lows, lows + 40))["pay"]
    assert found.of == pytest.approx(361, abs=1)
    assert owner_text(found).startswith("pay given as ranges, typically 40 wide (11 % of its spread)")
    assert public_text(found) == "pay given as ranges, typically 40 wide (about 10 % of its spread)"
    few = table_of(pay=(Kind.CONTINUOUS, values[:150]))  # seven people are beyond each end
    lows = pl.Series(values[:150]) // 40 * 40
    assert (
        public_text(lost(few, pay=intervals(lows, lows + 40))["pay"])
        == "pay given as ranges, typically 40 wide"
    )


def test_a_total_that_falls_by_what_is_suppressed_is_not_told():
    original = table_of(pay=(Kind.CONTINUOUS, [10.0, 10.0, 40.0, 20.0]))
    found = lost(original, pay=[10.0, 10.0, None, 20.0])["pay"]
    assert found.total_change == pytest.approx(-0.5)
    assert owner_text(found) == "25 % of pay suppressed; its mean is 33 % lower"
    assert public_text(lost(original, pay=[10.0, None, None, None])["pay"]) == "about 75 % of pay suppressed"


def test_the_change_of_a_mean_is_not_public_where_one_person_makes_it():
    values = [100.0 + i for i in range(60)]
    original = table_of(pay=(Kind.CONTINUOUS, values))
    down = [value + (10 if place else -500) for place, value in enumerate(values)]  # the only one downwards
    found = lost(original, pay=down)["pay"]
    assert found.public_sizes.is_mean
    assert found.mean_change is not None
    assert found.public_sizes.mean_change is None
    gone = [value + 20 if place else None for place, value in enumerate(values)]  # or is suppressed
    assert lost(original, pay=gone)["pay"].public_sizes.mean_change is None


def test_sets_of_items_that_stayed_missing_have_not_changed():
    original = table_of(has=(Kind.SET, [["a"], None, ["b", "c"]]))
    assert losses(original, Release.unchanged(original))[0].fate == "untouched"
    found = lost(original, has=[None, None, ["b"]])["has"]
    assert (found.suppressed, found.changed) == (0.5, 0.5)
    assert lost(original, has=pl.Series([None] * 3, dtype=pl.List(pl.String)))["has"].fate == "emptied"


@given(
    st.lists(st.sampled_from([*"abcdef", None]), min_size=1, max_size=60),
    st.sampled_from(["a", "b", None]),
    st.integers(1, 4),
)
def test_what_vanished_is_what_a_plain_loop_finds(values, other, keep):
    """By sets of Python: what was there and is there no more, with the people who had it."""
    original = table_of(x=(Kind.NOMINAL, pl.Series(values, dtype=pl.String)))
    shown = [value if place % keep == 0 else other for place, value in enumerate(values)]
    found = lost(original, x=pl.Series(shown, dtype=pl.String))["x"]
    there = [value for value in values if value is not None]
    gone = set(there) - set(shown)
    if found.fate == "emptied":
        assert not set(shown) - {None}
    elif gone:
        share = sum(value in gone for value in there) / len(there)
        assert found.vanished == Vanished(len(gone), len(set(there)), pytest.approx(share))
    else:
        assert found.vanished is None
    many = {value for value in gone if there.count(value) >= 10}
    told = found.public_sizes.vanished
    assert (told.categories if told else 0) == (len(many) if found.fate != "emptied" else 0)
    assert not any(f" {value} " in public_text(found) for value in "abcdef")


NUMBERS = st.one_of(
    st.none(), st.sampled_from([0.0, 1.0, -1e200, 1e200, 5e-324]), st.integers(-5, 5).map(float)
)


@given(
    st.lists(
        st.tuples(NUMBERS, NUMBERS, st.sampled_from([None, "a", "b"]), st.sampled_from([None, "a", "c"])),
        min_size=1,
        max_size=30,
    )
)
def test_every_loss_has_words_and_shares_whatever_the_cells(cells):
    """One record, constants, ties, missing values, the largest and smallest numbers there are."""
    x, y, u, v = zip(*cells, strict=True)
    numbers, texts = pl.Float64, pl.String
    original = table_of(
        x=(Kind.CONTINUOUS, pl.Series(x, dtype=numbers)), u=(Kind.NOMINAL, pl.Series(u, dtype=texts))
    )
    for loss in lost(original, x=pl.Series(y, dtype=numbers), u=pl.Series(v, dtype=texts)).values():
        assert all(0 < each <= 1 for each in (*loss.shares.values(), *loss.spans.values()))
        assert loss.column in owner_text(loss)
        assert loss.column in public_text(loss)
        for word in (owner_text(loss), public_text(loss)):
            assert "nan" not in word
            assert "inf" not in word
        json.dumps(loss.to_dict(), allow_nan=False)


def test_groups_of_codes_are_counted_by_those_that_occur():
    """`0106*` stands for ten codes, of which the file has two; a reader may know that only from elsewhere."""
    codes = ["01067", "01069", "01097", "01099", "04103", "04105"]
    original = table_of(plz=(Kind.NOMINAL, codes * 20))
    release = Masking(keep=4).apply(original, Run(seed=1))
    found = losses(original, release)[0]
    assert (found.size, found.of) == (2, 6)
    assert owner_text(found) == "100 % of plz given as groups, typically of 2 of its 6 values"
    assert " possible values" in public_text(found)
