"""Random tables of people with what joins them, and random plans to release them: one of each for a seed."""

import csv
import random
from datetime import date, datetime, timedelta
from typing import NamedTuple

CATEGORIES = {"sex": "fm", "region": "nesw", "tenure": ["own", "rent"], "job": "abcdef", "vote": "abcd"}
ILLNESSES = ["flu", "cold", "asthma", "none"]
KEY, OTHER, SENSITIVE = "key", "other", "sensitive"


class Case(NamedTuple):
    """A table, what a plan says of it, and whose each record is."""

    family: str
    seed: int
    values: dict[str, list]
    plan: dict

    @property
    def known(self):
        return [name for name, column in self.plan["columns"].items() if column["role"] == KEY]

    @property
    def units(self):
        """Whose each record is: of persons, where no column is declared for them, everybody has one record."""
        columns, n = self.plan["columns"], len(next(iter(self.values.values())))
        units = {"person": list(map(str, range(n)))}
        for name, column in columns.items():
            if column["role"] in {"person", "household"}:
                units[column["role"]] = self.values[name]
            elif column["role"] in {"group", "identifier"} or "pseudonym" in column:
                units[f"those of one {name}"] = self.values[name]
        return units

    def write(self, folder):
        """Write the table as the file that the plan reads."""
        with (folder / "in.csv").open("w", newline="", encoding="utf-8") as stream:
            out = csv.writer(stream)
            out.writerow(self.values)
            out.writerows(zip(*self.values.values(), strict=True))


class Draft:
    """A table that is being made up, column by column."""

    def __init__(self, rng, units):
        self.rng, self.units = rng, units  # the unit of each record, numbered from 0
        self.values, self.columns, self.drop = {}, {}, []

    @property
    def numbers(self):
        return range(max(self.units) + 1)

    def add(self, name, kind, role, values, **more):
        self.values[name], self.columns[name] = (
            [str(each) for each in values],
            {"kind": kind, "role": role, **more},
        )

    def shared(self, draw):
        """The same for all records of a unit."""
        drawn = [draw() for _ in self.numbers]
        return [drawn[unit] for unit in self.units]

    def categories(self, *names, role=KEY, shared=False):
        for name in names:
            draw = lambda name=name: self.rng.choice(CATEGORIES[name])  # noqa: E731
            self.add(name, "nominal", role, self.shared(draw) if shared else [draw() for _ in self.units])

    def age(self, kind="continuous"):
        few = self.rng.random() < 0.5  # years, or five bands that are told as numbers
        ages = [self.rng.randint(18, 90) for _ in self.units]
        self.add("age", kind, KEY, [each // 15 * 15 for each in ages] if few else ages)

    def illness(self):
        self.add("illness", "nominal", SENSITIVE, [self.rng.choice(ILLNESSES) for _ in self.units])

    def unit(self, name, role):
        """The number of the unit: it stays behind, or leaves as a pseudonym."""
        more = {}
        if role == OTHER or self.rng.random() < 0.25:
            more = {"pseudonym": name}
        else:
            self.drop.append(name)
        self.add(name, "nominal", role, [f"{name[0]}{each}" for each in self.units], **more)


def _repeated(rng, n, sizes):
    """Units of random sizes, one after the other."""
    units = []
    while len(units) < n:
        units += [units[-1] + 1 if units else 0] * rng.choice(sizes)
    return units


def households(rng, n):
    draft = Draft(rng, _repeated(rng, n, [1, 2, 2, 3, 4]))
    draft.unit("household", "household")
    draft.age()
    draft.categories("sex")
    draft.categories("region", "tenure", shared=True)
    draft.categories("vote", role=SENSITIVE)
    weight = lambda: round(rng.lognormvariate(5, 0.4), 3)  # noqa: E731
    own, by_region = draft.shared(weight), {each: weight() for each in CATEGORIES["region"]}
    by_class = {(one, two): weight() for one in CATEGORIES["region"] for two in CATEGORIES["tenure"]}
    places = list(zip(draft.values["region"], draft.values["tenure"], strict=True))
    ways = {
        "household": own,
        "jittered": [round(each * (1 + rng.uniform(-1e-4, 1e-4)), 4) for each in own],
        "class": [by_class[place] for place in places],
        "area": [by_region[region] for region, _ in places],
        "record": [weight() for _ in own],
    }
    draft.add("weight", "continuous", "weight", ways[rng.choice(list(ways))])
    return draft


def _panel(rng, n, role):
    draft = Draft(rng, _repeated(rng, n, [1, 2, 3, 4, 5]))
    draft.unit("patient", role)
    waves = [draft.units[:row].count(unit) for row, unit in enumerate(draft.units)]
    draft.add("year", "ordinal", rng.choice([KEY, OTHER]), [2020 + wave for wave in waves])
    draft.age()
    draft.categories("sex", shared=True)
    draft.categories("region")
    draft.illness()
    base = draft.shared(lambda: rng.lognormvariate(8, 0.5))
    ways = {
        "constant": lambda amount, _: amount,
        "rising": lambda amount, wave: amount * 1.02**wave,
        "jittered": lambda amount, _: amount * (1 + rng.uniform(-1e-4, 1e-4)),
        "free": lambda *_: rng.lognormvariate(8, 0.5),
    }
    way = ways[rng.choice(list(ways))]
    draft.add("amount", "continuous", OTHER, [round(way(*each), 2) for each in zip(base, waves, strict=True)])
    return draft


def panels(rng, n):
    return _panel(rng, n, "person")


def pseudonyms(rng, n):
    return _panel(rng, n, rng.choice(["identifier", "other", "group"]))


def pupils(rng, n):
    draft = Draft(rng, _repeated(rng, n, [2, 3, 5, 8]))
    draft.unit("class", "group")
    schools = [unit // 2 for unit in draft.units]
    draft.add("school", "nominal", OTHER, [f"S{each % 9}" for each in schools])
    draft.add("size", "continuous", OTHER, [draft.units.count(unit) for unit in draft.units])
    draft.add(
        "hours", "continuous", OTHER, draft.shared(lambda: round(rng.uniform(20, 34), rng.choice([0, 1, 2])))
    )
    draft.add("grade", "ordinal", KEY, [rng.randint(1, 4) for _ in draft.units])
    draft.categories("sex")
    draft.add("county", "nominal", KEY, ["nesw"[each % 9 % 4] for each in schools])
    draft.illness()
    return draft


def interviews(rng, n):
    draft = Draft(rng, _repeated(rng, n, [1, 2, 3, 4]))
    draft.unit("household", "household")
    draft.age()
    draft.categories("sex")
    draft.categories("region", shared=True)
    draft.add("interviewer", "nominal", OTHER, [f"I{unit % 12}" for unit in draft.units])
    draft.add("day", "date", OTHER, [date(2024, 3, 1) + timedelta(unit // 12 * 2) for unit in draft.units])
    draft.categories("vote", role=SENSITIVE)
    return draft


def stamps(rng, n):
    draft = Draft(rng, _repeated(rng, n, [1, 2, 3]))
    draft.unit("household", "household")
    draft.age()
    draft.categories("sex", "job")
    draft.categories("region", shared=True)
    start = datetime(2024, 3, 1, 8)  # noqa: DTZ001
    draft.add(
        "entered", "date", OTHER, draft.shared(lambda: start + timedelta(minutes=rng.randrange(20_000)))
    )
    draft.illness()
    return draft


def hospitals(rng, n):
    draft = Draft(rng, range(n))
    places = [rng.randrange(12) for _ in range(n)]
    draft.add("hospital", "nominal", OTHER, [f"H{each}" for each in places])
    draft.add("county", "nominal", KEY, ["nesw"[each % 4] for each in places])
    draft.age(rng.choice(["continuous", "ordinal"]))
    draft.categories("sex", "job")
    draft.illness()
    return draft


def stays(rng, n):
    draft = Draft(rng, range(n))
    came = [date(2024, 1, 1) + timedelta(rng.randrange(365)) for _ in range(n)]
    draft.add("born", "date", KEY, [date(1940, 1, 1) + timedelta(rng.randrange(20_000)) for _ in range(n)])
    draft.add("came", "date", KEY, came)
    draft.add("left", "date", KEY, [each + timedelta(rng.randint(1, 30)) for each in came])
    draft.categories("sex")
    draft.illness()
    return draft


def amounts(rng, n):
    draft = Draft(rng, range(n))
    for name, mean in (("wage", 10), ("rent", 6.5), ("tax", 8)):
        draft.add(name, "continuous", KEY, [round(rng.lognormvariate(mean, 0.25), 2) for _ in range(n)])
    draft.categories("sex")
    draft.illness()
    return draft


def plain(rng, n):
    """Columns that have nothing to do with each other."""
    draft = Draft(rng, range(n))
    draft.age()
    draft.categories("sex", "region", "job")
    draft.add("education", "ordinal", OTHER, [rng.randint(1, 5) for _ in range(n)])
    draft.add(
        "income",
        "continuous",
        OTHER,
        [round(rng.lognormvariate(8, 0.6), rng.choice([0, 2])) for _ in range(n)],
    )
    draft.add(
        "remark", "nominal", OTHER, [rng.choice(["good", "not so good", "no answer"]) for _ in range(n)]
    )
    draft.illness()
    return draft


FAMILIES = {
    each.__name__: each
    for each in (
        households, panels, pseudonyms, pupils, interviews, stamps, hospitals, stays, amounts, plain,
    )
}  # fmt: skip


def random_case(family, seed):
    """The table and the plan of a family and a seed."""
    rng = random.Random(f"{family} {seed}")
    draft = FAMILIES[family](rng, rng.choice([40, 80, 150, 400]))
    for change, chance in ((_omit_some, 0.3), (_blur, 0.4), (_lose_some, 0.3), (_forget_some, 0.4)):
        if rng.random() < chance:
            change(rng, draft)
    steps, requirements = _recipe(rng, draft.columns)
    output = {"path": "out.csv", "shuffle": False, "drop": draft.drop}
    plan = {
        "data": {"path": "in.csv"},
        "columns": draft.columns,
        "steps": steps,
        "requirements": requirements,
    }
    return Case(family, seed, draft.values, {**plan, "output": output})


def _beside(draft):
    """Columns beside the keys that may join or tell something."""
    roles, columns = {OTHER, "weight"}, draft.columns.items()
    return [name for name, column in columns if column["role"] in roles and "pseudonym" not in column]


def _omit_some(rng, draft):
    """Leave out some of the columns that may join or tell something."""
    beside = _beside(draft)
    for name in rng.sample(beside, rng.randint(0, len(beside))):
        del draft.values[name], draft.columns[name]


def _blur(rng, draft):
    """Let some records exchange their values: what joins or tells does so in part."""
    for name in rng.sample(_beside(draft), 1) if _beside(draft) else ():
        values, share = draft.values[name], rng.choice([0.02, 0.1, 0.3, 0.6])
        rows = [row for row in range(len(values)) if rng.random() < share]
        for row, other in zip(rows, rng.sample(rows, len(rows)), strict=True):
            values[row], values[other] = values[other], values[row]


def _lose_some(rng, draft):
    """Some cells that nobody knows, in columns that say something of a record."""
    columns = draft.columns.items()
    names = [
        name for name, column in columns if column["role"] in {KEY, OTHER, SENSITIVE} and len(column) == 2
    ]
    for name in rng.sample(names, 2):
        draft.values[name] = ["" if rng.random() < 0.04 else each for each in draft.values[name]]


def _forget_some(rng, draft):
    """Keys that the intruder does not know after all: what few know of people hides many of them."""
    keys = [name for name, column in draft.columns.items() if column["role"] == KEY]
    for name in rng.sample(keys, rng.randint(1, len(keys) - 1)):
        draft.columns[name]["role"] = OTHER


def _recipe(rng, columns):
    """Steps that such keys are protected by, and what such a plan would require."""
    keys = {name: column["kind"] for name, column in columns.items() if column["role"] == KEY}
    of = lambda *kinds: [name for name, kind in keys.items() if kind in kinds]  # noqa: E731
    numbers, names, dates = of("continuous"), of("nominal"), of("date")
    k = rng.randint(2, 5)
    also = {"also": ["l-diversity >= 2"]} if rng.random() < 0.3 else {}
    alike = [_step("mondrian", list(keys), k=k, **also), _step("local-suppression", list(keys), k=k)]
    changed = [*_changes(rng, numbers, of("continuous", "ordinal"), k)]
    if dates:
        changed.append(_step("date-shifting", dates, days=rng.choice([30, 182, 365])))
    mixed = [_step("pram", names, retain=rng.choice([0.3, 0.6, 0.8]))] if names else []
    area = next((name for name in ("region", "county") if name in names), None)
    if area and not numbers:
        mixed.append(_step("targeted-swapping", [area], share=rng.choice([10, 30]), k=3))
    if rng.random() < (0.25 if changed else 0.65) or rng.random() < 0.3:
        step = rng.choice(alike)
        required = [f"k >= {rng.randint(2, k)}", *also.get("also", ())]
        return [step], required if step["method"] == "mondrian" else required[:1]
    steps = [rng.choice(each) for each in (changed, mixed) if each and rng.random() < 0.8]
    required = [f"dbrl <= {rng.choice([0.1, 0.2])}", f"exact-match <= {rng.choice([0.0, 0.05])}"]
    if rng.random() < 0.1:
        required = ["k >= 2"]
    return steps, rng.choice([required, required[:1], required[-1:]])


def _changes(rng, numbers, ordered, k):
    if ordered:
        yield _step("rank-swapping", ordered, window=rng.choice([10.0, 30.0, 70.0]))
    if numbers:
        yield _step("uncorrelated-noise", numbers, deviation=rng.choice([20.0, 60.0, 200.0]))
        yield _step("lognormal-noise", numbers, deviation=rng.choice([0.3, 1.0]), per="record")
        yield _step("rounding", numbers, coarseness=rng.choice([0.5, 1.0]))
        yield _step("mdav", numbers, k=k)


def _step(method, columns, **parameters):
    return {"method": method, "columns": columns, "parameters": parameters}
