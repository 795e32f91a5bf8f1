"""Check a release without trust in whoever made it: python3 check_release.py

It hashes the files of this folder, reads the released tables, counts who is alike in them, and compares that
with what evidence.json claims. It needs Python 3.9 or later and no other library, reads this folder alone
(not its `private` part) and writes nothing. Exit code 0: all that can be checked here holds; 1: something
does not. What cannot be checked is listed, and nothing here confirms it.

Two records are alike if their keys are equal as they are written: a range, a group or `*` equals itself only.
  missing=category  a missing key is a value of its own;
  missing=any       it may be any value: records are alike that agree wherever both have one;
  missing=worst     a record with a missing key is alone, and a missing sensitive value is the most frequent.
k is the least number of persons alike; l the least number of values of a sensitive column among them; alpha
the largest share of one value among them; t the largest distance of their values from those of all.
"""

import hashlib
import json
import math
import operator
import re
import sys
from collections import Counter, defaultdict
from itertools import accumulate
from pathlib import Path

SUMS, LAST_LINE = "SHA256SUMS", "# sha256 of the lines above: "
SIGNS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
MEASURES = {"k": "k-anonymity", "l": "l-diversity", "t": "t-closeness", "alpha": "alpha-k-anonymity"}
FAULTS = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
FLOAT_TOLERANCE = 1e-9


class Unchecked(Exception):
    """Why something cannot be checked here."""


def faults_of_files(folder):
    """What is wrong with the list of checksums, and which files are not what it says."""
    lines, _, last = (folder / SUMS).read_bytes().decode("utf-8", "replace").rpartition(LAST_LINE)
    listed = {name: digest for digest, name in re.findall(r"([0-9a-f]{64})  ([^\n]+)\n", lines)}
    if last != hashlib.sha256(lines.encode()).hexdigest() + "\n" or len(listed) != lines.count("\n"):
        return [f"{SUMS} is damaged: its last line is not the hash of those above, or a line names no file"]
    there = [name for name in listed if (folder / name).is_file() and not (folder / name).is_symlink()]
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in there}
    faults = [f"{name} is not what was released" for name in listed if hashes.get(name) != listed[name]]
    known = {*listed, SUMS, *(f"{SUMS}.{end}" for end in ("asc", "sig", "minisig"))}
    present = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()]
    added = sorted(name for name in present if name not in known and not name.startswith("private/"))
    return faults + [f"{name} is not on the list {SUMS}" for name in added]


def rows_of(text, delimiter):
    """The lines of a delimited text: an empty field is None, a quoted empty one is an empty text."""
    cut = re.escape(delimiter)
    field = re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|([^"\r\n{cut}]*))({cut}|\r?\n|\Z)')
    place, row = 0, []
    while place < len(text) or row:
        found = field.match(text, place)
        if found is None:
            raise ValueError("a quote or a line end stands where none may be")
        quoted, plain, end = found.groups()
        row.append((plain or None) if quoted is None else quoted.replace('""', '"'))
        place = found.end()
        if end != delimiter:
            yield row
            row = []


def read_table(folder, spec):
    """The columns of a released file, each cell as it is written, None where it is empty."""
    place, names = folder / spec["file"], [each["column"] for each in spec["columns"]]
    if place.suffix.lower() not in {".csv", ".tsv", ".tab", ".txt"}:
        raise Unchecked(f"Python's standard library does not read {place.suffix} files")
    raw = place.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode(spec["encoding"]).lstrip("\ufeff")
    header, *records = rows_of(text, spec["delimiter"])
    if header != names or any(len(each) != len(names) for each in records):
        raise ValueError("it must have the columns that evidence.json names, in every line")
    if len(records) != spec["records"]:
        raise ValueError(f"it has {len(records)} records, and evidence.json says {spec['records']}")
    if spec["quotes"] == "all":  # then a missing value is written like an empty text
        records = [[cell or None for cell in each] for each in records]
    return {name: [each[at] for each in records] for at, name in enumerate(names)}


def number(text):
    """A number as it is compared, with a point or a comma before its decimals."""
    try:
        return int(text)
    except ValueError:
        value = float(text.replace(",", "."))
        return "NaN" if math.isnan(value) else value


def values_of(spec, cells, missing=True):
    """The values of a column, None where it is empty or (unless told not to) has a code for missing."""
    values = [None if cell is None else number(cell) for cell in cells] if spec["numeric"] else cells
    if not missing:
        return values
    if not spec["numeric"]:
        return [None if each is not None and each.strip() in spec["missing"] else each for each in values]
    low, high = spec["missing_range"] or (1, 0)
    codes = {None, "NaN", *(number(code) for code in spec["missing"] if re.fullmatch(r"-?\d+(\.\d+)?", code))}
    return [None if each in codes or low <= each <= high else each for each in values]


def in_order(spec, values):
    """The distinct values in the order of their column; None for a column that has no order."""
    if spec["kind"] == "group":
        raise Unchecked(f"the order of the groups of {spec['column']} is not told")
    if spec["kind"] in {"nominal", "interval"}:
        return None
    if spec["order"]:
        return sorted(set(values) - {None}, key=spec["order"].index)
    parts = [(spec["form"].index(part), len(part)) for part in ("yyyy", "mm", "dd") if spec["form"]]
    return sorted(set(values) - {None}, key=lambda value: [*(value[at : at + n] for at, n in parts), value])


def classes_of(columns, n, missing):
    """For each combination of keys its records, and all records that are alike to them."""
    own, patterns, alike = (defaultdict(list) for _ in range(3))
    for record in range(n):
        keys = tuple(column[record] for column in columns)
        own[(record,) if missing == "worst" and None in keys else keys].append(record)
    if missing != "any":
        return [(records, records) for records in own.values()]
    for keys in own:
        patterns[tuple(at for at, key in enumerate(keys) if key is not None)].append(keys)
    for here, hosts in patterns.items():
        for there, guests in patterns.items():
            shared, found = [at for at in here if at in there], defaultdict(list)
            for keys in guests:
                found[tuple(keys[at] for at in shared)] += own[keys]
            for keys in hosts:
                alike[keys] += found.get(tuple(keys[at] for at in shared), [])
    return [(records, alike[keys]) for keys, records in own.items()]


def join_classes(classes, owners):
    """The same of persons: those are alike who have as many records of each combination of keys."""
    of_person, groups = defaultdict(list), defaultdict(list)
    of_record = {record: at for at, (own, _) in enumerate(classes) for record in own}
    for record, owner in enumerate(owners):
        of_person[owner].append(record)
    for records in of_person.values():
        groups[tuple(sorted(of_record[record] for record in records))] += records
    return [(records, records) for records in groups.values()]


def count(records, values, owners):
    """How many persons have each value, each person once."""
    return Counter(value for value, _ in {(values[record], owners[record]) for record in records})


def fill(counts, missing):
    """How often each value occurs, the most frequent first; at worst that is what is missing, too."""
    gone = counts[None] if missing == "worst" and len(counts) > 1 else 0
    found = sorted((n for value, n in counts.items() if not gone or value is not None), reverse=True)
    return [found[0] + gone, *found[1:]]


def diversity(found, settings):
    """How many values are well represented, of how often each occurs."""
    shares, tails = (n / sum(found) for n in found), accumulate(reversed(found))
    if settings.get("kind") == "entropy":
        return math.exp(-sum(share * math.log(share) for share in shares))
    return sum(settings.get("kind") != "recursive" or found[0] < settings["c"] * tail for tail in tails)


def distance(own, everyone, order):
    """How far a distribution is from that of everyone, from 0 to 1; without an order any two values are 1."""
    n, total = sum(own.values()), sum(everyone.values())
    if order is None:
        return sum(max(own[value] / n - everyone[value] / total, 0.0) for value in own)
    known, all_known = n - own[None], total - everyone[None]
    gaps = accumulate(own[value] / known - everyone[value] / all_known for value in order if known)
    shares = known / n, all_known / total
    return abs(shares[0] - shares[1]) + min(shares) * sum(map(abs, gaps)) / max(len(order) - 1, 1)


def closeness(spec, values, classes, owners, settings):
    """The largest distance of a class from everyone."""
    if settings["distance"] == "hierarchy":
        raise Unchecked(f"the hierarchy of {spec['column']} is not told")
    order = None if settings["distance"] == "equal" else in_order(spec, values)
    everyone, farthest = Counter(), 0.0
    for own, _ in classes:
        everyone.update(count(own, values, owners))
    for _, alike in classes:
        counts = count(alike, values, owners)
        lacking = counts[None] / sum(counts.values()) + everyone[None] / sum(everyone.values())
        more = lacking if settings["missing"] == "worst" else 0.0
        farthest = max(farthest, distance(counts, everyone, order) + more)
    return min(farthest, 1.0)


def measure(claim, spec, cells, owners):
    """The number that a claim is about: of the worst class, and of the worst sensitive column."""
    settings, name, links = claim["settings"], claim["measure"], claim["linked_by"]
    specs, missing = {each["column"]: each for each in spec["columns"]}, settings["missing"]
    if not owners or name not in {*MEASURES.values(), "p-sensitivity"}:
        raise Unchecked("this script does not compute it" if owners else "there are no records")
    if links and (links != [claim["person"]] or name != MEASURES["k"]):
        raise Unchecked(f"records are linked by {', '.join(links)}")
    keys = [values_of(specs[each], cells[each], missing != "category") for each in claim["keys"]]
    classes = classes_of(keys, len(owners), missing)
    classes = join_classes(classes, owners) if links else classes
    sizes = [len({owners[record] for record in alike}) for _, alike in classes]
    if name == MEASURES["k"]:
        return min(sizes)
    found = []
    for each in claim["sensitive"]:
        values = values_of(specs[each], cells[each])
        profiles = [fill(count(alike, values, owners), missing) for _, alike in classes]
        if name == MEASURES["t"]:
            found.append(-closeness(specs[each], values, classes, owners, settings))
        elif name == MEASURES["alpha"]:
            found.append(-max(min(profile[0] / n, 1.0) for profile, n in zip(profiles, sizes)))
        else:
            found.append(min(diversity(profile, settings) for profile in profiles))
    return abs(min(found))


def check_claim(claim, spec, cells, owners=None):
    """Whether a claim holds, and what was found; whose each record is can be told from elsewhere."""
    persons = cells[claim["person"]] if claim["person"] else [None] * spec["records"]
    owners_here = [(at,) if each is None else each for at, each in enumerate(persons)]
    value = measure(claim, spec, cells, owners or owners_here)
    slack = {"<=": FLOAT_TOLERANCE, ">=": -FLOAT_TOLERANCE}.get(claim["sign"], 0) * max(abs(value), 1)
    holds = SIGNS[claim["sign"]](value, claim["level"] + slack)
    counts_values = claim["measure"] == "p-sensitivity" or claim["settings"].get("kind") == "distinct"
    is_bound = claim["measure"] == MEASURES["k"] and not holds  # persons are never more than records
    if claim["counted"] == "persons" and not (claim["person"] or owners or counts_values or is_bound):
        raise Unchecked(f"it counts persons, and no column tells whose records are (by records: {value:.6g})")
    return holds, f"it is {value:.6g}"


def overview(spec, cells):
    """k, l, t and alpha in records, over the columns that are said to be keys and sensitive."""
    keys, sensitive = ([e["column"] for e in spec["columns"] if e["role"] == r] for r in ("key", "sensitive"))
    claim = {"settings": {"missing": "category", "distance": "equal"}, "keys": keys, "sensitive": sensitive}
    for letter, name in MEASURES.items() if spec["records"] and keys else ():
        if letter == "k" or sensitive:
            value = measure({**claim, "measure": name, "linked_by": []}, spec, cells, range(spec["records"]))
            yield f", {letter} = {value:.6g}"


def check_tables(folder, evidence):
    """Say of each table what is in it, and of each claim whether it holds."""
    claims, judged, tables = (*(evidence["identifiability"][key] for key in ("claims", "requirements")), {})
    for spec in evidence["data"]["tables"]:
        try:
            cells = read_table(folder, spec)
            yield "counted", f"{spec['file']}: {spec['records']} records{''.join(overview(spec, cells))}"
            tables[spec["file"]] = spec, cells
        except Unchecked as why:
            tables[spec["file"]] = None
            yield "not checked", f"{spec['file']}, and what is claimed of it: {why}"
    for claim in (each for each in claims if tables[each["file"]]):
        settings = ", ".join(f"{key}={value}" for key, value in claim["settings"].items())
        asked = f"{claim['file']}: {claim['measure']}({settings}) {claim['sign']} {claim['level']:g}"
        asked += f" against {claim['scenario']}, who knows {', '.join(claim['keys'])}"
        try:
            holds, found = check_claim(claim, *tables[claim["file"]])
            yield ("holds" if holds else "FAULT"), f"{asked}: {found}"
        except Unchecked as why:
            yield "not checked", f"{asked}: {why}"
    if len(claims) > judged["met"]:
        yield "FAULT", "evidence.json has more claims than requirements that are met"
    if len(claims) < judged["of"]:
        more = judged["of"] - len(claims)
        yield "not checked", f"{more} requirements more: the owner has them in private/report.html"
    yield "not checked", "what other columns, other files or earlier releases tell of the same people"


def check(folder):
    """All that is found in a folder, each as a word and a sentence."""
    try:
        faults = faults_of_files(folder)
        yield from (("FAULT", each) for each in faults) if faults else [("holds", "every checksum")]
        yield from check_tables(folder, json.loads((folder / "evidence.json").read_text("utf-8")))
    except FAULTS as fault:
        yield "FAULT", f"this folder cannot be read as a release ({type(fault).__name__}): {fault}"


def main(folder):
    """Print what is found; 1 if something that can be checked does not hold."""
    findings = list(check(folder))
    print(*(f"{word + ':':13}{sentence}" for word, sentence in findings), sep="\n")
    wrong = sum(word == "FAULT" for word, _ in findings)
    print(f"Not as claimed: {wrong} of these are faults." if wrong else "All that can be checked here holds.")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent))
