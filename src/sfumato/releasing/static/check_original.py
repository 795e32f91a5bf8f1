"""Check what only the owner can: python3 private/check_original.py [ORIGINAL]

It hashes the files in `private`, and compares the original with the release beside it, by the record that the
private trail says each released one comes from. `check_release.py` of the folder reads the tables; nothing
else is needed. Without ORIGINAL it is looked for where the plan says. Exit code 0: all that can be checked
holds; 1: something does not. What cannot be checked is listed, and nothing here confirms it.
"""

import hashlib
import json
import math
import re
import runpy
import sys
from pathlib import Path
from statistics import pstdev

MOST_PAIRS = 20_000_000
ITEM = re.compile(r"((?:[^\\|]|\\.)*)(?:\||\Z)", re.DOTALL)


def read_original(script, place, plan):
    """The columns of the original, each cell as it is written."""
    if place.suffix.lower() not in {".csv", ".tsv", ".tab", ".txt"}:
        raise script["Unchecked"]("Python's standard library does not read the original's format")
    tabbed = "\t" if place.suffix.lower() in {".tsv", ".tab"} else ","
    text = place.read_bytes().decode(plan["data"].get("encoding", "utf-8-sig")).lstrip("\ufeff")
    names, *records = script["rows_of"](text, plan["data"].get("delimiter", tabbed))
    records = [each for each in records if each != [None] or len(names) == 1]
    if any(len(each) != len(names) for each in records):
        raise script["Unchecked"]("the original cannot be cut into columns")
    return {name: [each[at] for each in records] for at, name in enumerate(names)}


def point(script, column, text):
    """A value as it is compared with the ends of a range."""
    if column.get("kind") == "date":
        form = column.get("form") or "yyyy-mm-dd"
        return [text[form.index(part) :][: len(part)] for part in ("yyyy", "mm", "dd")] + [text[10:]]
    return script["number"](text)


def cover_of(script, column, spec, cell, labels):
    """What a released cell covers, as a test of an original one; None if it says nothing."""
    if cell is None or (cell == "*" and spec["kind"] in {"interval", "group"}):
        return None
    if spec["kind"] == "interval" and cell.startswith("["):
        low, high = (end and point(script, column, end) for end in cell[1:-1].split(";"))
        return lambda text: (
            (low == "" or low <= point(script, column, text))
            and (high == "" or point(script, column, text) <= high)
        )
    if spec["kind"] == "interval" or spec["numeric"]:
        return lambda text: point(script, column, text) == point(script, column, cell)
    if spec["kind"] == "group" and cell in labels:
        return lambda text: text in labels[cell] or "..." in labels[cell]
    if spec["kind"] == "group" and cell.startswith("{"):
        items = {re.sub(r"\\(.)", r"\1", each) for each in ITEM.findall(cell[1:-1])}
        return lambda text: text in items or cell.endswith("|...}")
    if spec["kind"] == "group" and re.fullmatch(r".*[^*]\*+", cell, re.DOTALL):
        return lambda text: text.startswith(cell.rstrip("*"))
    if spec["kind"] == "group" and re.fullmatch(r"\*+[^*].*", cell, re.DOTALL):
        return lambda text: text.endswith(cell.lstrip("*"))
    plain = cell[1:] if spec["kind"] == "group" and cell.startswith("\\") else cell
    return lambda text: text == plain


def find_matches(script, columns, spec, released, original, rows, owners, labels):
    """The persons whom nobody else's released record covers in all columns, and one of their own does."""
    specs = [next(each for each in spec["columns"] if each["column"] == name) for name in columns]
    classes, shown = {}, []
    for name, each in zip(columns, specs):
        both = zip(released[name], script["values_of"](each, released[name]))
        shown.append([None if value is None else cell for cell, value in both])
    for record, keys in enumerate(zip(*shown)):
        classes.setdefault(keys, set()).add(owners[record])
    covers = {
        keys: [
            cover_of(script, column, each, cell, labels.get(each["column"], {}))
            for (column, each, cell) in zip(columns.values(), specs, keys)
        ]
        for keys in classes
    }
    alone = {keys: next(iter(whose)) for keys, whose in classes.items() if len(whose) == 1}
    if len(alone) * len(classes) > MOST_PAIRS:
        raise script["Unchecked"]("there are too many pairs of records to compare")
    records_of, found = {}, set()
    for record, row in enumerate(rows):
        records_of.setdefault(owners[record], set()).add(row)
    known = [script["values_of"](each, original[name]) for name, each in zip(columns, specs)]
    texts = [original[name] for name in columns]
    for keys, person in alone.items():
        silent = [cover is None for cover in covers[keys]]
        for row in records_of[person]:
            cells = [None if value[row] is None else text[row] for value, text in zip(known, texts)]
            whose = [
                classes[other]
                for other, tests in covers.items()
                if all(here or test is not None for here, test in zip(silent, tests))
                and all(test is None or (cell is not None and test(cell)) for test, cell in zip(tests, cells))
            ]
            if whose and all(each == {person} for each in whose):
                found.add(person)
    return found


def check_matches(script, trail, spec, released, original, rows, owners, labels):
    """Whether no more persons are found by an exact match than is required, for each intruder."""
    plan = trail["plan"]
    names = {each["column"] for each in spec["columns"]} & set(plan["columns"])
    scenarios = {each["name"]: each for each in plan.get("scenarios", [])}
    for judged in trail["requirements"]:
        form = re.fullmatch(r"exact-match <=? ([\d.e-]+)", judged["requirement"])
        if form is None or not judged["met"]:
            continue
        asked = f"{judged['requirement']} against {judged['scenario']}"
        known = scenarios.get(judged["scenario"], {}).get("columns")
        roles = {name: plan["columns"][name].get("role", "other") for name in names}
        known = known or [name for name in names if roles[name] in {"key", "other"}]
        if any(name.startswith("@") for name in known) or "person" in roles.values():
            yield "not checked", f"{asked}: columns are named by their roles, or persons are linked"
            continue
        columns = {name: plan["columns"][name] for name in known if name in names}
        try:
            found = find_matches(script, columns, spec, released, original, rows, owners, labels)
            share = len(found) / max(len(set(owners)), 1)
            holds = share <= float(form[1]) + script["FLOAT_TOLERANCE"]
            yield ("holds" if holds else "FAULT"), f"{asked}: it is {share:.6g}"
        except script["Unchecked"] as why:
            yield "not checked", f"{asked}: {why}"


def check_linkage(script, proof, released, original, rows):
    """Whether the prices of all records prove that no other linkage of them has less distance in all."""
    known, shown = (
        [[script["number"](cell) for cell in table[name]] for name in proof["columns"]]
        for table in (original, released)
    )
    units = [pstdev([column[row] for row in proof["records"]]) or 1.0 for column in known]
    known_points = [[column[row] / unit for column, unit in zip(known, units)] for row in proof["records"]]
    released_points = [
        [column[row] / unit for column, unit in zip(shown, units)] for row in proof["released"]
    ]
    partners, prices, others = proof["partners"], proof["row_prices"], proof["column_prices"]
    everyone = list(range(len(known_points)))
    sizes = {
        len(known_points),
        len(released_points),
        len(prices),
        len(others),
        len(original[proof["columns"][0]]),
    }
    whole = [sorted(proof[key]) == everyone for key in ("partners", "records", "released")]
    if sizes != {len(known_points)} or not all(whole):
        return False, "it does not link all records of both files one to one"
    length = sum(math.dist(known_points[at], released_points[partners[at]]) for at in everyone)
    total = sum(prices) + sum(others)
    unit = 2.0 ** round(math.log2(length / total)) if length > 0 and total > 0 else 0.0
    slack = 2 * unit + 1e-12 * max(length, 1)
    for at, point_ in enumerate(known_points):
        far = [math.dist(point_, other) for other in released_points]
        if any((prices[at] + price) * unit > each + slack for price, each in zip(others, far)):
            return False, "two prices exceed the distance of their records"
        if abs((prices[at] + others[partners[at]]) * unit - far[partners[at]]) > slack:
            return False, "the prices of two linked records are not their distance"
    right = sum(rows[proof["released"][partners[at]]] == proof["records"][at] for at in everyone)
    is_plain = len(set(map(tuple, known_points))) == len(known_points) and len(
        set(map(tuple, released_points))
    ) == len(released_points)
    holds = not is_plain or abs(right / len(known_points) - proof["value"]) <= script["FLOAT_TOLERANCE"]
    return (
        holds,
        f"no linkage has less distance than {length:.6g} in all, and this one finds {right} of {len(rows)}",
    )


def check_table(script, home, trail, evidence, place):
    """All that the original tells of one table."""
    if not place.is_file():
        raise script["Unchecked"](f"the original is not at {place}: give its place")
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    yield (
        ("holds" if digest in trail["inputs"].values() else "FAULT"),
        "the original is the file that was released",
    )
    spec = next(each for each in evidence["data"]["tables"] if each["file"] == trail["output"]["name"])
    if not re.fullmatch(r"[\d ]+", trail.get("rows", "")):
        raise script["Unchecked"](
            "which record each comes from is not told, or in a format that is not read here"
        )
    released, rows = script["read_table"](home.parent, spec), [int(row) for row in trail["rows"].split()]
    original, plan = read_original(script, place, trail["plan"]), trail["plan"]
    person = next((name for name, each in plan["columns"].items() if each.get("role") == "person"), None)
    owners = [
        (row,) if person is None or original[person][row] is None else original[person][row] for row in rows
    ]
    for claim in evidence["identifiability"]["claims"]:
        if claim["counted"] == "persons" and not claim["person"] and claim["file"] == spec["file"]:
            asked = f"{claim['measure']} {claim['sign']} {claim['level']:g} in persons"
            asked += f", against {claim['scenario']}"
            try:
                holds, found = script["check_claim"](claim, spec, released, owners)
                yield ("holds" if holds else "FAULT"), f"{asked}: {found}"
            except script["Unchecked"] as why:
                yield "not checked", f"{asked}: {why}"
    book, labels = home.parent / f"{Path(spec['file']).stem}.labels.csv", {}
    for column, label, value in script["rows_of"](book.read_text("utf-8"), ",") if book.is_file() else ():
        labels.setdefault(column, {}).setdefault(label, set()).add(value)
    yield from check_matches(script, trail, spec, released, original, rows, owners, labels)
    for proof in evidence["identifiability"].get("certificates", []):
        if "levels" in proof:
            lattice = runpy.run_path(str(home / "check_lattice.py"))
            yield from lattice["check_lattice"](script, trail, proof, released, original, rows)
            continue
        holds, found = check_linkage(script, proof, released, original, rows)
        yield ("holds" if holds else "FAULT"), f"gdbrl against {proof['scenario']}: {found}"


def check(home, given=None):
    """All that is found in `private`, each as a word and a sentence."""
    script = runpy.run_path(str(home.parent / "check_release.py"))
    try:
        faults = [each for each in script["faults_of_files"](home) if "overrides.private.jsonl" not in each]
        yield from (
            (("FAULT", each) for each in faults) if faults else [("holds", "every checksum in private")]
        )
        evidence, trail = (
            json.loads((home / n).read_text("utf-8")) for n in ("evidence.json", "trail.private.json")
        )
        if "tables" in trail or "plan" not in trail or "output" not in trail or "copies" in trail:
            raise script["Unchecked"]("the release has several tables, which are not compared here")
        place = Path(given) if given else home / trail["plan"]["data"]["path"]
        yield from check_table(script, home, trail, evidence, place)
    except script["Unchecked"] as why:
        yield "not checked", str(why)
    except script["FAULTS"] as fault:
        yield "FAULT", f"private, release and original do not fit together ({type(fault).__name__})"
    yield "not checked", "attacks, estimates, and of a method what no sentence above says"


def main(home, given):
    """Print what is found, of what leaves too; 1 if something that can be checked does not hold."""
    findings = [
        *runpy.run_path(str(home.parent / "check_release.py"))["check"](home.parent),
        *check(home, given),
    ]
    print(*(f"{word + ':':13}{sentence}" for word, sentence in findings), sep="\n")
    wrong = sum(word == "FAULT" for word, _ in findings)
    print(f"Not as claimed: {wrong} of these are faults." if wrong else "All that can be checked here holds.")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent, sys.argv[1] if len(sys.argv) > 1 else None))
