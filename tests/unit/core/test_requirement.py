"""Requirements: read as people write them, met by nothing but a certain number, and said without loss."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import registry
from sfumato.core.group_measure import GroupMeasure, Groups
from sfumato.core.measure import Score, Status
from sfumato.core.requirement import Requirement, parse_measure, parse_method, parse_settings, why_unjudged
from sfumato.errors import ParameterError, PlanError, SfumatoError, UnknownNameError
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.mondrian import Mondrian
from sfumato.risk.linkage import DistanceLinkage
from sfumato.risk.ranks import RankLinkage
from sfumato.utility.transport import EarthMoversDistance

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SIGNS = st.sampled_from(["<", "<=", ">", ">="])


# ------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("text", "sign", "level"),
    [
        ("rank-linkage >= 0.45", ">=", 0.45),
        ("rank-linkage>=0.45", ">=", 0.45),
        ("  dbrl   <   5 ", "<", 5.0),
        ("rank-linkage > -1.5e-3", ">", -0.0015),
        ("dbrl <= +2", "<=", 2.0),
        ("rank-linkage()>1", ">", 1.0),
        ("dbrl <= .5", "<=", 0.5),
        ("rank-linkage\t>=\n1", ">=", 1.0),
    ],
)
def test_forms(text, sign, level):
    measure = RankLinkage() if "rank" in text else DistanceLinkage()
    assert Requirement.parse(text) == Requirement(measure, sign, level)


@pytest.mark.parametrize(
    "text",
    [
        "rank-linkage(floor=2) >= 1", "rank-linkage( floor = 2 )>=1", "rank-linkage (floor=2.0) >= 1",
        "rank-linkage(floor=2,) >= 1", "rank-linkage(floor=2e0) >= 1",
    ],
)  # fmt: skip
def test_settings(text):
    assert Requirement.parse(text).measure == RankLinkage(floor=2.0)


def test_several_settings_of_declared_types():
    made = Requirement.parse("earth-movers-distance(records=500, draws=3) <= 0.1").measure
    assert made == EarthMoversDistance(records=500, draws=3)
    assert type(made.records) is int


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "rank-linkage", "rank-linkage >=", ">= 0.45", "rank-linkage 0.45", "rank-linkage = 0.45",
        "rank-linkage == 0.45", "rank-linkage != 0.45", "rank-linkage => 0.45", "rank-linkage >= 0,45",
        "rank-linkage >= five", "rank-linkage >= 0.45 0.5", "rank-linkage >= 0.45 and mdav > 1", "0.45 <= rank-linkage",
        "rank linkage >= 0.45", "rank-linkage >= 5%", "rank-linkage >= nan", "dbrl <= inf", "rank-linkage >= -inf",
        "rank-linkage >= 1e999", "rank-linkage(floor=0.5 >= 1", "rank-linkage floor=0.5) >= 1", "rank-linkage >=> 1",
        "rank-linkage >= 0.45;", "rank-linkage >= ", None, 5, 0.45, True, ["rank-linkage >= 1"], {},
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_the_form(text):
    """Above all a level that every release meets (≤ ∞) or none can (NaN)."""
    with pytest.raises(PlanError) as caught:
        Requirement.parse(text)
    assert caught.value.message == f"`{text}` is not a requirement: a measure, a comparison and a number"
    assert caught.value.hint == "write it like `rank-linkage >= 0.45`"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "meant"),
    [("k => 3", "k >= 3"), ("dbrl = 0.1", "dbrl <= 0.1"), ("nothing = 1", "rank-linkage >= 0.45")],
)
def test_a_wrong_sign_is_corrected_for_the_measure_that_was_written(text, meant):
    with pytest.raises(PlanError) as caught:
        Requirement.parse(text)
    assert caught.value.hint == f"write it like `{meant}`"


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("rank-linkge >= 1", UnknownNameError, "there is no measure `rank-linkge`"),
        ("mdav >= 1", UnknownNameError, "there is no measure `mdav`"),
        ("rank-linkage(flor=1) >= 1", UnknownNameError, "there is no parameter of rank-linkage `flor`"),
        (
            "rank-linkage(floor) >= 1",
            PlanError,
            "`floor` is not a setting of rank-linkage: write name=value",
        ),
        ("rank-linkage(floor=) >= 1", PlanError, "`floor=` is not a setting of rank-linkage"),
        ("rank-linkage(=1) >= 1", UnknownNameError, "there is no parameter of rank-linkage ``"),
        ("rank-linkage(floor=1, floor=2) >= 1", PlanError, "`floor` of rank-linkage is given twice"),
        ("rank-linkage(floor=0) >= 1", ParameterError, "`floor` of rank-linkage must be a number above 0"),
        ("rank-linkage(floor=low) >= 1", ParameterError, "got: `low`"),
        ("rank-linkage(floor=nan) >= 1", ParameterError, "`floor` of rank-linkage must be a number above 0"),
        ("earth-movers-distance(records=2.5) >= 1", ParameterError, "must be a whole number"),
    ],
)
def test_a_wrong_measure_or_setting_says_which(text, error, words):
    with pytest.raises(error) as caught:
        Requirement.parse(text)
    assert words in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "rank-linkage(floor=0.5",
        "rank-linkage(floor=0.5))",
        "rank-linkage()x",
        "rank-linkage(floor=0.5)(floor=1)",
        "rank-linkage(",
    ],
)
def test_brackets_that_do_not_match(text):
    with pytest.raises(PlanError, match="is not written like a measure"):
        parse_measure(text)


def test_measures_by_name():
    assert parse_measure(" rank-linkage ") == RankLinkage()
    assert parse_measure("rank-linkage(floor=3)") == RankLinkage(floor=3)
    with pytest.raises(UnknownNameError, match="there is no measure ``"):
        parse_measure("")


def test_settings_of_choices_and_numbers():
    assert parse_settings("k=7, scale=range", Mdav) == {"k": 7.0, "scale": "range"}
    assert parse_settings("", Mdav) == {}
    assert Mdav.from_dict(parse_settings("k=7", Mdav)) == Mdav(k=7)


def test_a_method_is_read_with_its_settings():
    assert parse_method(" mdav ") == Mdav()
    assert parse_method("mdav(k=7)") == Mdav(k=7)
    assert parse_method("mondrian(k=1, also=l >= 3 and t <= 0.2)") == Mondrian(
        k=1, also=("l >= 3", "t <= 0.2")
    )
    with pytest.raises(ParameterError, match="is not written like a method"):
        parse_method("mdav(k=7")


def test_a_measure_may_be_asked_in_every_group():
    asked = GroupMeasure(inner=DistanceLinkage(), groups=Groups(("region",), 200))
    assert parse_measure("dbrl in every region of 200") == asked
    assert Requirement.parse("dbrl <= 0.1 in every region of 200") == Requirement(asked, "<=", 0.1)


# -------------------------------------------------------------------------------------- classes and records


@pytest.mark.parametrize(
    ("text", "persons"),
    [
        ("k >= 5", 5), ("k > 5", 6), ("k >= 1", 1), ("prosecutor-risk <= 0.2", 5), ("prosecutor-risk < 0.2", 6),
        ("k >= 1099511627775", 2**40 - 1), ("k >= 1099511627776", None), ("prosecutor-risk < 0", None),
        ("l >= 3", None), ("dbrl <= 0.1", None), ("uniqueness <= 0.1", None),
    ],
)  # fmt: skip
def test_how_many_must_be_alike(text, persons):
    """No more than 2^40: beyond, nothing is enough."""
    assert Requirement.parse(text).required_class_size == persons


def test_an_undefined_value_of_a_record_fails():
    values = np.array([0.44, 0.45, 0.46, math.nan])
    assert requirement(">=").failing(values).tolist() == [True, False, False, True]
    assert requirement(">").failing(values).tolist() == [True, True, False, True]
    assert requirement("<=").failing(values).tolist() == [False, False, True, True]
    assert requirement("<").failing(values).tolist() == [False, True, True, True]


# ------------------------------------------------------------------------------------------------- verdict


def requirement(sign=">=", level=0.45):
    return Requirement(RankLinkage(), sign, level)


@pytest.mark.parametrize(
    ("sign", "value", "met"),
    [
        (">=", 0.45, True), (">=", 0.46, True), (">=", math.nextafter(0.45, 0), False),
        (">", 0.45, False), (">", math.nextafter(0.45, 1), True),
        ("<=", 0.45, True), ("<=", math.nextafter(0.45, 1), False), ("<", 0.45, False), ("<", 0.44, True),
    ],
)  # fmt: skip
def test_comparisons_are_exact(sign, value, met):
    assert requirement(sign).met_by(Score(value)) is met


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("status", [Status.APPROXIMATE, Status.NOT_ESTIMABLE, Status.REFUSED])
@given(value=st.floats())
def test_only_a_certain_score_passes(sign, status, value):
    """A gate never opens on an estimate, a refusal or NaN, however good the number looks."""
    made = requirement(sign, 0.0)
    assert not made.met_by(Score(value, status=status))
    assert made.verdict(Score(value, status=status)).startswith("not met: ")


@given(low=st.floats(-2, 2), width=st.floats(0, 2), sign=st.sampled_from(["<", "<=", ">", ">="]))
def test_an_estimate_passes_if_all_of_a_proved_interval_does(low, width, sign):
    made = requirement(sign, 0.0)
    estimate = Score(low + width / 2, status=Status.APPROXIMATE, interval=(low, low + width))
    assert not made.met_by(estimate)
    ends_meet = all(made.met_by(Score(end)) for end in estimate.interval)
    assert made.met_by(replace(estimate, interval_is_proved=True)) == ends_meet


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_nan_passes_nothing(sign):
    assert not requirement(sign).met_by(Score(math.nan))
    assert not requirement(sign).met_by(Score.refused("why"))
    assert not requirement(sign).met_by(Score.not_estimable("why"))


def test_verdicts_in_words():
    assert requirement().verdict(Score(0.5)) == "met: rank-linkage is 0.5"
    assert requirement().verdict(Score(0.25)) == "not met: rank-linkage is 0.25, must be >= 0.45"
    assert requirement().verdict(Score.refused("no column")) == "not met: rank-linkage is refused (no column)"
    estimate = Score(0.9, status=Status.APPROXIMATE)
    assert requirement().verdict(estimate) == "not met: rank-linkage is approximate"
    proved = replace(estimate, interval=(0.4, 0.95), interval_is_proved=True)
    assert requirement().verdict(proved) == "not met: rank-linkage may be 0.4, must be >= 0.45"
    assert requirement(level=0.3).verdict(proved) == "met: rank-linkage may be 0.4"


def test_verdicts_say_what_weakens_them():
    """A requirement that nobody can miss, and why a number is what it is; of an estimate its end says enough."""
    assert requirement(level=-5).verdict(Score(0.5)) == "met: rank-linkage is 0.5, as for every release"
    said = "not met: rank-linkage is 0.25, must be >= 0.45 (few records)"
    assert requirement().verdict(Score(0.25, reason="few records")) == said
    proved = Score(0.9, Status.APPROXIMATE, (0.4, 0.95), interval_is_proved=True, reason="a sample")
    assert requirement().verdict(proved) == "not met: rank-linkage may be 0.4, must be >= 0.45"


@pytest.mark.parametrize(
    ("value", "said"),
    [(9999.4, "9999"), (9999.5, "10000"), (10000, "10000"), (-10000, "-10000"), (123456.7, "123457"), (12.3456, "12.35")],
)  # fmt: skip
def test_digits_before_the_point_are_all_said(value, said):
    assert (
        requirement(level=1e9).verdict(Score(value)) == f"not met: rank-linkage is {said}, must be >= 1e+09"
    )


def test_a_near_miss_does_not_look_like_a_hit():
    """ "is 0.45, must be >= 0.45" would leave everyone at a loss."""
    verdict = requirement().verdict(Score(0.44999999))
    assert verdict == "not met: rank-linkage is 0.44999999, must be >= 0.45"


@given(value=FINITE, level=FINITE, sign=SIGNS)
def test_the_verdict_agrees_with_the_judgement(value, level, sign):
    made = requirement(sign, level)
    assert made.verdict(Score(value)).startswith("met" if made.met_by(Score(value)) else "not met")


# ------------------------------------------------------------------------------------------------ estimates

ESTIMATES = st.builds(
    Score,
    st.floats(0, 1),
    status=st.sampled_from(Status),
    interval=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
    interval_is_proved=st.booleans(),
    bound=st.none() | st.floats(0, 1),
    confidence=st.none() | st.floats(50, 99.9),
)


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("individual-risk <= 0.05 at 95%", 95),
        ("individual-risk(fraction=0.1)<=0.05 at 99.9 %", 99.9),
        ("individual-risk(confidence=80) < 5e-2  at  90%", 90),
    ],
)
def test_an_estimate_is_asked_for_with_its_confidence(text, confidence):
    made = Requirement.parse(text)
    assert made.confidence == made.measure.confidence == confidence
    assert str(made).endswith(f"0.05 at {confidence:g}%")
    assert Requirement.parse(str(made)) == made


def test_the_confidence_is_said_once():
    """Behind the level where it is asked for, else as a setting of the measure, unless it is as usual."""
    asked = Requirement.parse("individual-risk <= 0.05 at 90%")
    assert str(asked) == "individual-risk(missing=category, threshold=0.05) <= 0.05 at 90%"
    assert asked.short == "individual-risk <= 0.05 at 90%"
    estimate = Score(0.01, Status.APPROXIMATE, (0.001, 0.04), confidence=90)
    assert asked.verdict(estimate) == "met: individual-risk may be 0.04 (estimated at 90%)"
    assert Requirement.parse("individual-risk(confidence=80) <= 0.05").short.startswith(
        "individual-risk(confidence=80"
    )
    assert Requirement(RankLinkage(floor=2), ">=", 1, 95).short == "rank-linkage(floor=2.0) >= 1 at 95%"


def test_what_is_proved_is_no_estimate():
    asked = Requirement.parse("individual-risk <= 0.05 at 90%")
    estimate = Score(0.01, Status.APPROXIMATE, (0.001, 0.04), confidence=90)
    assert asked.is_estimated(estimate)
    assert not asked.is_estimated(replace(estimate, interval_is_proved=True))
    assert not asked.is_estimated(replace(estimate, bound=0.02))


def test_in_words_settings_are_left_out():
    assert Requirement.parse("k >= 3 in every region").in_words == "k-anonymity at least 3 in every region"
    assert (
        Requirement.parse("dbrl(metric=manhattan) < 0.1").in_words
        == "Distance-based record linkage below 0.1"
    )


@given(level=FINITE, confidence=st.floats(50, 100, exclude_max=True))
def test_the_confidence_survives(level, confidence):
    made = Requirement.parse(f"individual-risk <= {level!r} at {confidence!r}%")
    assert made.confidence == made.measure.confidence == confidence
    assert Requirement.parse(str(made)) == made


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("dbrl <= 0.05 at 95%", PlanError, "dbrl is not an estimate with an interval"),
        ("individual-risk <= 0.05 at 100%", ParameterError, "`confidence` of individual-risk must be"),
        ("individual-risk <= 0.05 at 5%", ParameterError, "`confidence` of individual-risk must be"),
        ("individual-risk <= 0.05 at nan%", PlanError, "is not a requirement"),
        ("individual-risk <= 0.05 at most%", PlanError, "is not a requirement"),
        ("individual-risk <= 0.05 at 95", PlanError, "is not a requirement"),
        ("individual-risk <= 0.05 95%", PlanError, "is not a requirement"),
        ("individual-risk <= 0.05at 95%", PlanError, "is not a requirement"),
    ],
)
def test_a_confidence_that_cannot_be_had(text, error, words):
    with pytest.raises(error) as caught:
        Requirement.parse(text)
    assert words in caught.value.message


def test_the_far_end_of_an_estimate_counts():
    made = Requirement.parse("individual-risk <= 0.05 at 95%")
    estimate = Score(0.01, Status.APPROXIMATE, (0.001, 0.04), confidence=95)
    assert made.verdict(estimate) == "met: individual-risk may be 0.04 (estimated at 95%)"
    far = replace(estimate, interval=(0.001, 0.06))
    assert made.verdict(far) == "not met: individual-risk may be 0.06 (estimated at 95%), must be <= 0.05"
    assert made.met_by(replace(estimate, confidence=99))
    for less in (replace(estimate, confidence=90), replace(estimate, confidence=None)):
        assert made.verdict(less) == "not met: individual-risk is approximate"
    assert made.verdict(Score(0.05)) == "met: individual-risk is 0.05"
    without = Requirement.parse("individual-risk <= 0.05")
    assert not without.met_by(estimate)
    said = "not met: individual-risk is approximate (if an estimate will do, say `at 95%`)"
    assert without.verdict(estimate) == said


@given(score=ESTIMATES, level=st.floats(0, 1), sign=SIGNS)
def test_without_a_confidence_an_estimate_changes_nothing(score, level, sign):
    made = Requirement(RankLinkage(), sign, level)
    assert made.met_by(score) == made.met_by(replace(score, confidence=None))
    assert made.verdict(score) == made.verdict(replace(score, confidence=None))
    assert not made.is_estimated(score)


@given(score=ESTIMATES, level=st.floats(0, 1), asked=st.floats(50, 99.9))
def test_a_confidence_lets_only_estimates_of_it_pass(score, level, asked):
    strict = Requirement.parse(f"individual-risk <= {level!r}")
    made = Requirement.parse(f"individual-risk <= {level!r} at {asked!r}%")
    relied = (
        score.status is Status.APPROXIMATE
        and score.interval is not None
        and score.bound is None
        and (score.confidence or 0) >= asked
        and score.interval[1] <= level
    )
    assert made.met_by(score) == (strict.met_by(score) or relied)


# -------------------------------------------------------------------------------------------------- saying


@given(level=FINITE, sign=st.sampled_from([">", ">="]), floor=st.floats(1e-6, 1e6))
def test_said_and_read_again_it_is_the_same(level, sign, floor):
    """A plan that is written and read must gate at the same level, to the last digit."""
    made = Requirement(RankLinkage(floor=floor), sign, level)
    assert Requirement.parse(str(made)) == made


@given(level=FINITE, records=st.integers(2, 20000), draws=st.integers(2, 1000))
def test_whole_settings_survive(level, records, draws):
    made = Requirement(EarthMoversDistance(records=records, draws=draws), "<", level)
    assert Requirement.parse(str(made)) == made


def test_a_level_is_not_rounded():
    assert str(Requirement.parse("dbrl <= 0.0499999999")).endswith("<= 0.0499999999")
    assert str(Requirement.parse("rank-linkage >= 0.450")).endswith(">= 0.45")
    assert str(Requirement.parse("rank-linkage >= 5.0")).endswith(">= 5")


@pytest.mark.parametrize("name", registry.measures())
def test_every_measure_can_be_required_unless_it_says_why_not(name):
    sign = ">=" if registry.measure(name).better == "high" else "<="
    if registry.measure(name).tells.why_not_required:
        with pytest.raises(PlanError, match="cannot be required"):
            Requirement.parse(f"{name} {sign} 0.5")
        return
    made = Requirement.parse(f"{name} {sign} 0.5")
    assert Requirement.parse(str(made)) == made


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused_on_purpose(text):
    try:
        Requirement.parse(text)
    except SfumatoError:
        return


def test_columns_of_a_measure_are_said_and_read():
    text = "direct-matching(differ=1, block=age+sex) <= 0.1"
    requirement = Requirement.parse(text)
    assert requirement.measure.block == ("age", "sex")
    assert str(requirement) == text
    assert str(Requirement.parse("direct-matching <= 0.1")) == "direct-matching(differ=0) <= 0.1"
    assert Requirement.parse(str(requirement)) == requirement


@pytest.mark.parametrize(
    "text", ["k <= 5", "k < 5", "uniqueness >= 0.5", "dbrl > 0.1", "rank-linkage <= 0.45"]
)
def test_the_wrong_way_round_is_refused(text):
    with pytest.raises(PlanError, match="is better"):
        Requirement.parse(text)


def test_a_proved_bound_on_the_value_counts_before_an_interval_of_more():
    found = Score(0.02, Status.APPROXIMATE, interval=(0.0, 1.0), interval_is_proved=True, bound=0.04)
    assert Requirement.parse("gdbrl <= 0.05").verdict(found) == "met: gdbrl may be 0.04"
    assert not Requirement.parse("gdbrl <= 0.03").met_by(found)
    assert not Requirement.parse("gdbrl <= 0.05").met_by(replace(found, bound=None))


# ------------------------------------------------------------------------------------- what judges nothing


@pytest.mark.parametrize(
    "text",
    [
        "k >= 1", "k >= -3", "k > 0.99", "l >= 1", "l(kind=entropy) >= 1", "l(kind=recursive) >= 1",
        "l(kind=recursive, c=1) >= 0", "l(sensitive=ill) >= 1", "p(k=5) >= 1", "m >= 1", "xy-anonymity >= 1",
        "km-anonymity(m=1) >= 1", "pk-angelisation >= 1", "k-map >= 0", "lkc-privacy >= 0",
        "lkc-privacy(c=1) >= 1", "dbrl <= 1", "dbrl < 1.01", "gdbrl <= 5", "t <= 1", "alpha <= 1",
        "recursive-diversity(l=1) <= 1", "prosecutor-risk <= 1", "individual-risk <= 1 at 95%",
        "membership < 2 at 80%", "cm1 >= 0", "permutation-distance > -1", "rank-linkage >= -0.7",
        "rank-linkage(floor=2) >= 0", "hellinger <= 1",
    ],
)  # fmt: skip
def test_what_no_release_can_miss_judges_nothing(text):
    asked = Requirement.parse(text)
    assert not asked.can_fail
    assert asked.judges == "nothing"
    assert asked.vacuity.startswith(f"`{asked.short}` is met by every release: ask for ")


@pytest.mark.parametrize(
    "text",
    [
        "k >= 2", "k > 1", "k >= 1.001", "k-map >= 1", "lkc-privacy >= 1", "l(kind=recursive, c=1) >= 1",
        "dbrl < 1", "dbrl <= 0.999", "cm1 > 0", "rank-linkage >= -0.69", "rank-linkage(floor=0.1) >= -2",
        "recursive-diversity <= 1e9", "beta <= 1e9", "suda <= 1e9", "individual-risk <= 0.99 at 95%",
    ],
)  # fmt: skip
def test_what_the_worst_release_misses_judges_its_risk(text):
    asked = Requirement.parse(text)
    assert asked.judges == "risk"
    assert asked.vacuity == ""


def test_of_a_measure_without_a_bound_nothing_is_met_by_all():
    for text in ("il1s <= 1e300", "column-emd <= 1000"):
        assert Requirement.parse(text).judges == "utility"


@given(st.sampled_from(sorted(registry.measures())), SIGNS, FINITE, FINITE)
def test_met_by_the_worst_is_met_by_all(name, sign, level, value):
    """What can not be missed is missed by no number that the measure can have, and else by the worst."""
    measure = registry.measure(name)()
    sign = ("<" if measure.better == "low" else ">") + sign[1:]
    if measure.tells.why_not_required:
        return
    asked, (low, high) = Requirement(measure, sign, level), measure.bounds
    if not asked.can_fail:
        assert asked.met_by(Score(min(max(value, low), high))) or measure.is_better(measure.worst, value)
    elif math.isfinite(measure.worst):
        assert not asked.met_by(Score(measure.worst))


def test_why_nothing_is_judged_names_each_once():
    asked = [Requirement.parse(each) for each in ("k >= 1", "il1s <= 3", "k >= 1")]
    said = why_unjudged(asked, "all are unique")
    assert said == (
        "only utility is required (il1s <= 3); `k-anonymity >= 1` is met by every release: ask for more than 1; "
        "all are unique"
    )
