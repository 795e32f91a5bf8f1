"""Check that no levels of a lattice lose less; check_original.py, which stands beside it, asks for it.

A node of the lattice is a level of the hierarchy for each key. At a node, records in classes of fewer than k
are suppressed, if they are not too many. The loss of a key is the mean share of the leaves that a label
covers beyond one, and 1 for who is suppressed. Three things are computed anew, from the original, the
release and the hierarchies of evidence.json:
  the release shows no more than the labels of the levels that are said, and `*` for who is suppressed;
  the loss there is the one that is said;
  no node loses less than the bound that is said. No node loses less than its labels with nobody suppressed,
  and nodes above lose at least as much; and where too many are in small classes, they are at all nodes below.
"""

import math
from collections import defaultdict
from itertools import product

MOST_LOOKS = 20_000_000  # records, times the nodes that are looked at
MOST_NODES = 1_000_000


def read_values(script, column, cells):
    """The values of a column of the original as its hierarchy has them, None where they are missing."""
    codes, values = column.get("missing", []), []
    codes = {str(code) for code in (codes if isinstance(codes, list) else [codes])}
    low, high = column.get("missing_range") or (1, 0)
    for cell in cells:
        value = None if cell is None or cell.strip() in codes else cell
        if value is not None and column.get("kind") == "continuous":
            try:
                value = script["number"](cell)
            except ValueError:
                raise script["Unchecked"]("values of the original cannot be read as numbers") from None
            gone = value == "NaN" or low <= value <= high or str(value) in codes
            value = None if gone else value
        values.append(value)
    return values


def read_column(script, column, tree, values):
    """The labels of each record at each level, None where the value is missing, and the width of each."""
    rows, sizes = tree["rows"], tree["sizes"]
    for level in range(len(sizes) - 1):
        here, above = sizes[level], sizes[level + 1]
        parts, parents = defaultdict(int), {(row[level], row[level + 1]) for row in rows}
        for label, parent in parents:
            parts[parent] += here[label]
        if len(parents) != len({label for label, _ in parents}):
            raise ValueError("a label has two labels above it")
        if any(above[parent] < size for parent, size in parts.items()):
            raise ValueError("a label covers less than those below it")
    if list(sizes[-1]) != ["*"] or {sizes[0][row[0]] for row in rows} - {1}:
        raise ValueError("a hierarchy has one root, and a value covers itself")
    total = sizes[-1]["*"]
    widths = [{label: (n - 1) / max(total - 1, 1) for label, n in each.items()} for each in sizes]
    if total == 1:
        widths[-1] = {"*": 1.0}
    known = {row[0]: row for row in rows}
    if column.get("kind") == "continuous":
        known = {script["number"](leaf): row for leaf, row in known.items()}
    known[None] = [*[None] * (len(sizes) - 1), "*"]  # a missing value is like any other at the root
    if not known.keys() >= set(values):
        raise script["Unchecked"]("values of the original are not written like those of its hierarchy")
    return [known[value] for value in values], widths


class Lattice:
    """The keys of the original at every level, and what is lost there."""

    def __init__(self, settings, columns, missing, owners, weights):
        self.labels, self.widths = zip(*columns.values())
        self.missing, self.owners, self.weights = missing, owners, weights
        self.k, self.n, self.looks = settings["k"], len(owners), 0
        self.limit = int(settings["suppression"] / 100 * self.n + 1e-9)
        self.geometric, balance = settings["aggregate"] == "geometric", settings["balance"]
        self.factors = min(2 * (1 - balance), 1.0), min(2 * balance, 1.0)
        given = settings["importance"]
        given = given if isinstance(given, dict) else {"default": given}
        known = [not all(gone) for gone in missing]
        shares = [given.get(name, given.get("default", 1.0)) * here for name, here in zip(columns, known)]
        self.shares = [share / (sum(shares) or 1.0) for share in shares]

    def small(self, levels):
        """Whether each record is in a class of too few persons at a node."""
        self.looks += self.n
        whose, keys = defaultdict(set), []
        for record, owner in enumerate(self.owners):
            keys.append(tuple(own[record][level] for own, level in zip(self.labels, levels)))
            whose[keys[-1]].add(owner)
        return [len(whose[each]) < self.k for each in keys]

    def part(self, key, level, suppressed, least=False):
        """What a key adds to the score of a node."""
        lost, total = 0.0, 0.0
        for record, gone in enumerate(self.missing[key]):
            if not gone:
                cost = self.factors[0] * self.widths[key][level][self.labels[key][record][level]]
                cost = min(cost, self.factors[1]) if least else cost
                lost += self.weights[record] * (self.factors[1] if suppressed[record] else cost)
                total += self.weights[record]
        mean = lost / (total or 1.0)
        return self.shares[key] * (math.log1p(mean) if self.geometric else mean)

    def loss(self, levels, suppressed):
        """The loss at a node."""
        score = sum(self.part(key, level, suppressed) for key, level in enumerate(levels))
        return math.expm1(score) if self.geometric else score

    def nodes_below(self, loss, unchecked):
        """The nodes whose labels alone lose less, those of high levels first."""
        heights = [len(widths) for widths in self.widths]
        if math.prod(heights) > MOST_NODES:
            raise unchecked(f"the lattice has {math.prod(heights)} nodes, more than {MOST_NODES}")
        nobody, score = [False] * self.n, math.log1p(loss) if self.geometric else loss
        terms = [[self.part(key, at, nobody, least=True) for at in range(n)] for key, n in enumerate(heights)]
        found = (
            levels
            for levels in product(*map(range, heights))
            if sum(term[level] for term, level in zip(terms, levels)) < score - 1e-9
        )
        return sorted(found, key=sum, reverse=True)

    def better_nodes(self, loss, unchecked):
        """The nodes that may be released by k alone, and lose less."""
        failed, better = [], []
        for levels in self.nodes_below(loss, unchecked):
            if any(all(low <= high for low, high in zip(levels, above)) for above in failed):
                continue
            if self.looks > MOST_LOOKS:
                raise unchecked(f"more than {MOST_LOOKS} records and nodes would be looked at")
            small = self.small(levels)
            if sum(small) > self.limit:
                failed.append(levels)
            elif not all(small) and self.loss(levels, small) < loss - 1e-9:
                better.append(levels)
        return better


def shows_more(lattice, names, levels, small, released, rows, is_local):
    """Whether a record of the release shows more than its node, or something though it is suppressed."""
    for key, (name, level) in enumerate(zip(names, levels)):
        cell_of = {"*": "*"}
        for cell, row in zip(released[name], rows):
            label = "*" if small[row] else lattice.labels[key][row][level]
            is_open = label is None or cell == "*" or (small[row] and is_local)
            if not is_open and cell_of.setdefault(label, cell) != cell:
                return True
    return False


def read_lattice(script, trail, proof, original):
    """The keys of the original and all that is lost in them."""
    step, plan, unchecked = trail["steps"][0], trail["plan"], script["Unchecked"]
    settings, names = step["parameters"], sorted(step["columns"])
    if "why" in proof or settings["objective"] != "loss":
        raise unchecked(proof.get("why", f"{settings['objective']} is not computed here"))
    if step["within"] or step["together"] or len(trail["steps"]) > 1:
        raise unchecked("records were recoded in parts, or in several steps")
    roles = {each.get("role"): name for name, each in plan["columns"].items()}
    persons = original.get(roles.get("person"), [None] * len(original[names[0]]))
    owners = [(row,) if each is None else each for row, each in enumerate(persons)]
    weights = original.get(roles.get("weight"), ["1"] * len(owners))
    if None in weights:
        raise unchecked("some weights are missing")
    missing, columns = [], {}
    for name in names:
        values = read_values(script, plan["columns"][name], original[name])
        missing.append([each is None for each in values])
        columns[name] = read_column(script, plan["columns"][name], proof["hierarchies"][name], values)
    if settings["missing"] != "category" and any(map(any, missing)):
        raise unchecked(f"missing keys count as {settings['missing']}")
    return Lattice(settings, columns, missing, owners, [script["number"](each) for each in weights])


def check_lattice(script, trail, proof, released, original, rows):
    """Whether the release is at the node that is said, and no node that may be released loses less."""
    step, unchecked = trail["steps"][0], script["Unchecked"]
    settings, names, figures = step["parameters"], sorted(step["columns"]), step["figures"]
    asked = f"the levels of {', '.join(names)}"
    try:
        if not set(names) <= set(released):
            raise unchecked("a key was not released")
        lattice = read_lattice(script, trail, proof, original)
        levels, loss, bound = (
            [proof["levels"][name] for name in names],
            figures["loss"],
            figures["loss_at_least"],
        )
        small = lattice.small(levels)
        if not settings["also"]:
            here = lattice.loss(levels, small)
            holds = sum(small) <= lattice.limit and abs(here - loss) <= 1e-9
            holds = holds and not shows_more(lattice, names, levels, small, released, rows, settings["local"])
            sentence = f"{asked} are those of the release, with a loss of {here:.6g}"
            yield ("holds" if holds else "FAULT"), sentence
        better = lattice.better_nodes(bound, unchecked)
        if better and settings["also"]:
            raise unchecked(f"{len(better)} nodes of less loss meet k, and may not meet {settings['also']}")
        holds = not better and bound <= loss + 1e-9
        yield ("holds" if holds else "FAULT"), f"{asked}: no others lose less than {bound:.6g}"
    except unchecked as why:
        yield "not checked", f"{asked}: {why}"
