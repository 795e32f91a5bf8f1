"""The codebook: a file beside a release that says which values the labels of large groups stand for.

A small group is written as the set of its values, ``{Kern|Fresno}``. A group of many has its label in the
file, ``Europe``, and its values in ``release.labels.csv`` beside ``release.csv``, one on each line with the
column and the label. Whoever reads the release reads the codebook with it, so that nothing is lost. A label
that says itself what it stands for, such as ``93***`` for every code that begins so, is not in it. Values
that few have and that are not told (`sfumato.data.generalised.rare_values`) are three dots in both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.text_forms import REST, WOULD_MISREAD, has_rest, named_in, set_text, to_text
from sfumato.io.addresses import is_address
from sfumato.io.atomic import Staging
from sfumato.io.formats import description_path
from sfumato.kernels.arrays import Codes, Ints

#: A group of more values has its label in the file and its values in the codebook.
SHOWN = 5

_COLUMNS = ["column", "label", "value"]


def codebook_path(path: Path) -> Path:
    """Where the codebook of a file stands."""
    return path.parent / f"{path.stem}.labels.csv"


def files_beside(path: Path) -> list[Path]:
    """What may be written together with a file: its codebook, and the description that it needs."""
    described = description_path(path)
    return [codebook_path(path), *([described] if described else [])]


def with_codebooks(originals: Sequence[str | Path]) -> list[str | Path]:
    """Files and what is beside them, which is as little overwritten as the originals themselves."""
    files = [Path(each) for each in originals if not is_address(each)]
    return [*originals, *(beside for each in files for beside in files_beside(each))]


def text_and_codebook(column: pl.Series, nodes: Nodes) -> tuple[pl.Series, pl.DataFrame]:
    """A column of labels as text, and the lines of the codebook that it needs."""
    used, places = _used_codes(nodes.codes(column), len(nodes.labels))
    texts = to_text(nodes.labels.gather(np.maximum(used, 0)).cast(nodes.dtype), nodes).to_list()
    texts = [text if code >= 0 else None for code, text in zip(used, texts, strict=True)]
    leaves, every, starts = nodes.leaves.to_list(), nodes.members.tolist(), nodes.starts.tolist()
    members = {}
    for place in np.flatnonzero((used >= 0) & (nodes.sizes[used] > SHOWN)).tolist():
        if texts[place][0] == "{":
            code = int(used[place])
            values = [leaves[leaf] for leaf in every[starts[code] : starts[code + 1]]]
            members[place] = [*named_in(texts[place]), REST] if has_rest(texts[place]) else values
    members = {place: own for place, own in members.items() if len(own) > SHOWN + has_rest(texts[place])}
    taken = {*nodes.leaves.to_list(), *texts}
    numbered = (f"group {number}" for number in count(1))  # gone through once, however many labels need one
    names = []
    for place in members:
        name = str(nodes.labels[int(used[place])])
        if re.match(WOULD_MISREAD, name) or name in taken:
            name = next(each for each in numbered if each not in taken)
        taken.add(name)
        names.append(name)
        texts[place] = name
    labels = list(
        chain.from_iterable([name] * len(own) for name, own in zip(names, members.values(), strict=True))
    )
    lines = _lines([column.name] * len(labels), labels, list(chain.from_iterable(members.values())))
    return pl.Series(column.name, texts, dtype=pl.String).gather(places), lines


def _used_codes(codes: Codes, n_labels: int) -> tuple[Ints, Ints]:
    """The codes that occur, in their order, −1 first, and the place of each record's among them."""
    found = np.zeros(n_labels + 1, dtype=np.bool_)
    found[codes] = True  # the last is −1
    used = np.append(np.flatnonzero(found[-1:]) - 1, np.flatnonzero(found[:-1]))
    places = np.zeros(n_labels + 1, dtype=np.int64)
    places[used] = np.arange(len(used))
    return used, places[codes]


def _lines(columns: Sequence[str], labels: Sequence[str], values: Sequence[str]) -> pl.DataFrame:
    parts = dict(zip(_COLUMNS, (columns, labels, values), strict=True))
    return pl.DataFrame(parts, schema=dict.fromkeys(_COLUMNS, pl.String))


def stage(lines: pl.DataFrame, path: Path, staging: Staging) -> None:
    """Stage the codebook of a file; an older one that is not needed any more goes with the file it was of."""
    place = codebook_path(path)
    if len(lines):
        with staging.open(place) as file:
            lines.write_csv(file)
    elif staging.overwrite and read_lines(path) is not None and staging.original_at(place) is None:
        staging.remove(place)


def expand_labels(frame: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """The records of a file with the sets of values in the place of the labels that its codebook has."""
    for (name,), part in lines.group_by("column", maintain_order=True):
        if name not in frame.columns or frame.schema[str(name)] != pl.String:
            continue
        groups = part.group_by("label", maintain_order=True).agg("value")
        texts = [
            set_text(values[:-1], rest=True) if values[-1] == REST else set_text(values)
            for values in groups["value"].to_list()
        ]
        frame = frame.with_columns(
            frame[str(name)].replace(groups["label"], pl.Series(texts)).alias(str(name))
        )
    return frame


def read_lines(path: Path) -> pl.DataFrame | None:
    """The lines of a file's codebook; None if there is none, or the file of that name is something else."""
    place = codebook_path(path)
    if not place.is_file():
        return None
    try:
        lines = pl.read_csv(place, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError):
        return None
    return lines.drop_nulls() if lines.columns == _COLUMNS else None
