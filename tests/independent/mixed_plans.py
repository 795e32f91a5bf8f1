"""Random tables of every awkward sort, and plans that enforce, take apart or synthesise: one for a seed.

A case is a dictionary that JSON can hold, so that one that convicts a release can be kept as a file.
"""

import csv
import random
from datetime import date, timedelta

POLICIES = ("category", "any", "worst")
FORMATS = ("csv", "csv", "tsv", "parquet")
TYPES = {"age": "continuous", "height": "continuous", "sex": "nominal", "region": "nominal", "zip": "nominal",
         "grade": "ordinal", "born": "date", "illness": "nominal", "income": "continuous", "note": "nominal",
         "score": "ordinal", "size": "ordinal", "remark": "nominal"}  # fmt: skip
ORDERS = {"size": ["small", "middle", "large"]}
KEYS = ("age", "height", "sex", "region", "zip", "grade", "born", "size", "remark")
SENSITIVE = ("illness", "income", "score")
PARTING = ("anatomy", "angelisation", "bucketisation", "slicing", "m-invariance")
CHANGED = ("continuous", "ordinal", "date")
#: What methods take that do not take every key.
TAKEN = {
    "rank-swapping": CHANGED, "resampling": CHANGED, "individual-ranking": CHANGED, "top-bottom-coding": CHANGED,
    "pram": ("nominal", "ordinal"), "uncorrelated-noise": ("continuous",), "rounding": ("continuous",),
    "ipso-a": ("continuous",), "ipso-b": ("continuous",), "ipso-c": ("continuous",),
    "private-marginals": ("continuous", "nominal", "ordinal"),
}  # fmt: skip
SEPARATOR = ";"


def random_case(seed):
    """The table, the plan and the format of a seed."""
    rng = random.Random(f"mixed {seed}")
    n = rng.choice([1, 3, 6, 8, 12, 12, 18, 18, 25, 40])
    keys = rng.sample(KEYS, rng.choice([1, 2, 2, 3, 3, 4]))
    sensitive = rng.sample(SENSITIVE, rng.choice([1, 1, 1, 2]))
    values = {name: _column(rng, name, n) for name in (*keys, *sensitive)}
    columns = {name: {"kind": TYPES[name], "role": "key" if name in keys else "sensitive"} for name in values}
    for name in ORDERS.keys() & columns.keys():
        columns[name]["order"] = ORDERS[name]
    if rng.random() < 0.3:
        values["note"], columns["note"] = _column(rng, "note", n), {"kind": "nominal", "role": "other"}
    steps, policy = _steps(rng, columns, keys)
    parted = steps[-1]["method"] in PARTING
    if steps[-1]["method"] == "itemset-generalisation":
        values["items"] = [SEPARATOR.join(rng.sample("abcde", rng.choice([0, 1, 2, 2, 3]))) for _ in range(n)]
        columns["items"] = {"kind": "set", "role": "key", "separator": SEPARATOR}
    drop = _add_units(rng, n, values, columns, parted=parted and rng.random() < 0.9)
    _spoil(rng, values, columns)
    plan = {
        "data": {"path": "in.csv"},
        "columns": columns,
        "steps": steps,
        "requirements": requirements(policy, "items" in columns),
        "output": {"path": f"out.{rng.choice(FORMATS)}", "shuffle": rng.random() < 0.2, "drop": drop},
    }
    if rng.random() < 0.15:
        known = sorted(
            rng.sample(keys, rng.randint(1, len(keys))) + rng.sample(sensitive, rng.choice([0, 0, 1]))
        )
        plan["scenarios"] = [{"name": "one who knows", "columns": known}]
    case = {"seed": seed, "policy": policy, "values": values, "plan": plan}
    coarse = any(cell[:1] in {"*", "["} for name in keys for cell in values[name])
    return case if coarse or rng.random() < 0.5 else _with_population(rng, case, keys)


def _with_population(rng, case, keys):
    """Let everybody be in a population with others, who have the values that some of them have, and new ones."""
    rows = list(zip(*(case["values"][name] for name in keys), strict=True))
    strangers = [
        tuple(rng.choice(row) for row in zip(*rows, strict=True)) for _ in rows * rng.choice([0, 1, 3])
    ]
    fresh = [_column(rng, name, len(rows)) for name in keys]
    everybody = [*rows, *strangers, *zip(*fresh, strict=True)]
    rng.shuffle(everybody)
    plan = {**case["plan"], "resources": {"register": {"path": "register.csv"}}}
    asked = f"delta-presence(population=register, missing={case['policy']}) <= 1"
    plan["requirements"] = [*plan["requirements"], asked]
    register = dict(zip(keys, map(list, zip(*everybody, strict=True)), strict=True))
    register["town"] = ["here"] * len(everybody)  # of one column an empty cell would be a text in quotes
    return {**case, "plan": plan, "register": register}


def requirements(policy, sets=False):  # noqa: FBT002
    """Everything that is counted again, at levels that forbid nothing."""
    of = f"missing={policy}"
    return [
        *([f"km-anonymity(m=2, {of}) >= 1", f"km-anonymity(m=1, {of}) >= 1"] if sets else []),
        f"k({of}) >= 1", f"l({of}) >= 0", f"l(kind=entropy, {of}) >= 0", f"l(kind=recursive, {of}) >= 0",
        f"t({of}) <= 1", f"t(distance=ordered, {of}) <= 1", f"alpha({of}) <= 1",
        f"delta-disclosure({of}) <= 99", f"uniqueness({of}) <= 1", "exact-match <= 1", "dbrl <= 1",
        "replicated-uniques <= 1", "disco <= 1",
    ]  # fmt: skip


def write_table(case, folder):
    """Write the table, and the population if there is one, as the files that the plan reads."""
    for name, values in (("in.csv", case["values"]), ("register.csv", case.get("register"))):
        if values:
            with (folder / name).open("w", newline="", encoding="utf-8") as stream:
                out = csv.writer(stream)
                out.writerow(values)
                out.writerows(zip(*values.values(), strict=True))


def _column(rng, name, n):
    few = rng.random() < 0.5
    draws = {
        "age": lambda: rng.choice([20, 21, 40, 41]) if few else rng.randint(18, 90),
        "height": lambda: rng.choice([1.5, 1.75]) if few else round(rng.uniform(1.5, 2), 2),
        "sex": lambda: rng.choice("fm"),
        "region": lambda: rng.choice("nesw"),
        "zip": lambda: f"{rng.choice([931, 932])}{rng.randrange(3 if few else 100):02d}",
        "grade": lambda: rng.randint(1, 5),
        "born": lambda: date(1960, 1, 1) + timedelta(rng.choice([0, 1, 400]) if few else rng.randrange(9000)),
        "illness": lambda: rng.choice(["flu", "cold", "asthma", "none"]),
        "income": lambda: rng.choice([1000, 2000, 3000]) if few else rng.randint(800, 9000),
        "score": lambda: rng.randint(1, 4),
        "size": lambda: rng.choice(ORDERS["size"]),
        "remark": lambda: rng.choice(
            ["NA", "na", ".", "a|b", "{c}", "d*", "0", "00", "-0"][: 4 if few else 9]
        ),
        "note": lambda: rng.choice(["a", "b", "c d"]),
    }
    return [str(draws[name]()) for _ in range(n)]


def _add_units(rng, n, values, columns, *, parted):
    """Numbers of persons and households, which leave as pseudonyms or not at all; weights."""
    drop = []
    for name, chance in (("person", 0.3), ("household", 0.2)):
        if parted:
            continue  # of persons with several records nothing is taken apart
        if rng.random() < chance:
            values[name] = [f"{name[0]}{rng.randrange(max(n * 2 // 3, 1))}" for _ in range(n)]
            if rng.random() < 0.2:
                values[name][rng.randrange(n)] = ""
            columns[name] = {"kind": "nominal", "role": name}
            if rng.random() < 0.4:
                columns[name]["pseudonym"] = name
            else:
                drop.append(name)
    if rng.random() < 0.2:
        values["weight"] = [str(rng.choice([1.5, 2.5, 10.0])) for _ in range(n)]
        columns["weight"] = {"kind": "continuous", "role": "weight"}
    return drop


def _spoil(rng, values, columns):
    """Missing cells, codes for them, one star, ranges that were there before, a column of one value."""
    for name in list(values):
        role, cells = columns[name]["role"], values[name]
        if role in {"weight", "person", "household"} or columns[name]["kind"] == "set":
            continue
        if rng.random() < 0.3:
            share = rng.choice([0.1, 0.3, 1.0 if rng.random() < 0.1 else 0.2])
            values[name] = cells = ["" if rng.random() < share else each for each in cells]
        if rng.random() < 0.1:
            code = "-9" if TYPES[name] != "date" else ""
            columns[name]["missing"] = (
                [-9 if TYPES[name] in {"continuous", "ordinal"} else code] if code else []
            )
            values[name] = cells = [code if code and rng.random() < 0.2 else each for each in cells]
        if role == "key" and rng.random() < 0.04:
            cells[rng.randrange(len(cells))] = "*"
        if role == "key" and TYPES[name] == "continuous" and rng.random() < 0.03:
            cells[rng.randrange(len(cells))] = "[20;40]" if name == "age" else "[1.5;1.8]"
        if rng.random() < 0.05:
            values[name] = [cells[0]] * len(cells)


def _steps(rng, columns, keys):
    """A step that enforces, takes apart or makes up, at times after one that changes; and the policy."""
    policy, k = rng.choice(POLICIES), rng.choice([2, 2, 3, 5])
    also = rng.choice([[], [], ["l >= 2"], ["t <= 0.5"], ["alpha <= 0.7"], ["l(kind=entropy) >= 1.5"]])
    enforced = {"k": k, "missing": policy, **({"also": also} if also else {})}
    show = rng.choice(["wildcard", "missing"])
    enforcing = [
        ("mondrian", {**enforced, **rng.choice([{}, {"relaxed": True}, {"exact_ends": True}])}),
        ("global-recoding", {**enforced, **rng.choice([{}, {"suppression": 20.0}, {"local": True, "suppression": 50.0}])}),
        ("local-suppression", {**enforced, "missing": "any" if policy == "any" else "category"}), ("attribute-suppression", {**enforced, "show": show}), ("record-suppression", {**enforced, "show": rng.choice([show, "drop"])}),
        ("sorted-generalisation", enforced), ("matching-recoding", enforced), ("close-generalisation", enforced),
        ("t-closeness-first", enforced), ("safe-harbour", {"k": k, "missing": policy, "show": show}),
        ("mdav", {"k": k}), ("v-mdav", {"k": k}), ("individual-ranking", {"k": k}), ("cbfs", {"k": k}),
        ("itemset-generalisation", {"k": k, "missing": policy, "m": rng.choice([1, 2])}),
    ]  # fmt: skip
    l = rng.choice([2, 2, 3])  # noqa: E741
    apart = {"missing": "category"}
    parting = [
        ("anatomy", {"l": l, **apart, "counts": rng.random() < 0.3, "permute": rng.random() < 0.3}),
        ("angelisation", {"l": l, "k": k, **apart, "counts": rng.random() < 0.3, "tables": rng.choice([1, 1, 2])}),
        ("bucketisation", {"l": l, **apart}), ("slicing", {"l": l, **apart, "overlap": rng.choice([0, 1])}),
        ("m-invariance", {"m": l, **apart}),
    ]  # fmt: skip
    making = [
        ("synthesis", {"leaf": 2}), ("gaussian-copula", {}), ("resampling", {}), ("regeneration", {}),
        ("rank-swapping", {"window": rng.choice([5.0, 50.0])}), ("pram", {"retain": 0.5}),
        ("sampling", {"share": 50.0}), ("top-bottom-coding", {"share": 20.0}), ("naive-coarsening", {}),
        ("uncorrelated-noise", {"deviation": 20.0}), ("rounding", {}), ("trivial-removal", {}),
        ("targeted-swapping", {"share": 30.0}), ("private-marginals", {"domain": "data", "epsilon": 20.0}),
        ("ipso-a", {}), ("ipso-b", {}), ("ipso-c", {}),
    ]  # fmt: skip
    draw = rng.random()
    method, parameters = rng.choice(enforcing if draw < 0.5 else parting if draw < 0.8 else making)
    last = {"method": method, "columns": _taken(method, keys, columns), "parameters": parameters}
    names = [name for name in keys if columns[name]["kind"] == "nominal" and len(keys) > 1]
    if names and method in {"mdav", "rank-swapping", "mondrian", "uncorrelated-noise"} and rng.random() < 0.2:
        last["within"] = [rng.choice(names)]
        last["columns"] = [name for name in last["columns"] if name not in last["within"]] or last["columns"]
    if rng.random() < 0.12 and method != "trivial-removal":
        before, settings = rng.choice(making)
        return [
            {"method": before, "columns": _taken(before, keys, columns), "parameters": settings},
            last,
        ], policy
    return [last], policy


def _taken(method, keys, columns):
    """Those of the keys that a method can take; all of them if it takes none."""
    if method == "itemset-generalisation":
        return ["items"]
    kinds = TAKEN.get(method)
    return [name for name in keys if kinds is None or columns[name]["kind"] in kinds] or list(keys)
