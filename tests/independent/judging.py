"""Carry out a case by the way every release goes, and hold what is claimed against what the file says."""

import math

import polars as pl

from independent import written_risks as oracle
from independent.mixed_plans import ORDERS, SEPARATOR, TYPES, write_table
from seeds import LARGE
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.errors import SfumatoError
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release

SAFER_IF_HIGH = {"k-anonymity", "km-anonymity", "l-diversity"}
LINKS = {
    "exact-match": oracle.exact_match, "dbrl": oracle.linkage, "replicated-uniques": oracle.replicated_uniques,
    "disco": oracle.disco,
}  # fmt: skip


def release(case, folder):
    """Release the table of a case into a folder; None where a method refuses it."""
    write_table(case, folder)
    try:
        plan = Plan.from_dict(case["plan"], folder=folder)
        outcome = carry_out(plan, Run(seed=LARGE + int(case["seed"])))
        decision = decide(outcome, subject="it", override="it is looked at, and does not leave")
        write_release(decision, Destination(plan))
    except SfumatoError:
        return None
    return decision


def convictions(case, folder):
    """Sentences about claims that the written file does not bear out; None where nothing was released."""
    found = comparisons(case, folder)
    return None if found is None else [sentence for _, sentence in found if sentence]


def comparisons(case, folder):
    """The measures whose claims were counted again, and a sentence where the file does not bear one out."""
    decision = release(case, folder)
    if decision is None:
        return None
    counted = Counted(case, folder, decision.outcome.parts[""])
    found = []
    for judgement in decision.judgements:
        measure, score = judgement.requirement.measure, judgement.score
        claim = _claim(measure, score)
        counts = None if claim is None else counted.of(measure)
        if counts is not None:
            exact = score.status is Status.OK and counted.is_definition(measure, score)
            found.append((measure.name, _fault(measure, claim, counts, exact=exact)))
    return found


def _fault(measure, claim, found, *, exact):
    if abs(claim - found) <= 1e-9 * max(1.0, abs(found) if math.isfinite(found) else 1.0):
        return ""
    is_riskier = found < claim if measure.name in SAFER_IF_HIGH else found > claim
    if not is_riskier and not exact:
        return ""
    what = "understated" if is_riskier else "overstated"
    return f"{what}: {measure} is said to be {claim:.6g}, and the file has {found:.6g}"


def _claim(measure, score):
    """The number that a gate would rely on; None where it would rely on none."""
    if score.status is Status.OK:
        return score.value
    if score.status is Status.APPROXIMATE and score.interval_is_proved:
        return score.interval[0 if measure.better == "high" else 1]
    return None


class Counted:
    """What the oracle counts in the files of a release."""

    def __init__(self, case, folder, part):
        self.case, self.released = case, part.release
        plan, columns = case["plan"], case["plan"]["columns"]
        of = lambda role: tuple(name for name in columns if columns[name]["role"] == role)  # noqa: E731
        missing = {name: frozenset(map(str, each.get("missing", ()))) for name, each in columns.items()}
        values = case["values"]
        whole = {name for name in values if all(each.lstrip("-").isdigit() for each in values[name] if each)}
        known = next((tuple(each["columns"]) for each in plan.get("scenarios", ())), of("key"))
        kinds = {name: TYPES.get(name, "nominal") for name in columns}
        self.columns = oracle.Columns(kinds, known, of("sensitive"), missing, frozenset(whole), ORDERS)
        n = len(next(iter(values.values())))
        read = {name: _as_read(cells) for name, cells in values.items()}
        rows = [dict(zip(read, each, strict=True)) for each in zip(*read.values(), strict=True)]
        self.known = oracle.cells_of(rows, self.columns)
        register = case.get("register", {})
        strangers = [dict(zip(register, each, strict=True)) for each in zip(*register.values(), strict=True)]
        self.register = oracle.cells_of(strangers, self.columns)
        self.owners = [f"{each}" or row for row, each in enumerate(values.get("person", [""] * n))]
        homes = values.get("household", [""] * n)
        self.tables = {
            name: self._read(path)
            for name, path in _paths(folder, plan["output"]["path"], part.release.tables)
        }
        first = next(iter(self.tables.values()))
        sources = part.release.source_rows
        self.sources = (
            [None] * len(first) if sources is None else [None if row < 0 else int(row) for row in sources]
        )
        persons = [None if row is None else self.owners[row] for row in self.sources]
        if sources is None:
            persons = [("row", row) for row in range(len(first))]
        joins = tuple(
            name for name in ("person", "household")
            if first and name in first[0] and len({each[name] for each in first}) < len(first)
        )  # fmt: skip
        counted = persons
        if joins and joins[-1] == "household":
            counted = [
                f"h {homes[row]}" if row is not None and homes[row] else owner
                for row, owner in zip(self.sources, persons, strict=True)
            ]
        self.plain = oracle.Seen(first, persons, self._shown(first), joins, tuple(counted))
        self.learning = self._learning()

    def _read(self, path):
        labels = path.with_name(f"{path.stem}.labels.csv")
        groups = oracle.read_labels(labels) if labels.exists() else None
        if path.suffix == ".parquet":
            rows = [
                {name: _text(each) for name, each in row.items()} for row in pl.read_parquet(path).to_dicts()
            ]
        else:
            rows = oracle.read_rows(path, "\t" if path.suffix == ".tsv" else ",")
        self.sets = [_items(row["items"]) for row in rows if "items" in row]
        return oracle.cells_of(rows, self.columns, groups)

    def _shown(self, records):
        """The columns that are still there."""
        there = records[0] if records else {}
        keys, sensitive = (
            tuple(name for name in names if name in there)
            for names in (self.columns.keys, self.columns.sensitive)
        )
        return self.columns._replace(keys=keys, sensitive=sensitive)

    def _learning(self):
        """Where sensitive values stand, and what tells them; who knows some of them learns the others, too."""
        sensitive = self.columns.sensitive
        unknown = tuple(name for name in sensitive if name not in self.columns.keys)
        wanted = [sensitive] if unknown in {sensitive, ()} else [sensitive, unknown]
        return [each for learnt in wanted for each in self._learning_of(learnt)]

    def _learning_of(self, learnt):
        apart = len(self.tables) > 1 or bool(self.released.bucketed_columns)
        for records in self.tables.values() if apart else [self.plain.records]:
            shown = self._shown(records)
            shown = shown._replace(sensitive=tuple(name for name in learnt if name in shown.sensitive))
            if not apart:
                yield self.plain._replace(columns=shown)
            elif shown.sensitive:
                beside = () if len(self.tables) == 1 else [name for name in shown.keys if name not in learnt]
                rows = [row for row in records for _ in range(int(row["count"][1]) if "count" in row else 1)]
                yield oracle.Seen(rows, [*range(len(rows))], shown, bucket=("bucket", *beside))

    def of(self, measure):
        """The oracle's number for a measure; None where it has none."""
        policy, name = getattr(measure, "missing", ""), measure.name
        if name in {"k-anonymity", "uniqueness", "delta-presence", *LINKS} and not self._are_keys_plain():
            return None
        if name == "km-anonymity" and not self.sets:
            return None
        if name in LINKS:
            return self._links(name)
        of_keys = {
            "km-anonymity": lambda: oracle.km_anonymity(self.sets, self.plain.persons, measure.m, policy),
            "k-anonymity": lambda: oracle.k_anonymity(self.plain, policy),
            "uniqueness": lambda: oracle.uniqueness(self.plain, policy, self._domains()),
            "delta-presence": lambda: oracle.delta_presence(self.plain, self.register, policy),
        }
        if name in of_keys:
            return of_keys[name]()
        ways = {
            "l-diversity": lambda seen: oracle.l_diversity(seen, policy, measure.kind),
            "t-closeness": lambda seen: oracle.t_closeness(seen, policy, measure.distance),
            "alpha-k-anonymity": lambda seen: oracle.alpha(seen, policy),
            "delta-disclosure": lambda seen: oracle.delta_disclosure(seen, policy),
        }
        found = [each for seen in self.learning if (each := ways[name](seen)) is not None]
        worst = min if measure.better == "high" else max
        return worst(found, default=None)

    def _are_keys_plain(self):
        """Whether all keys that are still there stand in the first file, each beside its record."""
        shown = self.plain.columns.keys
        moved = {each for group in self.released.bucketed_columns for each in group}
        return self.plain.records and shown and len(shown) == len(self._kept()) and not moved & set(shown)

    def _links(self, name):
        """What an intruder finds who knows what was there; None where that was coarse already."""
        keys = self.plain.columns.keys
        if any(each[key][0] not in {"is", "gone"} for each in self.known for key in keys):
            return None
        if name in {"exact-match", "dbrl"}:
            people = [  # counterfeits that say nothing are seen, and hide nobody
                row
                for row, person in enumerate(self.plain.persons)
                if person is not None or not all(oracle.is_gone(self.plain.records[row][key]) for key in keys)
            ]
            seen = self.plain._replace(
                records=[self.plain.records[row] for row in people],
                persons=[self.plain.persons[row] for row in people],
            )
            return LINKS[name](seen, self.known, self.owners, keys)
        if self.released.bucketed_columns or len(self.tables) > 1:
            return None
        size = None
        if self.released.source_rows is None and not self.released.synthetic:
            by_person = len(self.known) / len(set(self.owners))
            size = math.ceil(len(self.plain.records) / by_person)
        keys = keys if name != "disco" else tuple(each for each in keys if each not in self.columns.sensitive)
        return LINKS[name](self.plain, self.known, self.owners, keys, size=size)

    def is_definition(self, measure, score):
        """Whether the number must be the oracle's, and not only as bad: it looks at nothing else."""
        coded = any(self.columns.missing.get(name) for name in self.columns.keys)
        starred = any(
            "*" in self.case["values"][name] and self.columns.kinds[name] == "nominal"
            for name in self.columns.keys
        )
        return not (
            "approach" in score.details
            or (measure.name in {"exact-match", "dbrl"} and self.plain.joins)  # units are linked, too
            or self._is_untold()
            or (measure.name == "uniqueness" and coded)  # codes are values that a wildcard stands for
            or (
                measure.name == "uniqueness" and measure.missing == "any" and starred
            )  # a category that hides nobody, and to who reads the file a wildcard that hides everybody
        )

    def _is_untold(self):
        """Whether some sets are of values that the file does not tell."""
        cells = (each[name] for each in self.plain.records for name in self.plain.columns.keys)
        return any(cell[0] == "set" and oracle.REST in cell[1] for cell in cells)

    def _kept(self):
        """The keys that some table still shows."""
        return [
            name
            for name in self.columns.keys
            if any(name in records[0] for records in self.tables.values() if records)
        ]

    def _domains(self):
        domains = {}
        for name in self.columns.keys:
            cells = [each[name] for each in self.known]
            values = [end for cell in cells if cell[0] in {"is", "range"} for end in cell[1:]]
            if name in ORDERS:
                domains[name] = set(ORDERS[name])
            elif self.columns.kinds[name] in {"continuous", "date"}:
                domains[name] = (min(values), max(values)) if values else (0.0, 0.0)
            else:
                domains[name] = set(values)
        return domains


def _paths(folder, path, tables):
    place = folder / path
    if len(tables) == 1:
        return [(next(iter(tables)), place)]
    return [(each, place.with_name(f"{place.stem}.{each}{place.suffix}")) for each in tables]


def _as_read(cells):
    """The cells of a column: in one of whole numbers nobody tells −0 from 0."""
    return ["0" if each == "-0" else each for each in cells] if {*cells} <= {"", "0", "-0"} else cells


def _items(text):
    """The items of a set; None where it is missing. One that is empty is a separator alone."""
    return frozenset(text.split(SEPARATOR)) - {""} if text else None


def _text(value):
    """A cell of a Parquet file as a text file would write it."""
    if value is None:
        return ""
    if isinstance(value, list):
        return SEPARATOR.join(value) or SEPARATOR
    if isinstance(value, dict):
        low, high = (_text(value[end]) for end in ("lo", "hi"))
        return "*" if not low and not high else low if low == high else f"[{low};{high}]"
    return str(value)
