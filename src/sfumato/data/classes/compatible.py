"""Compatible classes: who may be alike when a missing key can be anything.

Two combinations of keys are compatible if they agree wherever both have a value. They are found by pattern
of what is missing: two patterns share some columns, and in these the combinations must be equal. So the work
grows with pairs of patterns, not of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.data.classes.packing import Coding, number, pack
from sfumato.kernels.arrays import Floats, Ints

#: Entries that are held at a time while those of compatible classes are gathered.
_BATCH = 4_000_000


@dataclass(frozen=True)
class Entries:
    """What stands in the classes: a value code, how often, and whose it is (where persons are counted)."""

    classes: Ints  # ascending
    values: Ints
    counts: Ints
    owners: Ints | None = None


@dataclass(frozen=True)
class _Meeting:
    """Classes of one pattern and those they may meet: compatible if they are in the same group."""

    guests: Ints  # classes of the other patterns
    guest_groups: Ints
    host_groups: Ints  # of the classes of the pattern at hand
    n_groups: int


def sums(codes: Ints, amounts: Floats) -> Floats:
    """The sum of ``amounts`` over all classes compatible with each, itself among them.

    ``codes`` are the keys of each class, 0 where missing.
    """
    total = np.zeros(len(codes))
    for hosts, meetings in _meetings(codes):
        for met in meetings:
            by_group = np.bincount(met.guest_groups, weights=amounts[met.guests], minlength=met.n_groups)
            total[hosts] += by_group[met.host_groups]
    return total


def spread_entries(codes: Ints, entries: Entries) -> Entries:
    """Give each class the entries of all classes compatible with it, equal ones (or owners) once."""
    starts = np.searchsorted(entries.classes, np.arange(len(codes) + 1))
    gathered = [
        batch for hosts, meetings in _meetings(codes) for batch in _gather(hosts, meetings, entries, starts)
    ]
    joined = _join(gathered, entries)
    order = np.argsort(joined.classes, kind="stable")
    return _select_entries(joined, order)


def _meetings(codes: Ints) -> Iterator[tuple[Ints, list[_Meeting]]]:
    """Yield the classes of each pattern of missing keys, with those they may meet."""
    patterns, which = np.unique(codes > 0, axis=0, return_inverse=True)
    which = which.ravel()
    columns = [_dense(column) for column in codes.T]
    for number_, pattern in enumerate(patterns):
        hosts = np.flatnonzero(which == number_)
        # Patterns that share the same columns with this one are met at once.
        shared, meets = np.unique(patterns & pattern, axis=0, return_inverse=True)
        yield (
            hosts,
            [
                _meeting(
                    [columns[j] for j in np.flatnonzero(chosen)],
                    hosts,
                    np.flatnonzero(meets.ravel()[which] == i),
                )
                for i, chosen in enumerate(shared)
            ],
        )


def _dense(column: Ints) -> Coding:
    distinct, codes = np.unique(column, return_inverse=True)
    return Coding(codes.astype(np.uint64), max(len(distinct), 1))


def _meeting(columns: list[Coding], hosts: Ints, guests: Ints) -> _Meeting:
    """Group the classes by the columns that both have."""
    rows = np.concatenate((hosts, guests))
    groups, counts = number(pack([Coding(c.codes[rows], c.space) for c in columns], len(rows)))
    return _Meeting(guests, groups[len(hosts) :], groups[: len(hosts)], len(counts))


def _gather(hosts: Ints, meetings: list[_Meeting], entries: Entries, starts: Ints) -> Iterator[Entries]:
    """Yield what the hosts get from all they meet, some hosts at a time."""
    lengths = np.diff(starts)
    in_turn, pieces, work = [], [], np.zeros(len(hosts), dtype=np.int64)
    for met in meetings:
        order = np.argsort(met.guest_groups, kind="stable")
        rows = _ranges(starts[met.guests[order]], lengths[met.guests[order]])
        by_group = np.bincount(met.guest_groups, weights=lengths[met.guests], minlength=met.n_groups).astype(
            np.int64
        )
        in_turn.append(rows)
        pieces.append((np.cumsum(by_group) - by_group, by_group))
        work += by_group[met.host_groups]
    for block in np.split(np.arange(len(hosts)), _cuts(work)):
        if not len(block):
            continue
        found = []
        for met, rows, (firsts, sizes) in zip(meetings, in_turn, pieces, strict=True):
            groups = met.host_groups[block]
            chosen = rows[_ranges(firsts[groups], sizes[groups])]
            taken = _select_entries(entries, chosen)
            found.append(
                Entries(np.repeat(hosts[block], sizes[groups]), taken.values, taken.counts, taken.owners)
            )
        yield _merge_entries(_join(found, entries))


def _cuts(work: Ints) -> Ints:
    """Where to cut so that each block holds about a batch of entries."""
    done = np.cumsum(work) // _BATCH
    return np.flatnonzero(np.diff(done)) + 1


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """The numbers from each start on, as many as its length says, one range behind the other."""
    ends = np.cumsum(lengths)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return np.repeat(starts, lengths) + within


def _join(parts: list[Entries], like: Entries) -> Entries:
    if not parts:
        return _select_entries(like, np.zeros(0, dtype=np.int64))
    owners = None if like.owners is None else np.concatenate([_owners(part) for part in parts])
    classes, values, counts = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("classes", "values", "counts")
    )
    return Entries(classes, values, counts, owners)


def _owners(entries: Entries) -> Ints:
    assert entries.owners is not None  # all parts are of one sort
    return entries.owners


def _select_entries(entries: Entries, rows: Ints) -> Entries:
    owners = None if entries.owners is None else entries.owners[rows]
    return Entries(entries.classes[rows], entries.values[rows], entries.counts[rows], owners)


def _merge_entries(entries: Entries) -> Entries:
    """Sum the counts of equal entries; an owner counts once."""
    columns = [entries.values, entries.classes]
    if entries.owners is not None:
        columns = [entries.owners, *columns]
    order = np.lexsort(columns)
    if not len(order):
        return entries
    opens = np.zeros(len(order), dtype=np.bool_)
    opens[0] = True
    for column in columns:
        opens[1:] |= column[order][1:] != column[order][:-1]
    starts = np.flatnonzero(opens)
    first = _select_entries(entries, order[starts])
    if entries.owners is not None:
        return first
    counts: Ints = np.add.reduceat(entries.counts[order], starts)
    return Entries(first.classes, first.values, counts)
