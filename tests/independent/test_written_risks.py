"""Claims of random releases against what their files say, counted by an oracle that shares no code with sfumato."""

import ast
import hashlib
import json
import math
import os
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

import sfumato
from independent import written_risks as oracle
from independent.judging import Counted, convictions, release
from independent.minimal import KEPT
from independent.mixed_plans import POLICIES, random_case
from sfumato.core import registry
from sfumato.core.method import Method

TABLES = 60  # in `make test`; in `make prove` ten times PER_PART
PER_PART = 1000
PARTS = 10


def test_the_oracle_shares_no_code_with_us():
    tree = ast.parse(Path(oracle.__file__).read_text(encoding="utf-8"))
    roots = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    roots |= {name.name for each in ast.walk(tree) if isinstance(each, ast.Import) for name in each.names}
    assert roots == {"__future__", "csv", "math", "collections", "datetime", "itertools", "typing"}


# The oracle on tables that are counted by hand --------------------------------------------------------------


def seen(text, keys, sensitive=(), persons=None, joins=(), **kinds):
    """A file of words: its header, and its records; ``_`` is an empty cell."""
    header, *lines = [line.split() for line in text.strip().splitlines()]
    rows = [dict(zip(header, (each.replace("_", "") for each in line), strict=True)) for line in lines]
    columns = oracle.Columns({name: kinds.get(name, "nominal") for name in header}, keys, sensitive)
    persons = persons or list(range(len(rows)))
    return oracle.Seen(oracle.cells_of(rows, columns), persons, columns, joins, tuple(persons))


@pytest.mark.parametrize(("policy", "k"), [("category", 1), ("any", 3), ("worst", 1)])
def test_k_by_what_a_missing_key_counts_for(policy, k):
    assert oracle.k_anonymity(seen("sex age\nf 20\nf 20\nf _\nf 20", ("sex", "age")), policy) in {k, 4}
    people = seen("sex age\nf 20\nf 20\nf _\nm 20\nm 20\nm 20", ("sex", "age"))
    assert oracle.k_anonymity(people, policy) == k


def test_a_person_counts_once_and_nobody_not_at_all():
    assert oracle.k_anonymity(seen("sex\nf\nf\nf", ("sex",), persons=["a", "a", "b"]), "category") == 2
    assert oracle.k_anonymity(seen("sex\nf\nf\nf", ("sex",), persons=["a", None, None]), "category") == 1


def test_households_are_alike_if_all_their_members_are():
    text = "home sex\na f\na m\nb f\nb m\nc f\nc f"
    apart = seen(text, ("sex",), persons=["a", "a", "b", "b", "c", "c"], joins=("home",))
    assert oracle.k_anonymity(apart, "category") == 1
    assert oracle.uniqueness(apart, "category", {}) == 1 / 3


def test_diversity_of_a_class_of_four():
    people = seen("sex ill\nf flu\nf flu\nf flu\nf cold\nm flu\nm cold", ("sex",), ("ill",))
    assert oracle.l_diversity(people, "category", "distinct") == 2
    assert oracle.l_diversity(people, "category", "entropy") == pytest.approx(4 / 27**0.25)
    assert oracle.l_diversity(people, "category", "recursive") == 1  # 3 < 3·(3 + 1), and not 3 < 3·1
    assert oracle.alpha(people, "category") == 0.75
    assert oracle.t_closeness(people, "category", "equal") == pytest.approx(1 / 6)
    assert oracle.delta_disclosure(people, "category") == pytest.approx(math.log(1 / 2 / (1 / 3)))


def test_closeness_by_order():
    people = seen("sex pay\nf 1\nf 2\nm 3\nm 4", ("sex",), ("pay",), pay="continuous")
    assert oracle.t_closeness(people, "category", "ordered") == pytest.approx((0.25 + 0.5 + 0.25) / 3)


def test_a_missing_value_is_the_most_frequent_one_at_worst():
    people = seen("sex ill\nf flu\nf _\nf cold\nf flu", ("sex",), ("ill",))
    assert [oracle.alpha(people, policy) for policy in ("category", "worst")] == [0.5, 0.75]


@pytest.mark.parametrize(
    ("ages", "share"),
    [
        ("26 [24;28]", 1 / 2),  # the range may be 24; 26 hides in it
        ("[20;30] [20;25] [25;30]", 0),
        ("[20;30] [20;24] [26;30]", 1 / 3),  # it may be 25
        ("[20;30] *", 1),  # the wildcard hides nobody
    ],
)
def test_who_is_unique_in_ranges(ages, share):
    people = seen("age\n" + "\n".join(ages.split()), ("age",), age="continuous")
    assert oracle.uniqueness(people, "category", {"age": (20.0, 30.0)}) == share


def test_exact_matches_and_links():
    known = seen("age sex\n31 f\n40 f\n58 m", ("age", "sex"), age="continuous").records
    released = seen("age sex\n[30;35] f\n40 *\n58 f", ("age", "sex"), age="continuous")
    assert oracle.exact_match(released, known, [0, 1, 2], ("age", "sex")) == 2 / 3
    known = seen("x\n1\n2\n3\n4", ("x",), x="continuous").records
    released = seen("x\n2\n3\n4\n-0.1", ("x",), x="continuous")
    assert oracle.linkage(released, known, [0, 1, 2, 3], ("x",)) == 0.25


def test_links_to_ranges_and_sets():
    known = seen("age sex\n20 f\n30 f\n60 m", ("age", "sex"), age="continuous").records
    near = seen("age sex\n[25;35] f\n[20;40] f\n58 *", ("age", "sex"), age="continuous")
    # The first is near to its own, and what covers it spans more; of the second another spans less; the third is
    # covered by none, and its own is the nearest.
    assert oracle.linkage(near, known, [0, 1, 2], ("age", "sex")) == 2 / 3
    wide = seen("age sex\n[20;21] f\n[22;60] f\n* *", ("age", "sex"), age="continuous")
    assert oracle.linkage(wide, known, [0, 1, 2], ("age", "sex")) == 1  # the wildcard alone says m
    assert oracle.linkage(wide, known[:2] + known[1:2], [0, 1, 2], ("age", "sex")) == 2 / 3
    sets = seen("age sex\n{20|60} f\n{20|60} f\n30 {f|m}", ("age", "sex"), age="continuous")
    assert oracle.linkage(sets, known, [0, 1, 2], ("age", "sex")) == pytest.approx(1 / 3)


def test_presence_in_a_population():
    people = seen("age sex\n[20;30] f\n[20;30] f\n40 _", ("age", "sex"), age="continuous")
    everybody = seen("age sex\n20 f\n25 f\n30 f\n31 f\n40 _\n40 m", ("age", "sex"), age="continuous").records
    assert [oracle.delta_presence(people, everybody, each) for each in ("category", "any", "worst")] == [
        1,
        2 / 3,
        1,
    ]
    assert oracle.delta_presence(people, everybody[:1], "category") is None


def test_items_that_few_have():
    sets = [frozenset("ab"), frozenset("ab"), frozenset("a"), None]
    assert [oracle.km_anonymity(sets[:3], range(3), m, "category") for m in (1, 2)] == [2, 2]
    assert [oracle.km_anonymity(sets, range(4), 1, each) for each in ("category", "any", "worst")] == [
        1,
        3,
        1,
    ]
    assert oracle.km_anonymity(sets[:3], ["a", "a", "b"], 2, "category") == 1


def test_what_a_file_repeats():
    known = seen("sex ill\nf flu\nm flu\nm cold", ("sex",), ("ill",)).records
    made = seen(
        "sex ill\nf flu\nf flu\nx cold", ("sex",), ("ill",), persons=[("row", row) for row in range(3)]
    )
    for count in (oracle.replicated_uniques, oracle.disco):
        assert count(made, known, [0, 1, 2], ("sex",)) == 1 / 3
        assert count(made, known, [0, 1, 2], ("sex",), size=2) == 1 / 2


@pytest.mark.parametrize(
    ("text", "kind", "cell"),
    [
        ("", "nominal", ("gone", "")),
        ("-9.0", "continuous", ("gone", "-9")),
        ("*", "nominal", ("any",)),
        ("[20;29]", "continuous", ("range", 20.0, 29.0)),
        ("[65;]", "continuous", ("range", 65.0, math.inf)),
        (r"{a\|b|c}", "nominal", ("set", frozenset({"a|b", "c"}))),
        ("{a|...}", "nominal", ("set", frozenset({"a", "..."}))),
        ("E11*", "nominal", ("begins", "E11", 4)),
        ("*19", "nominal", ("ends", "19", 3)),
        (r"\*", "nominal", ("is", "*")),
        ("1970-01-02", "date", ("is", 1.0)),
        ("07", "nominal", ("is", "07")),
    ],
)
def test_what_a_text_stands_for(text, kind, cell):
    assert oracle.cell_of(text, kind, frozenset({"-9"})) == cell


# Random releases --------------------------------------------------------------------------------------------


def judged(seeds, folder):
    """How many of the cases were released, and what they are convicted of.

    To see one again: ``random_case(seed)``; to keep it: ``independent.minimal.keep(random_case(seed), name)``.
    """
    released, found = 0, []
    for seed in seeds:
        here = folder / str(seed)
        here.mkdir()
        sentences = convictions(random_case(seed), here)
        released += sentences is not None
        found += [f"{seed}: {each}" for each in sentences or ()]
    return released, found


def test_no_claim_is_safer_than_the_file(tmp_path):
    released, found = judged(range(TABLES), tmp_path)
    assert not found, "\n".join(found)
    assert released >= TABLES // 3, "so few are released that nothing is tried: see the generator"


def test_every_method_that_must_hold_is_drawn():
    """With each policy, as a text and as Parquet; what changes values is drawn before it."""
    drawn = Counter()
    for seed in range(4000):
        case = random_case(seed)
        method, form = case["plan"]["steps"][-1]["method"], case["plan"]["output"]["path"].rpartition(".")[2]
        drawn[method, case["policy"], "parquet" if form == "parquet" else "text"] += 1
    for name, method in registry.methods().items():
        enforces = method.enforced_requirements is not Method.enforced_requirements
        if enforces or method.nature in {"de-associative", "synthetic"}:
            missing = [each for each in product(POLICIES, ("text", "parquet")) if not drawn[name, *each]]
            assert not missing, f"{name} is not drawn with {missing}: add it to independent/mixed_plans.py"


def test_a_star_that_was_there_is_a_category_and_hides_nobody(tmp_path):
    """The reader of a file takes it for a wildcard, which hides everybody where what is missing may be anything.

    So `uniqueness(missing=any)` is said to be more than the file has, on the safe side, beside buckets as
    elsewhere: it is not asked to be equal there (`is_definition`).
    """
    values = {"region": ["*", "n", "n", "s", "s"], "illness": ["flu", "cold", "flu", "cold", "none"]}
    kinds = {
        "region": {"kind": "nominal", "role": "key"},
        "illness": {"kind": "nominal", "role": "sensitive"},
    }
    step = {"method": "anatomy", "columns": ["region"], "parameters": {"l": 2, "missing": "category"}}
    plan = {
        "data": {"path": "in.csv"}, "columns": kinds, "steps": [step],
        "requirements": ["uniqueness(missing=any) <= 1"], "output": {"path": "out.csv", "shuffle": False},
    }  # fmt: skip
    case = {"seed": 1, "policy": "any", "values": values, "plan": plan}
    decision = release(case, tmp_path)
    measure, score = decision.judgements[0].requirement.measure, decision.judgements[0].score
    counted = Counted(case, tmp_path, decision.outcome.parts[""])
    assert (score.value, counted.of(measure)) == (0.2, 0.0)
    assert not counted.is_definition(measure, score)


def progress_file(part):
    """Where it is noted how far a part has come with this very code: outside of the repository."""
    digest = hashlib.blake2b(digest_size=8)
    for root in (Path(sfumato.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sfumato-independent"
    cache.mkdir(parents=True, exist_ok=True)
    return cache / f"{digest.hexdigest()}.{part}.json"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_claim_of_thousands_is_safer_than_the_file(part, tmp_path):
    """What was interrupted goes on where it stopped, unless the code has changed."""
    place = progress_file(part)
    done = json.loads(place.read_text("utf-8")) if place.exists() else {"next": 0, "convicted": []}
    for start in range(done["next"], PER_PART, 20):
        first = TABLES + part * PER_PART + start
        folder = tmp_path / str(start)
        folder.mkdir()
        _, found = judged(range(first, first + 20), folder)
        done = {"next": start + 20, "convicted": [*done["convicted"], *found]}
        place.write_text(json.dumps(done), encoding="utf-8")
    assert not done["convicted"], "\n".join(done["convicted"])


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_convicted_once_is_so_no_more(path, tmp_path):
    found = convictions(json.loads(path.read_text("utf-8")), tmp_path)
    assert not found, "\n".join(found)
