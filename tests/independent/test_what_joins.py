"""An intruder that shares no code with sfumato attacks releases of random plans: who may leave is not found."""

import ast
import json
from pathlib import Path

import pytest

from effort import FULL
from independent import what_joins
from independent.random_plans import FAMILIES, Case, random_case
from independent.what_joins import Find, attack, is_compatible, read_rows, share_found
from seeds import LARGE
from sfumato import io
from sfumato.core import measure
from sfumato.core.approaches import Approach
from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.run import Run
from sfumato.errors import SfumatoError
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide

PLANS = 200 if FULL else 4  # of each family
SLACK = 0.02  # of the persons, beyond the share that a requirement allows


# The intruder on tables that are checked by hand ------------------------------------------------------------


def rows(names, *records):
    return [dict(zip(names.split(), record.split(), strict=True)) for record in records]


def people(finds, name):
    return {row for find in finds if find.attack == name for row in find.people}


def test_the_intruder_shares_no_code_with_us():
    tree = ast.parse(Path(what_joins.__file__).read_text(encoding="utf-8"))
    roots = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    roots |= {name.name for each in ast.walk(tree) if isinstance(each, ast.Import) for name in each.names}
    assert roots == {"__future__", "collections", "csv", "datetime", "functools", "itertools", "typing"}


@pytest.mark.parametrize(
    ("cell", "truth", "expected"),
    [
        ("31", "31.0", True),
        ("31", "32", False),
        ("[20;29]", "29", True),
        ("[20;29]", "30", False),
        ("[65;]", "90", True),
        ("[2024-01-01;2024-02-01]", "2024-01-15", True),
        ("[20;29]", "f", False),
        ("{a|b}", "b", True),
        ("{a|b}", "c", False),
        ("{a|...}", "c", True),
        ("E11*", "E119", True),
        ("*19", "E119", True),
        ("*19", "E118", False),
        ("*", "f", True),
        ("", "f", True),
        ("f", "", True),
        ("f", "m", False),
    ],
)
def test_what_a_cell_may_stand_for(cell, truth, expected):
    assert is_compatible(cell, truth) is expected


def couples(count, *, weights):
    """Couples, the first of them a woman of 20 and a man of 21, all others two men of 21."""
    original = rows("sex age", *(("f 20" if row == 0 else "m 21") for row in range(2 * count)))
    released = [{**each, "age": "[20;21]", "weight": weights(row)} for row, each in enumerate(original)]
    return original, released, {"household": [str(row // 2) for row in range(2 * count)]}


def units_of(original, **units):
    return {"person": list(map(str, range(len(original)))), **units}


def test_a_couple_is_found_by_the_weight_that_both_have():
    original, released, homes = couples(8, weights=lambda row: f"{row // 2}.5")
    finds = attack(original, released, ["sex", "age"], units_of(original, **homes))
    assert people(finds, "regrouped") == {0, 1}
    assert ("weight",) in {find.columns for find in finds}
    assert share_found(finds[0], units_of(original)) == 2 / 16


def test_amounts_that_differ_by_a_little_regroup_too():
    original, released, homes = couples(8, weights=lambda row: f"{100 + row // 2 + row % 2 / 100}")
    finds = attack(original, released, ["sex", "age"], units_of(original, **homes))
    assert finds == [Find("regrouped", ("weight, nearly",), frozenset({0, 1}))]


def test_seven_sets_are_not_believed_nor_weights_that_everybody_has():
    for count, weights in (
        (7, lambda row: f"{row // 2}.5"),
        (8, lambda _: "1.5"),
        (8, lambda row: f"{row}.5"),
    ):
        original, released, homes = couples(count, weights=weights)
        assert not attack(original, released, ["sex", "age"], units_of(original, **homes))


def test_a_record_is_paired_with_one_person_only():
    original = rows("age", "20", "40")
    released = rows("age", "[20;40]", "20")
    assert what_joins.can_be_paired(original, released, ["age"], [0, 1], [0, 1])
    assert not what_joins.can_be_paired(original, rows("age", "20", "20"), ["age"], [0, 1], [0, 1])


def test_a_couple_is_not_found_if_another_like_it_was_not_put_together():
    original, released, homes = couples(9, weights=lambda row: f"{row // 2}.5" if row < 16 else f"9{row}")
    original[16] = original[0]
    assert not attack(original, released, ["sex", "age"], units_of(original, **homes))


def test_two_columns_together_regroup():
    original = rows("sex", *("f" if row in {0, 1} else "m" for row in range(32)))
    released = [
        {**each, "interviewer": f"i{row // 2 % 4}", "day": f"d{row // 8}"}
        for row, each in enumerate(original)
    ]
    homes = {"household": [str(row // 2) for row in range(32)]}
    (find,) = attack(original, released, ["sex"], units_of(original, **homes))
    assert find == Find("regrouped", ("interviewer", "day"), frozenset({0, 1}))


def test_the_hospital_tells_the_county_that_was_swapped():
    original = rows("county sex", *(f"{'ab'[row % 2]} {'f' if row == 0 else 'm'}" for row in range(32)))
    released = [{**each, "county": "b", "hospital": f"h{row % 4}"} for row, each in enumerate(original)]
    (find,) = attack(original, released, ["county", "sex"], units_of(original))
    assert find == Find("read from another column", ("county from hospital",), frozenset({0}))
    assert not attack(original[:28], released[:28], ["county", "sex"], units_of(original[:28]))


def test_a_value_that_one_household_has_tells_nothing_that_others_know():
    original = rows("county", *("ab"[row // 2 % 2] for row in range(32)))
    released = [{"county": "*", "weight": f"{row // 2}"} for row in range(32)]
    units = units_of(original, household=[str(row // 2) for row in range(32)])
    assert not what_joins.tells(original, released, "weight", "county", units)
    assert what_joins.tells(original, released, "weight", "county", units_of(original))


def test_intervals_and_ratios_find_whom_a_shift_or_a_factor_hid():
    original = rows("came left", "2024-01-01 2024-01-05", "2024-02-01 2024-02-03", "2024-03-01 2024-03-03")
    released = rows("came left", "2023-11-01 2023-11-05", "2024-02-11 2024-02-13", "2024-05-01 2024-05-03")
    finds = attack(original, released, ["came", "left"], units_of(original))
    assert people(finds, "difference") == {0}  # two stayed for two days
    original = rows("wage rent", "1000 500", "3000 1000", "6000 2000")
    released = rows("wage rent", "1500 750", "3300 1100", "4500 1500")
    assert people(attack(original, released, ["wage", "rent"], units_of(original)), "ratio") == {0}


# Random plans -----------------------------------------------------------------------------------------------


def carried_out(case, folder):
    """The decision on what came of the plan; None where a method refuses such a table."""
    case.write(folder)
    try:
        return decide(
            carry_out(Plan.from_dict(case.plan, folder=folder), Run(seed=LARGE + case.seed)), subject="it"
        )
    except SfumatoError:
        return None


def files(decision, folder):
    """The original and the release as the intruder reads them."""
    io.write(decision.outcome.parts[""].release.first, folder / "out.csv")
    return read_rows(folder / "in.csv"), read_rows(folder / "out.csv")


def convictions(case, decision, folder):
    """Sentences about what the intruder finds beyond what the plan requires."""
    finds = attack(*files(decision, folder), case.known, case.units)
    for requirement in case.plan["requirements"]:
        measure, _, bound = requirement.split()
        allowed = {"k": 0.0, "dbrl": SLACK + float(bound), "exact-match": SLACK + float(bound)}.get(
            measure, 1.0
        )
        for find in finds:
            share = share_found(find, case.units)
            if share > allowed:
                yield (
                    f"{case.family} {case.seed}: {requirement} is met, {len(find.people)} records ({share:.1%} of "
                    f"the persons) are found, {find.attack}: {', '.join(find.columns)}; "
                    f"steps {json.dumps(case.plan['steps'])}, {case.plan['output']['drop']} left out"
                )


@pytest.mark.prove
@pytest.mark.parametrize("family", FAMILIES)
def test_nobody_is_found_in_what_may_leave(family, tmp_path):
    """To see one again: ``random_case(family, seed)`` has the table and the plan."""
    convicted, left = [], 0
    for seed in range(PLANS):
        case, folder = random_case(family, seed), tmp_path / str(seed)
        folder.mkdir()
        decision = carried_out(case, folder)
        if decision is not None and decision.may_leave:
            left += 1
            convicted += convictions(case, decision, folder)
    assert not convicted, "\n".join(convicted)
    least = PLANS // 4 if family in {"amounts", "hospitals", "plain"} else PLANS // 40
    assert left >= least, "so few plans leave that nothing is tried: see the generator"


def wards(is_woman, method="mondrian", *, drop=(), **parameters):
    """Sixty patients of two counties, a ward of women, and the rooms of four patients each."""
    values = {
        "room": [f"R{row // 4}" for row in range(60)],
        "ward": ["C" if is_woman(row) else "AB"[row // 2 % 2] for row in range(60)],
        "county": ["ne"[row % 2] for row in range(60)],
        "sex": ["f" if is_woman(row) else "m" for row in range(60)],
    }
    roles = {"room": "group", "ward": "other", "county": "key", "sex": "key"}
    if not drop:
        del values["room"], roles["room"]
    plan = {
        "data": {"path": "in.csv"},
        "columns": {name: {"kind": "nominal", "role": role} for name, role in roles.items()},
        "steps": [{"method": method, "columns": ["county", "sex"], "parameters": {"k": 3, **parameters}}],
        "requirements": ["k >= 3"],
        "output": {"path": "out.csv", "shuffle": False, "drop": list(drop)},
    }
    return Case("by hand", 0, values, plan)


def one_in_the_east(row):
    """Twenty women of the north, and one of the east: there mondrian does not show who is a woman."""
    return row == 1 or (row % 2 == 0 and row < 40)


def test_who_does_not_look_for_what_tells_lets_people_out(tmp_path, monkeypatch):
    """The same plan is judged by the columns that it names alone, and the intruder convicts it."""
    case = wards(one_in_the_east)
    assert not carried_out(case, tmp_path).may_leave
    monkeypatch.setattr(measure, "approaches", lambda evidence, **_: (Approach(evidence),))
    decision = carried_out(case, tmp_path)
    assert decision.may_leave
    (find,) = attack(*files(decision, tmp_path), case.known, case.units)
    assert find == Find("read from another column", ("sex from ward",), frozenset({1}))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(wards(lambda row: row < 3), id="three women, one of them in the east"),
        pytest.param(
            wards(one_in_the_east, "local-suppression", importance={"county": 9.0, "sex": 1.0}),
            id="few cells are suppressed",
        ),
        pytest.param(wards(one_in_the_east, drop=["room"]), id="few groups of patients"),
    ],
)
def test_what_few_have_is_told_as_well(case, tmp_path):
    decision = carried_out(case, tmp_path)
    assert not decision.may_leave or not list(convictions(case, decision, tmp_path))


@pytest.mark.prove
def test_where_nothing_is_related_the_approaches_change_no_score(tmp_path):
    for seed in range(PLANS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        decision = carried_out(random_case("plain", seed), folder)
        if decision is None:
            continue
        part = decision.outcome.parts[""]
        for demand, judged in zip(part.plan.demands, decision.judgements, strict=True):
            evidence = Evidence(
                part.original,
                part.release,
                demand.scenario,
                sampling=PersonSampling(ignore_person_links=True),
            )
            plain = demand.measure.score(evidence, Run(seed=LARGE + seed))
            mine = judged.score
            assert (mine.value, mine.status, mine.details) == (plain.value, plain.status, plain.details), seed
