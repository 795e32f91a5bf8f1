"""The codebook: a file beside a release that says which values the labels of large groups stand for.

A small group is written as the set of its values, ``{Kern|Fresno}``. A group of many has its label in the
file, ``Europe``, and its values in ``release.labels.csv`` beside ``release.csv``, one on each line with the
column and the label. Whoever reads the release reads the codebook with it, so that nothing is lost. A label
that says itself what it stands for, such as ``93***`` for every code that begins so, is not in it. Values
that few have and that are not told (`sfumato.data.generalised.rare_values`) are three dots in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.data.column_store import gather, store_columns
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.text_forms import REST, WOULD_MISREAD, has_rest, named_in, set_text, to_text
from sfumato.io.addresses import is_address
from sfumato.io.atomic import Staging
from sfumato.io.formats import description_path
from sfumato.kernels.arrays import Flags, Ints

#: A group of more values has its label in the file and its values in the codebook.
SHOWN = 5

_COLUMNS = ["column", "label", "value"]
#: How groups are called whose labels would be read as something else, before a number.
_NUMBERED = "group "
#: Sets that are listed at a time.
_AT_ONCE = 2**14


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
    used, places = nodes.used_codes(nodes.codes(column))
    labels = nodes.labels.gather(pl.Series(used).set(pl.Series(used < 0), None))
    texts = to_text(labels.cast(nodes.dtype), nodes)
    large, rests = _large_sets(texts, nodes.sizes[used] * (used >= 0))
    lines = [pl.DataFrame(schema=dict.fromkeys(_COLUMNS, pl.String))]
    if large.any():
        taken = pl.concat([nodes.leaves.rename(""), texts.filter(pl.Series(~large)).rename("")])
        names = _names(labels.filter(pl.Series(large)), taken)
        texts = texts.zip_with(pl.Series(~large), names.gather(np.maximum(np.cumsum(large) - 1, 0)))
        for some in _pieces(np.flatnonzero(large)):
            sizes, values = _values_of(nodes, used, some, rests)
            parts = (
                pl.repeat(column.name, len(values), eager=True),
                texts.gather(np.repeat(some, sizes)),
                values,
            )
            lines.append(store_columns(pl.DataFrame(dict(zip(_COLUMNS, parts, strict=True)))))
    return gather(texts, places).alias(column.name), pl.concat(lines)


def _large_sets(texts: pl.Series, sizes: Ints) -> tuple[Flags, dict[int, list[str]]]:
    """Which texts are sets that the codebook lists; and, where some values are not told, what is named."""
    large = texts.str.starts_with("{").fill_null(value=False).to_numpy() & (sizes > SHOWN)
    rests = {}
    for place in np.flatnonzero(
        large & texts.str.ends_with(f"{REST}}}").fill_null(value=False).to_numpy()
    ).tolist():
        if has_rest(texts[place]):
            rests[place] = [*named_in(texts[place]), REST]
            large[place] = len(rests[place]) > SHOWN + 1
    return large, rests


def _names(labels: pl.Series, taken: pl.Series) -> pl.Series:
    """The labels, with numbers for those that would be read as something else."""
    bad = labels.str.contains(WOULD_MISREAD) | labels.is_in(taken.implode())
    others = pl.concat([taken, labels.filter(~bad).rename("")])
    others = others.filter(others.str.starts_with(_NUMBERED))
    numbers = pl.Series(np.arange(1, int(bad.sum()) + len(others) + 2)).cast(pl.String)
    free = _NUMBERED + numbers
    free = free.filter(~free.is_in(others.implode()))
    return free.gather(np.maximum(bad.cum_sum().to_numpy().astype(np.int64) - 1, 0)).zip_with(bad, labels)


def _values_of(
    nodes: Nodes, used: Ints, places: Ints, rests: Mapping[int, Sequence[str]]
) -> tuple[Ints, pl.Series]:
    """How many values the sets at some places have in the codebook, and which, one set after the other."""
    if not rests:
        return nodes.sizes[used[places]], nodes.leaves.gather(nodes.members_of_all(used[places]))
    listed = [rests.get(each) or nodes.members_of(int(used[each])).to_list() for each in places.tolist()]
    return np.array([len(each) for each in listed]), pl.Series([*chain(*listed)], dtype=pl.String)


def _pieces(places: Ints) -> list[Ints]:
    return np.split(places, range(_AT_ONCE, len(places), _AT_ONCE))


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
