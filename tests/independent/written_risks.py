"""What a released file says of people, counted from its text: k, kᵐ, l, t, α, δ, presence, uniqueness, links.

This file shares no code with sfumato, nor with anything beyond Python itself: it opens the written file with
`csv`, reads what its cells stand for, and goes through all pairs of records in loops. It is slow, and meant
to be read. The definitions are those of the papers; where they leave something open, these hold:

* A person counts once, however many records they have; records of nobody (counterfeits) count for nobody.
* A missing key (an empty cell) is, by policy, a value of its own (`category`), anything (`any`), or whatever
  makes its record alone (`worst`). A declared code for missing is a value of its own under `category`.
* A wildcard is a value like others for who is alike, and hides nobody who shows more.
* Records that a released number joins are alike if all of their units' records are.
"""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from datetime import datetime
from itertools import combinations, pairwise, product
from typing import NamedTuple

EPSILON = 1e-9
MOST_POINTS = 20_000  # combinations of values that are tried before nobody knows whether somebody is unique
STAR, REST = ("any",), "..."


class Columns(NamedTuple):
    """What a plan says of the columns of a file."""

    kinds: dict[str, str]  # continuous, ordinal, nominal, date
    keys: tuple[str, ...]
    sensitive: tuple[str, ...]
    missing: dict[str, frozenset[str]] = {}  # codes for values that are not there  # noqa: RUF012
    whole: frozenset[str] = frozenset()  # columns whose numbers are whole ones
    orders: dict[str, list[str]] = {}  # the values of ordinal columns from low to high  # noqa: RUF012

    def place(self, name, cell):
        """The place of an exact cell in the order of its column; None where it has none."""
        if name in self.orders:
            return float(self.orders[name].index(cell[1])) if cell[1] in self.orders[name] else None
        return cell[1] if cell[0] == "is" and isinstance(cell[1], float) else None


class Seen(NamedTuple):
    """A released file: records of cells, whose each is (None: nobody's), and the columns that join records."""

    records: list[dict[str, tuple]]
    persons: list
    columns: Columns
    joins: tuple[str, ...] = ()  # the widest last
    counted: tuple = ()  # who is counted if records are joined, for each record
    bucket: tuple[str, ...] = ()  # the columns that alone tell what the sensitive values may be

    @property
    def people(self):
        return {person for person in self.persons if person is not None}


# What a cell stands for -------------------------------------------------------------------------------------


def read_rows(path, delimiter=","):
    """The records of a file, each a dictionary of texts."""
    with open(path, newline="", encoding="utf-8-sig") as stream:  # noqa: PTH123
        return list(csv.DictReader(stream, delimiter=delimiter))


def read_labels(path):
    """What the labels of large groups stand for, by column: sets as a file would write them."""
    groups = defaultdict(lambda: defaultdict(list))
    for line in read_rows(path):
        groups[line["column"]][line["label"]].append(line["value"])
    return groups


def as_number(text):
    """A number, a date or a time as a number of days; None for another text."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when - datetime(1970, 1, 1, tzinfo=when.tzinfo)).total_seconds() / 86400


def cells_of(rows, columns, labels=None):
    """Records of cells in place of texts."""
    labels, known = labels or {}, {}

    def cell(name, text):
        if (name, text) not in known:
            groups = labels.get(name, {})
            if text in groups:
                known[name, text] = _one_of(groups[text], columns.kinds.get(name))
            else:
                known[name, text] = cell_of(
                    text, columns.kinds.get(name), columns.missing.get(name, frozenset())
                )
        return known[name, text]

    return [{name: cell(name, text) for name, text in row.items()} for row in rows]


def cell_of(text, kind, codes=frozenset()):
    """What a text stands for: `("gone", code)`, `("any",)`, a range, a set, a beginning, or one value."""
    gone = [
        code
        for code in codes
        if code == text or (as_number(text) is not None and as_number(code) == as_number(text))
    ]
    if text == "" or gone:
        return ("gone", *gone[:1]) if gone else ("gone", "")
    coarse = STAR if text == "*" else _range(text) if text[0] + text[-1] == "[]" else None
    if coarse is None and text[0] + text[-1] == "{}":
        coarse = _one_of(_members(text[1:-1]), kind)
    if coarse is None and text[0] == "\\":
        coarse = ("is", text[1:])
    if coarse is None and text[-1] == "*":
        coarse = ("begins", text.rstrip("*"), len(text))
    if coarse is None and text[0] == "*":
        coarse = ("ends", text.lstrip("*"), len(text))
    return coarse or ("is", _value(text, kind))


def _range(text):
    low, _, high = text[1:-1].partition(";")
    ends = as_number(low) if low else -math.inf, as_number(high) if high else math.inf
    if None in ends:
        return None
    return ("is", ends[0]) if ends[0] == ends[1] else ("range", *ends)


def _value(text, kind):
    number = as_number(text) if kind in {"continuous", "date", "ordinal"} else None
    return text if number is None else number


def _one_of(members, kind):
    if len(members) == 1 and members[0] != REST:
        return ("is", _value(members[0], kind))
    return ("set", frozenset(each if each == REST else _value(each, kind) for each in members))


def _members(text):
    """The texts between bars; a backslash stands before a bar, a brace or a backslash that is meant."""
    members, now, escaped = [], "", False
    for letter in text:
        if escaped or letter not in "\\|":
            now, escaped = now + letter, False
        elif letter == "\\":
            escaped = True
        else:
            members, now = [*members, now], ""
    return [*members, now]


def is_gone(cell):
    return cell[0] == "gone"


def is_hidden(cell):
    """Whether a cell says nothing: missing, the wildcard, or a range without ends."""
    return cell[0] in {"gone", "any"} or cell == ("range", -math.inf, math.inf)


def covers(cell, value):
    """Whether a cell that is there may stand for a value."""
    if cell[0] == "range":
        return isinstance(value, float) and cell[1] <= value <= cell[2]
    if cell[0] == "set":
        return value in cell[1] or REST in cell[1]
    if cell[0] == "ends":
        return str(value).endswith(cell[1])
    if cell[0] == "begins":
        return str(value).startswith(cell[1])
    return cell in {STAR, ("is", value)}


# Who is alike -----------------------------------------------------------------------------------------------


def alike(first, second, keys, policy):
    """Whether two records are alike in the keys; a record is so to itself whatever the policy."""
    if first is second:
        return True
    for name in keys:
        one, other = first[name], second[name]
        if policy != "category" and (is_gone(one) or is_gone(other)):
            if policy == "worst":
                return False
        elif one != other:
            return False
    return True


def neighbours(seen, keys, policy):
    """The rows alike to each row."""
    records, n = seen.records, range(len(seen.records))
    return [[other for other in n if alike(records[row], records[other], keys, policy)] for row in n]


def members(seen, keys, policy):
    """The rows that show the same, each in one group: under `any`, what is missing is one more value."""
    groups = defaultdict(list)
    for row, record in enumerate(seen.records):
        cells = [record[name] for name in keys]
        gone = any(map(is_gone, cells))
        if policy != "category":
            cells = [("gone",) if is_gone(cell) else cell for cell in cells]
        groups[(row if policy == "worst" and gone else None, *cells)].append(row)
    return list(groups.values())


def joined_groups(seen, keys, policy):
    """Rows by what all the records of their unit show: units are alike whose records all are."""
    shown = {row: number for number, rows in enumerate(members(seen, keys, policy)) for row in rows}
    for name in seen.joins:
        units = defaultdict(list)
        for row, record in enumerate(seen.records):
            cell = record[name]
            units[("alone", row) if is_gone(cell) else cell].append(row)
        signs = {tuple(rows): tuple(sorted(shown[row] for row in rows)) for rows in units.values()}
        numbers = {sign: number for number, sign in enumerate(sorted(set(signs.values())))}
        shown = {row: numbers[sign] for rows, sign in signs.items() for row in rows}
    groups = defaultdict(list)
    for row, number in shown.items():
        groups[number].append(row)
    return list(groups.values())


def crowds(seen, keys, policy):
    """For each record of somebody, who is alike: sets of persons, or of units where records are joined."""
    if seen.joins:
        groups = joined_groups(seen, keys, policy)
        return {row: {seen.counted[each] for each in rows} for rows in groups for row in rows}
    near = neighbours(seen, keys, policy)
    whose = seen.persons
    return {
        row: {whose[each] for each in near[row]} - {None}
        for row in range(len(near))
        if whose[row] is not None
    }


def k_anonymity(seen, policy):
    """The fewest who are alike."""
    return min(map(len, crowds(seen, seen.columns.keys, policy).values()), default=None)


def delta_presence(seen, population, policy):
    """The largest share of those who fit a class that are in the file; None where too few fit it."""
    found, keys = [], seen.columns.keys
    for row, people in crowds(seen._replace(joins=()), keys, policy).items():
        record = seen.records[row]
        if policy == "worst" and any(is_gone(record[name]) for name in keys):
            found.append(1.0)  # nobody else is surely like it
            continue
        fitting = sum(all(_may_be(record[name], each[name], policy) for name in keys) for each in population)
        if fitting < len(people):
            return None
        found.append(len(people) / fitting)
    return max(found, default=None)


def _may_be(cell, known, policy):
    """Whether a cell may stand for what is known of somebody, which may be missing."""
    if is_gone(cell) or is_gone(known):
        return policy == "any" or (is_hidden(cell) and is_gone(known))
    return covers(cell, known[1])


def km_anonymity(sets, persons, m, policy):
    """The fewest who share up to m items that somebody has; ``sets`` are of texts, None where one is missing."""
    holders, told = (
        defaultdict(set),
        {person for items, person in zip(sets, persons, strict=True) if items is not None},
    )
    anybody = set(persons) - told - {None} if policy == "any" else set()  # of whom no set is there
    for row, (items, person) in enumerate(zip(sets, persons, strict=True)):
        if person is None or (items is None and policy == "any"):
            continue
        shown = [("missing", row if policy == "worst" else 0)] if items is None else sorted(items)
        for size in range(1, m + 1):
            for some in combinations(shown, size):
                holders[some].add(person)
    return min((len(each | anybody) for each in holders.values()), default=None)


# What is learnt ---------------------------------------------------------------------------------------------


def _keys_of(seen):
    """What tells a class: the bucket where values stand apart from their records, else the keys."""
    return seen.bucket or tuple(each for each in seen.columns.keys if each not in seen.columns.sensitive)


def _counts(seen, rows, name, who):
    """How many persons have each value among some rows; a missing value is one more, whatever its code."""
    holders = defaultdict(set)
    for row in rows:
        if who[row] is not None:
            cell = seen.records[row][name]
            holders["gone" if is_gone(cell) else cell].add(who[row])
    return Counter({value: len(people) for value, people in holders.items()})


def _owners(seen):
    """Whose each row is; in buckets nobody outside can tell a counterfeit."""
    if not seen.bucket:
        return seen.persons
    return [("row", row) if person is None else person for row, person in enumerate(seen.persons)]


def _classes(seen, policy):
    """The rows that an intruder takes a person for, each set once."""
    keys, who = _keys_of(seen), _owners(seen)
    near = neighbours(seen, keys, "category" if seen.bucket else policy)
    return {tuple(rows) for row, rows in enumerate(near) if who[row] is not None}


def _profiles(seen, policy, name):
    """The counts of the values in each class, the worst filling of missing ones if asked for."""
    for rows in _classes(seen, policy):
        yield rows, _filled(_counts(seen, rows, name, _owners(seen)), policy)


def _filled(counts, policy):
    gone = counts.pop("gone", 0) if policy == "worst" and len(counts) > 1 else 0
    if gone:
        counts[max(counts, key=counts.get)] += gone
    return counts


def diversity(counts, kind, c=3.0):
    """How many values are well represented."""
    sizes, total = sorted(counts.values(), reverse=True), sum(counts.values())
    if kind == "distinct":
        return float(len(sizes))
    if kind == "entropy":
        return math.exp(-sum(size / total * math.log(size / total) for size in sizes))
    return float(sum(sizes[0] < c * sum(sizes[place:]) for place in range(len(sizes))))


def l_diversity(seen, policy, kind):
    """The least diverse class of the worst column."""
    found = [
        diversity(counts, kind)
        for name in seen.columns.sensitive
        for _, counts in _profiles(seen, policy, name)
    ]
    if seen.joins and not seen.bucket:
        found += [
            each for name in seen.columns.sensitive for each in _joined_diversity(seen, policy, kind, name)
        ]
    return min(found, default=None)


def _joined_diversity(seen, policy, kind, name):
    """Of units that are alike: each record's diversity, and how sure a value is that all have somewhere."""
    keys = _keys_of(seen)
    shown = {row: number for number, rows in enumerate(members(seen, keys, policy)) for row in rows}
    for rows in joined_groups(seen, keys, policy):
        parts = defaultdict(list)
        for row in rows:
            parts[shown[row]].append(row)
        yield from (
            diversity(_filled(_counts(seen, part, name, seen.counted), policy), kind)
            for part in parts.values()
        )
        most = max(_filled(_counts(seen, rows, name, seen.counted), policy).values())
        units = len({seen.counted[row] for row in rows})
        if kind != "distinct":
            yield units / most
        elif most >= units:
            yield 1.0


def alpha(seen, policy):
    """The largest share of one value in a class."""
    shares = [
        min(max(counts.values()) / len({_owners(seen)[row] for row in rows} - {None}), 1.0)
        for name in seen.columns.sensitive
        for rows, counts in _profiles(seen, policy, name)
    ]
    return max(shares, default=None)


def _of_table(seen, policy, name):
    """How often each value is in the table: a person once for each group of rows that show the same."""
    total = Counter()
    for rows in members(seen, _keys_of(seen), "category" if seen.bucket else policy):
        total += _counts(seen, rows, name, _owners(seen))
    return total


def t_closeness(seen, policy, distance):
    """The largest distance of a class from the table; None where a value has no place in an order."""
    found = []
    for name in seen.columns.sensitive:
        table = _of_table(seen, policy, name)
        places = None
        if distance == "ordered":
            values = {cell for cell in table if cell != "gone"}
            found_at = {cell: seen.columns.place(name, cell) for cell in values}
            if None in found_at.values():
                return None
            places = {cell: place for place, cell in enumerate(sorted(values, key=found_at.get))}
        for rows in _classes(seen, policy):
            counts = _counts(seen, rows, name, _owners(seen))
            found.append(_distance(counts, table, places, worst=policy == "worst"))
    return max(found, default=None)


def _distance(counts, table, places, *, worst):
    totals = sum(counts.values()), sum(table.values())
    holes = counts["gone"] / totals[0], table["gone"] / totals[1]
    if places is None:
        found = sum(abs(counts[value] / totals[0] - table[value] / totals[1]) for value in table) / 2
    else:
        found = _ordered(counts, table, places)
        if table["gone"]:
            found = abs(holes[0] - holes[1]) + (1 - max(holes)) * found
    return min(found + (sum(holes) if worst else 0.0), 1.0)


def _ordered(counts, table, places):
    """The mean difference of cumulative shares of the values that are there."""
    known = sum(counts.values()) - counts["gone"], sum(table.values()) - table["gone"]
    if not known[0] or len(places) < 2:
        return 0.0
    ahead = total = 0.0
    for value in sorted(places, key=places.get):
        ahead += counts[value] / known[0] - table[value] / known[1]
        total += abs(ahead)
    return total / (len(places) - 1)


def delta_disclosure(seen, policy):
    """The largest |ln| of a share in a class over that in the table; infinite where a value is lacking."""
    found = []
    for name in seen.columns.sensitive:
        table, classes = _of_table(seen, policy, name), _classes(seen, policy)
        n, several = sum(table.values()), len(members(seen, _keys_of(seen), policy)) > 1
        for rows in classes:
            counts = _counts(seen, rows, name, _owners(seen))
            if len(counts) < len(table) or (policy == "worst" and several and table["gone"]):
                found.append(math.inf)
            else:
                total = sum(counts.values())
                found.append(max(abs(math.log(counts[value] * n / total / table[value])) for value in table))
    return max(found, default=None)


# Who is alone -----------------------------------------------------------------------------------------------


def uniqueness(seen, policy, domains):
    """The share of persons of whom some record may be what no other person's is; None if nobody can tell.

    ``domains`` are the values of each column: a set of texts, or the least and the greatest number.
    """
    keys, whose = seen.columns.keys, seen.persons
    crowd = crowds(seen, keys, "worst" if policy == "worst" else "category")
    found = set()
    for row, people in crowd.items():
        if whose[row] in found or len(people) > 1:
            continue
        state = True if seen.joins else _is_open(seen, row, policy, domains)
        if state is None:
            return None
        if state:
            found.add(whose[row])
    return len(found) / len(seen.people)


def _is_open(seen, row, policy, domains):
    """Whether some combination of values fits a record and no other person's; None if there are too many."""
    keys, record = seen.columns.keys, seen.records[row]

    def is_silent(other):
        cells = [other[name] for name in keys]
        if policy == "worst" and any(map(is_gone, cells)):
            return True
        return policy != "any" and any(is_hidden(cell) and not is_gone(cell) for cell in cells)

    if is_silent(record):
        return True
    others = [
        other for other, person in zip(seen.records, seen.persons, strict=True)
        if person not in {None, seen.persons[row]} and not is_silent(other)
    ]  # fmt: skip
    for name in keys:  # who could not be meant in one key need not be looked at in the others
        others = [other for other in others if _meet(record[name], other[name], policy)]
    axes = [
        _points(
            seen,
            name,
            [other[name] for other in others],
            record[name],
            policy=policy,
            domain=domains.get(name),
        )
        for name in keys
    ]
    if math.prod(map(len, axes)) > MOST_POINTS:
        return None
    return any(
        not any(
            all(_holds(other[name], value, policy) for name, value in zip(keys, point, strict=True))
            for other in others
        )
        for point in product(*axes)
    )


def _holds(cell, value, policy):
    if is_gone(cell):
        return policy == "any" or value == cell
    return covers(cell, value)


def _meet(one, other, policy):
    """Whether two cells may stand for the same; when in doubt they may."""
    if is_gone(one) or is_gone(other):
        return policy == "any" or one == other
    if one[0] == "is":
        return covers(other, one[1])
    return other[0] != "is" or covers(one, other[1])


def _points(seen, name, others, cell, *, policy, domain):
    """Values of a cell, one at least for each way in which the others can hold it or not."""
    if is_gone(cell) and policy != "any":
        return [cell]
    if cell[0] == "is":
        return [cell[1]]
    if not isinstance(domain, tuple):
        begun = [cell[1]] if cell[0] in {"begins", "ends"} else []  # the shortest of what it may be
        return sorted({*begun, *(value for value in domain if is_gone(cell) or covers(cell, value))}) or [
            cell
        ]
    low, high = (max(cell[1], domain[0]), min(cell[2], domain[1])) if cell[0] == "range" else domain
    ends = {low, high}
    for other in others:
        ends.update(end for end in other[1:3] if isinstance(end, float) and low <= end <= high)
    ends = sorted(ends)
    whole = name in seen.columns.whole or seen.columns.kinds[name] == "date"
    if whole:
        return sorted({end + step for end in ends for step in (-1.0, 0.0, 1.0) if low <= end + step <= high})
    return sorted({*ends, *((one + two) / 2 for one, two in pairwise(ends))})


# Who is found -----------------------------------------------------------------------------------------------


def exact_match(seen, known, owners, keys):
    """The share of persons whose own released record alone agrees with what is known of them.

    ``known`` are records of exact cells, ``owners`` whose they are. What says nothing hides only those whose
    own record says as little.
    """
    there, found = seen.people, set()
    for record, person in zip(known, owners, strict=True):
        if person not in there:
            continue
        fitting = [
            row
            for row, each in enumerate(seen.records)
            if all(_agrees(each[name], record[name]) for name in keys)
        ]
        for own in (row for row in fitting if seen.persons[row] == person):
            hidden = _hidden(seen.records[own], keys)
            rivals = (row for row in fitting if _hidden(seen.records[row], keys) <= hidden)
            if all(seen.persons[row] == person for row in rivals):
                found.add(person)
    return len(found) / len(there) if there else None


def _hidden(record, keys):
    return {name for name in keys if is_hidden(record[name])}


def _agrees(cell, known):
    if is_hidden(cell):
        return True
    return not is_gone(known) and covers(cell, known[1])


def linkage(seen, known, owners, keys):
    """The share of persons linked to their own by the least distance, ties shared.

    Numbers, and the places of ordinal values among those that occur, are compared in standard deviations of
    what is known, categories by being equal; a missing value lies at the mean, and is one unit from any other.
    """
    if any(cell[0] not in {"is", "gone"} for each in seen.records for cell in (each[name] for name in keys)):
        return linkage_to_ranges(seen, known, owners, keys)
    seen, known = _by_place(seen, known, keys)
    there, best = seen.people, defaultdict(float)
    scales = {name: _scale(seen, known, name) for name in keys if seen.columns.kinds[name] != "nominal"}
    for record, person in zip(known, owners, strict=True):
        if person not in there:
            continue
        gaps = [
            sum(_gap(record[name], each[name], scales.get(name)) for name in keys) for each in seen.records
        ]
        least = min(gaps)
        nearest = [row for row, gap in enumerate(gaps) if math.sqrt(gap) <= math.sqrt(least) + EPSILON]
        right = sum(seen.persons[row] == person for row in nearest) / len(nearest)
        best[person] = max(best[person], right)
    return sum(best.values()) / len(there) if there else None


def _by_place(seen, known, keys):
    """Both files with the place of each ordinal value in place of it."""
    places = {}
    for name in (each for each in keys if seen.columns.kinds[each] == "ordinal"):
        cells = {each[name] for each in (*seen.records, *known) if not is_gone(each[name])}
        order = sorted(cells, key=lambda cell: seen.columns.place(name, cell))
        places[name] = {cell: ("is", float(place)) for place, cell in enumerate(order)}
        if name in seen.columns.orders:
            places[name] = {cell: ("is", seen.columns.place(name, cell)) for cell in cells}

    def placed(records):
        return [
            {name: places.get(name, {}).get(cell, cell) for name, cell in record.items()}
            for record in records
        ]

    return seen._replace(records=placed(seen.records)), placed(known)


def _scale(seen, known, name):
    """The mean and the standard deviation of what is known; of both files where that does not vary."""
    mine, theirs = (
        [each[name][1] for each in records if not is_gone(each[name])] for records in (known, seen.records)
    )
    numbers = mine or theirs
    if not numbers:
        return 0.0, 1.0
    mean = sum(numbers) / len(numbers)
    numbers = numbers if min(numbers) < max(numbers) else mine + theirs
    middle = sum(numbers) / len(numbers)
    return mean, math.sqrt(sum((each - middle) ** 2 for each in numbers) / len(numbers)) or 1.0


def _gap(one, other, scale):
    """The squared distance of two cells."""
    if scale is None:
        return float(
            one[1] != other[1] if not (is_gone(one) or is_gone(other)) else is_gone(one) != is_gone(other)
        )
    mean, unit = scale
    numbers = [mean if is_gone(cell) else cell[1] for cell in (one, other)]
    return ((numbers[0] - numbers[1]) / unit) ** 2 + (is_gone(one) != is_gone(other))


# Who is found where cells are ranges or sets ----------------------------------------------------------------


class Axis(NamedTuple):
    """How the cells of a column are compared: as numbers in a unit, or as equal or not."""

    unit: float | None
    places: dict | None  # of ordinal values
    least: float
    most: float
    size: int  # of the sets: values that there are

    def parts(self, cell):
        """The stretches that a cell may lie in; None if it may be anything."""
        if is_hidden(cell) or cell == STAR:
            return None
        if cell[0] == "range":
            return [cell[1:]]
        values = sorted(self.place(each) for each in (cell[1] if cell[0] == "set" else {cell[1]}))
        return [(each, each) for each in values]

    def place(self, value):
        return value if self.places is None else self.places[value]

    def loss(self, cell):
        """The share of what there is that a cell spans."""
        if is_hidden(cell) or cell == STAR:
            return 1.0
        if cell[0] == "set":
            return (len(cell[1]) - 1) / max(self.size - 1, 1)
        if cell[0] == "range":
            low, high = (min(max(end, self.least), self.most) for end in cell[1:])
            return (high - low) / ((self.most - self.least) or 1.0)
        return 0.0

    def gap(self, cell, known, *, far=False):
        """The squared distance to the nearest value that a cell may stand for, or to the farthest."""
        silent = is_hidden(cell) or cell == STAR
        if is_gone(known):
            return float(far or not silent)
        if self.unit is None:
            several = silent or (cell[0] == "set" and len(cell[1]) > 1)
            return float((far and several) or not (silent or covers(cell, known[1])))
        value, parts = self.place(known[1]), self.parts(cell)
        if parts is None:
            parts = [(self.least, self.most)] if far else [(value, value)]
        if far:
            low, high = parts[0][0], parts[-1][1]
            low, high = max(low, min(self.least, high)), min(high, max(self.most, low))
            return (max(abs(value - low), abs(value - high)) / self.unit) ** 2
        return (min(max(low - value, value - high, 0.0) for low, high in parts) / self.unit) ** 2


def linkage_to_ranges(seen, known, owners, keys):
    """The same of ranges and sets: the nearest value counts, then the share of the values that is spanned.

    A record that spans more than one's own is a rival only if it is nearer wherever its values lie. None
    where nobody can say how far two cells are apart.
    """
    axes = {name: _axis(seen, known, name) for name in keys}
    if None in axes.values():
        return None
    losses = [sum(axes[name].loss(each[name]) for name in keys) / len(keys) for each in seen.records]

    def key(row, record, *, far=False):
        return math.sqrt(sum(axes[name].gap(seen.records[row][name], record[name], far=far) for name in keys))

    there, best = seen.people, defaultdict(float)
    for record, person in zip(known, owners, strict=True):
        if person not in there:
            continue
        near = [key(row, record) for row in range(len(losses))]
        own = [row for row, each in enumerate(seen.persons) if each == person]
        least = min(near[row] for row in own) + EPSILON
        loss = min(losses[row] for row in own if near[row] <= least)
        tied, right, lost = 0, 0, False
        for row, spans in enumerate(losses):
            coarser = spans > loss + EPSILON
            away = key(row, record, far=True) if coarser else near[row]
            if away < least - 2 * EPSILON or (spans < loss - EPSILON and away <= least):
                lost = True
            elif not coarser and away <= least:
                tied, right = tied + 1, right + (seen.persons[row] == person)
        best[person] = max(best[person], 0.0 if lost else right / tied)
    return sum(best.values()) / len(there) if there else None


def _axis(seen, known, name):
    """How a column is compared; None where that cannot be told from the files."""
    mine = [each[name] for each in known if not is_gone(each[name])]
    shown = [each[name] for each in seen.records]
    sets = [cell[1] for cell in shown if cell[0] == "set"]
    if any(REST in each for each in sets) or any(cell[0] in {"begins", "ends"} for cell in shown):
        return None
    values = {cell[1] for cell in mine}
    size = len(values.union(*sets))
    if seen.columns.kinds[name] == "nominal":
        return Axis(None, None, 0.0, 0.0, size)
    places = None
    if seen.columns.kinds[name] == "ordinal" and not any(cell[0] == "range" for cell in shown):
        everything = values.union(*sets, {cell[1] for cell in shown if cell[0] == "is"})
        order = seen.columns.orders.get(name) or sorted(everything)
        if not everything <= set(order):
            return None
        places = {value: float(place) for place, value in enumerate(order)}
    numbers = [cell[1] if places is None else places[cell[1]] for cell in mine]
    if len(set(numbers)) < 2:
        return None
    ends = [end for cell in shown if cell[0] == "range" for end in cell[1:] if math.isfinite(end)]
    ends += [
        each if places is None else places[each]
        for cell in shown if cell[0] in {"is", "set"} for each in ({cell[1]} if cell[0] == "is" else cell[1])
    ]  # fmt: skip
    mean = sum(numbers) / len(numbers)
    unit = math.sqrt(sum((each - mean) ** 2 for each in numbers) / len(numbers))
    if any(cell[0] == "range" for cell in shown):
        return Axis(unit, places, min(numbers), max(numbers), size)
    return Axis(unit, places, min(numbers + ends), max(numbers + ends), size)


# What a file repeats ----------------------------------------------------------------------------------------


def replicated_uniques(seen, known, owners, keys, *, size=None):
    """The share of persons who alone have their keys, which are in the file."""
    shown, holders = {_combination(each, keys) for each in seen.records}, _holders(known, owners, keys)
    hits = {
        person
        for record, person in zip(known, owners, strict=True)
        if len(holders[_combination(record, keys)]) == 1 and _combination(record, keys) in shown
    }
    return _share_of(hits, set(owners), seen, size)


def disco(seen, known, owners, keys, *, size=None):
    """The share of persons of whose keys the file shows one sensitive value, which is theirs; the worst column."""
    found = []
    for name in seen.columns.sensitive:
        values = defaultdict(set)
        for each in seen.records:
            values[_combination(each, keys)].add(each[name])
        asked = {person for record, person in zip(known, owners, strict=True) if not is_gone(record[name])}
        hits = {
            person
            for record, person in zip(known, owners, strict=True)
            if not is_gone(record[name]) and values[_combination(record, keys)] == {record[name]}
        }
        if asked:
            found.append(_share_of(hits, asked, seen, size))
    return max(found, default=None)


def _combination(record, keys):
    return tuple(("gone",) if is_gone(record[name]) else record[name] for name in keys)


def _holders(known, owners, keys):
    holders = defaultdict(set)
    for record, person in zip(known, owners, strict=True):
        holders[_combination(record, keys)].add(person)
    return holders


def _share_of(hits, asked, seen, size):
    """The share of those asked for, or of those of them who are in the file if that is more."""
    if size is not None:  # nobody can tell who is in it
        return min(len(hits) / min(len(asked), size), 1.0)
    inside = asked & seen.people
    return max(len(hits) / len(asked), len(hits & inside) / len(inside) if inside else 0.0)
