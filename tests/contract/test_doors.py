"""Every door: a parameter said on the command line, in a plan, in one text or in Python means the same.

What comes of it is one release, one score or one sentence.
"""

import json
import random
import warnings
from pathlib import Path

import click
import pytest
import tomli_w
from polars.testing import assert_frame_equal

import sfumato
from doors import drawn, notation, options
from effort import FULL
from seeds import LARGE
from sfumato.cli import cli, protect
from sfumato.core import registry
from sfumato.core.measure import Measure
from sfumato.core.method import Method
from sfumato.core.requirement import Requirement, parse_measure, parse_method
from sfumato.core.run import Run
from sfumato.errors import NoteWarning, SfumatoError
from sfumato.functions import function_of
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.load import load, load_resources
from sfumato.releasing.postprocess import postprocessor

METHODS, MEASURES = registry.methods(), registry.measures()
COMPONENTS = [*METHODS.values(), *MEASURES.values()]
#: So many releases and scores are tried in `make test`; in `make prove` one of each parameter at least.
FEW = 20
SEED = LARGE + 11
REASON = "made up for a test"
COLUMNS = {
    "age": {"kind": "continuous", "role": "key", "lower": 0, "upper": 120, "integer": True},
    "height": {"kind": "continuous", "role": "key", "lower": 1, "upper": 3},
    "sex": {"kind": "nominal", "role": "key", "labels": [["f", "female"], ["m", "male"]]},
    "region": {"kind": "nominal", "role": "key", "labels": [[each, each.upper()] for each in "nesw"]},
    "grade": {"kind": "ordinal", "role": "key", "order": [1, 2, 3]},
    "born": {"kind": "date", "role": "key"},
    "illness": {"kind": "nominal", "role": "sensitive"},
    "income": {"kind": "continuous", "role": "sensitive", "lower": 0, "upper": 9000},
}


def people(seed, n=24):
    """A small table of every kind of column, as the text of a file."""
    rng = random.Random(seed)
    lines = [",".join(COLUMNS)]
    for _ in range(n):
        cells = (
            rng.choice([20, 21, 40, 41, 60]), round(rng.uniform(1.5, 2), 2), rng.choice("fm"), rng.choice("nesw"),
            rng.randint(1, 3), f"19{rng.randint(60, 62)}-0{rng.randint(1, 9)}-11", rng.choice(["flu", "cold", "none"]),
            rng.randint(800, 4000),
        )  # fmt: skip
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table, a plan of its columns, one more table, and a release."""
    folder = tmp_path_factory.mktemp("doors")
    (folder / "in.csv").write_text(people(1))
    (folder / "more.csv").write_text(people(2, 48))
    (folder / "base.toml").write_text(tomli_w.dumps(base()))
    return folder


def base(**more):
    resources = {"population": {"path": "more.csv"}, "control": {"path": "more.csv"}}
    return {"data": {"path": "in.csv"}, "columns": COLUMNS, "resources": resources, **more}


def sentence_of(work):
    """What comes of it: a result and no sentence, or the sentence that refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoteWarning)
        try:
            return work(), ""
        except SfumatoError as error:
            return None, error.message.partition(" fault")[2] or error.message  # of whichever file
        except click.ClickException as error:
            return None, f"click: {error.format_message()}"


def settings_of(cls, parameter, seed):
    """The parameter drawn, with what it must be set with to have an effect."""
    declared = cls.parameter(parameter)
    settings = {parameter: drawn(declared, f"{cls.name} {seed}")}
    if declared.when is not None:
        other = cls.parameter(declared.when.parameter)
        value = next(iter(declared.when.values), None)
        settings[other.name] = drawn(other, f"{cls.name} {seed}") if value is None else value
    return settings


# What a component is made of ---------------------------------------------------------------------------------


def made_by_command(cls, settings, monkeypatch):
    """The method that the command line makes of its options."""
    made = []
    monkeypatch.setattr(protect, "_protect", lambda method, _: made.append(method))
    said = [part for key, value in settings.items() for part in options(cls.parameter(key), value)]
    command(["protect", cls.name, "in.csv", "-o", "out.csv", *said])
    return made[0]


def command(words):
    cli.main(args=[str(word) for word in words], prog_name="sfumato", standalone_mode=False)


def ways(cls, settings, monkeypatch):
    """A component by every door."""
    text = notation(cls.name, settings)
    yield "Python", lambda: cls(**settings)
    if issubclass(cls, Method):
        yield "options", lambda: made_by_command(cls, settings, monkeypatch)
        step = {"method": cls.name, "columns": ["age"], "parameters": settings}
        yield "plan", lambda: Recipe.from_list([step]).steps[0].method
        if text is not None:
            yield "text", lambda: parse_method(text)
    else:
        yield "plan", lambda: cls.from_dict(settings)
        if text is not None:
            yield "text", lambda: parse_measure(text)
            if not cls.tells.why_not_required:
                yield "requirement", lambda: Requirement.parse(f"{text} {sign(cls)} 0.5").measure


def sign(cls):
    return "<=" if cls.better == "low" else ">="


@pytest.mark.parametrize("cls", COMPONENTS, ids=lambda cls: cls.name)
def test_every_door_makes_the_same_of_a_parameter(cls, monkeypatch):
    for parameter in (each.name for each in cls.parameters()):
        for seed in range(20 if FULL else 5):
            settings = settings_of(cls, parameter, seed)
            found = {door: sentence_of(make) for door, make in ways(cls, settings, monkeypatch)}
            expected = found["Python"]
            for door, (made, sentence) in found.items():
                assert made == expected[0], f"{door}: {settings} gives {made or sentence}, not {expected}"
                assert expected[1] in sentence, f"{door}: {settings}: {sentence} != {expected[1]}"
            if isinstance(expected[0], Measure) and not cls.tells.why_not_required:
                again = Requirement.parse(str(Requirement(expected[0], sign(cls), 0.5)))
                assert again.measure == expected[0], "a requirement must mean the same when it is read again"


# What comes of it --------------------------------------------------------------------------------------------


def sampled(components):
    """Each parameter in `make prove`, and a sample in `make test`."""
    cases = [(name, each.name) for name, cls in sorted(components.items()) for each in cls.parameters()]
    chosen = set(random.Random(3).sample(range(len(cases)), FEW)) if not FULL else range(len(cases))
    return [case for number, case in enumerate(cases) if number in chosen]


@pytest.mark.parametrize(("name", "parameter"), sampled(METHODS))
def test_every_door_gives_one_release_or_one_sentence(name, parameter, place, tmp_path):
    cls = METHODS[name]
    columns = [
        key for key, column in COLUMNS.items() if column["kind"] in cls.kinds and column["role"] == "key"
    ]
    columns = columns or ["sex"]
    settings = settings_of(cls, parameter, "release")
    step = {"method": name, "columns": columns, "parameters": settings}
    written = {"steps": [step], "output": {"path": str(tmp_path / "plan.csv"), "shuffle": False}}
    there = Plan.from_dict(base(), folder=place)
    table, resources = load(there), load_resources(there, there.schema)

    def by_plan():
        plan = Plan.from_dict(base(**written), folder=place)
        outcome = carry_out(plan, Run(seed=SEED))
        write_release(decide(outcome, subject="it", override=REASON), Destination(plan))
        return outcome.release

    def by_command():
        said = [part for key, value in settings.items() for part in options(cls.parameter(key), value)]
        command([
            "protect", name, place / "in.csv", "--plan", place / "base.toml", "-c", ",".join(columns),
            "-o", tmp_path / "options.csv", "--seed", SEED, "--override", REASON, "--keep-order", "-q", *said,
        ])  # fmt: skip

    def in_python():
        return function_of(cls)(table, columns, **settings, resources=resources, seed=SEED)

    python, expected = sentence_of(in_python)
    release, sentence = sentence_of(by_plan)
    assert expected in sentence
    assert (release is None) == (python is None), f"plan: {sentence}"
    _, sentence = sentence_of(by_command)
    assert expected in sentence
    assert bool(expected) == bool(sentence), f"options: {sentence}"
    if python is None or not cls.randomness.replay:
        return
    python = postprocessor(Output(shuffle=False))(python, table, Run(seed=SEED, resources=resources))
    for each, made in python.tables.items():
        assert_frame_equal(made.frame, release.tables[each].frame)
    assert files(tmp_path, "plan") == files(tmp_path, "options")


def files(folder, stem):
    """The bytes of the released files of a door."""
    return {
        path.name.removeprefix(stem): path.read_bytes() for path in sorted(Path(folder).glob(f"{stem}*.csv"))
    }


@pytest.fixture(scope="module")
def released(place):
    """A release of the table, by a plan, with its original and resources."""
    step = {"method": "mondrian", "columns": ["age", "sex", "region"], "parameters": {"k": 3}}
    plan = Plan.from_dict(base(steps=[step], output={"path": "out.csv", "shuffle": False}), folder=place)
    outcome = carry_out(plan, Run(seed=SEED))
    write_release(decide(outcome, subject="it", override=REASON), Destination(plan))
    return load(plan), outcome.release, load_resources(plan, plan.schema)


@pytest.mark.parametrize(("name", "parameter"), sampled(MEASURES))
def test_every_door_gives_one_score_or_one_sentence(name, parameter, place, released, capfd):
    cls, settings = MEASURES[name], settings_of(MEASURES[name], parameter, "score")
    if (text := notation(name, settings)) is None:
        pytest.skip("an empty list has no notation")
    original, release, resources = released
    keys = {"keys": ()} if cls.aspect == "risk" else {}
    both = (original, release) if cls.needs.release else (original,)
    more = {} if cls.needs.release else {"release": release}
    if cls.needs.control:
        keys["control"] = resources["control"]

    def by_command():
        words = [place / "in.csv", place / "out.csv", "--aligned", "--plan", place / "base.toml"]
        command([cls.aspect, *words, "-m", text, "--seed", SEED, "--json", "-q"])
        return json.loads(capfd.readouterr().out)[str(parse_measure(text))]

    def in_python():
        score = function_of(cls)(*both, **keys, **more, **settings, resources=resources, seed=SEED)
        return json.loads(json.dumps(score.to_dict()))

    def by_assess():
        asked = {"resources": resources, "seed": SEED}
        return json.loads(json.dumps(sfumato.assess(original, release, [text], **asked)[text].to_dict()))

    python, expected = sentence_of(in_python)
    assert sentence_of(by_assess) == (python, expected)
    shown, sentence = sentence_of(by_command)
    assert sentence == expected
    if shown is not None:
        shown.pop("like_sample", None)  # which sample is as good: the command line alone asks unasked
        assert flat(shown) == flat(python)


def flat(score):
    """What a score says, one level deep."""
    return {
        f"{key} {name}": float(f"{each:.9g}") if isinstance(each, float) else each
        for key, part in score.items()
        for name, each in (
            part.items() if isinstance(part, dict) else enumerate(part if isinstance(part, list) else [part])
        )
    }
