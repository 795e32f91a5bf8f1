"""Writes the files of statistical packages, with all they can hold of what is known of the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.errors import WriteError, quoted
from sfumato.io.formats import FileDialect
from sfumato.io.statistical import packages, xport
from sfumato.io.statistical.packages import SAS, SPSS, STATA, Package
from sfumato.io.statistical.reading import library
from sfumato.io.statistical.variables import Variable, from_column

_STATA_VERSION = 14  # which later ones read as well, and the first that knows all letters
_OLD_NAME, _OLD_LABEL, _OLD_TEXT = 8, 40, 200  # what fits the transport files that every program reads


@dataclass(frozen=True)
class _Call:
    """A call of the library: its function, the records and what else it is told.

    ``letters`` has the special missing values that are put into the file afterwards.
    """

    function: str
    frame: pl.DataFrame = field(repr=False)
    how: Mapping[str, Any] = field(repr=False)
    letters: Mapping[str, pl.Series] = field(default_factory=dict, repr=False)


def write(table: Table, path: Path, suffix: str, like: FileDialect) -> None:  # noqa: ARG001
    """Write a file of SPSS, Stata or SAS."""
    package = _package_of(suffix)
    call = _CALLS[suffix](_make_variables(table, package))
    pyreadstat = library(package)
    try:
        getattr(pyreadstat, call.function)(call.frame, str(path.absolute()), **call.how)
    except (
        pyreadstat.ReadstatError,
        pyreadstat.PyreadstatError,
        pl.exceptions.PolarsError,
        ValueError,
        TypeError,
    ):  # their text may quote cells
        raise WriteError(f"a file of {package.name} cannot hold some of the records") from None
    if call.letters:
        _put_letters(call, path, pyreadstat.read_xport)


def losses(table: Table, suffix: str) -> list[str]:
    """Say what a file of this suffix would not keep of what is known of the columns."""
    package = _package_of(suffix)
    variables = _make_variables(table, package)
    lost = {
        "labels are cut": packages.cut_labels(variables, package),
        "the order of values is not kept": [
            variable.name for variable in variables if variable.is_text and table.schema[variable.name].order
        ],
    }
    if package is not SPSS:
        lost |= {
            f"{package.name} has no ordinal variables": [v.name for v in variables if v.level == "ordinal"],
            f"{package.name} has no missing codes for text": [
                v.name for v in variables if v.is_text and v.codes
            ],
            "missing codes become special missing values": [
                v.name for v in variables if not v.is_text and (v.span or set(v.codes) - set(v.tags))
            ],
            "labels of values are not kept": [v.name for v in variables if _loses_labels(v, package)],
        }
    return [f"{what}: {quoted(names)}" for what, names in lost.items() if names]


def _loses_labels(variable: Variable, package: Package) -> bool:
    letters = packages.letters_of(variable, package)
    meant = {key for key, label in variable.labels.items() if label != f".{letters.get(key)}"}
    return len(meant) > len(_stata_labels(variable, letters) if package is STATA else ())


def _package_of(suffix: str) -> Package:
    written = {".sav": SPSS, ".zsav": SPSS, ".dta": STATA, ".xpt": SAS}
    if suffix not in written:
        raise WriteError(
            f"`{suffix}` files cannot be written, only read",
            hint=f"write one of {', '.join(written)}",
        )
    return written[suffix]


def _make_variables(table: Table, package: Package) -> list[Variable]:
    """Make variables of all columns, or say everything in which they do not fit."""
    if not table.names:
        raise WriteError("the table has no columns to write")
    faults = [WriteError(fault) for fault in packages.name_faults(table.names, package)]
    variables = []
    for name in table.names:
        try:
            variable = from_column(table.frame[name], table.schema[name], package.clock)
            faults += [WriteError(fault) for fault in packages.value_faults(variable, package)]
            packages.require_codes(variable, package)
        except WriteError as error:
            faults.append(error)
            continue
        variables.append(variable)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        listed = "".join(f"\n  - {fault.message}" for fault in faults[:20])
        raise WriteError(
            f"the columns do not fit a file of {package.name}, for {len(faults)} reasons:{listed}"
        )
    return variables


def _column_labels(variables: Iterable[Variable], package: Package) -> dict[str, str]:
    cut = {variable.name: package.fitting(variable.label, package.longest_label) for variable in variables}
    return {name: label for name, label in cut.items() if label}


def _formats(variables: Iterable[Variable]) -> dict[str, str]:
    return {variable.name: variable.shown_as for variable in variables if variable.shown_as}


# SPSS ------------------------------------------------------------------------------------------------------


def _spss(variables: list[Variable], *, compress: bool) -> _Call:
    labels = {
        variable.name: {
            key if variable.is_text else float(key): SPSS.fitting(label, SPSS.longest_meaning)
            for key, label in variable.labels.items()
        }
        for variable in variables
    }
    missing = {variable.name: packages.spss_missing(variable) for variable in variables}
    whole = {variable.name: "F8.0" for variable in variables if variable.values.dtype.is_integer()}
    how = {
        "compress": compress,
        "row_compress": not compress,
        "column_labels": _column_labels(variables, SPSS),
        "variable_value_labels": {name: meant for name, meant in labels.items() if meant},
        "missing_ranges": {name: codes for name, codes in missing.items() if codes},
        "variable_measure": {variable.name: variable.level for variable in variables},
        "variable_format": whole | _formats(variables),
    }
    return _Call("write_sav", pl.DataFrame([_spss_values(variable) for variable in variables]), how)


def _spss_values(variable: Variable) -> pl.Series:
    values = variable.values
    if not variable.is_text:
        return values.cast(pl.Float64)
    # The library makes a variable as wide as its values: blanks behind the first make room for the labels.
    room = max((len(key.encode()) for key in variable.labels), default=0)
    if not len(values) or int(values.str.len_bytes().max()) >= room:  # type: ignore[arg-type]
        return values
    first = values[0] + " " * (room - len(values[0].encode()))
    return values.scatter(0, first)


# Stata -----------------------------------------------------------------------------------------------------


def _stata(variables: list[Variable]) -> _Call:
    letters = {
        variable.name: _letters_in_use(variable, packages.letters_of(variable, STATA))
        for variable in variables
    }
    labels = {v.name: meant for v in variables if (meant := _stata_labels(v, letters[v.name]))}
    room = STATA.longest_name - len(str(len(labels)))
    long = next((name for name in labels if len(name) > room), None)
    if long is not None:  # the library names a set of labels after its variable, with a number behind
        raise WriteError(f"the name `{long}` is longer than {room} letters, and its values have labels")
    how = {
        "version": _STATA_VERSION,
        "column_labels": _column_labels(variables, STATA),
        "variable_value_labels": labels,
        "missing_user_values": {name: sorted(found.values()) for name, found in letters.items() if found},
        "variable_format": _formats(variables),
    }
    frame = pl.DataFrame([_stata_values(variable, letters[variable.name]) for variable in variables])
    return _Call("write_dta", frame, how)


def _letters_in_use(variable: Variable, letters: Mapping[Any, str]) -> dict[Any, str]:
    """The letters that are met or have a label: the others have no place in a file."""
    met = {*variable.values.filter(variable.coded()).unique(), *variable.labels}
    return {code: letter for code, letter in letters.items() if code in met}


def _stata_labels(variable: Variable, letters: Mapping[Any, str]) -> dict[Any, str]:
    """The labels of whole numbers and special missing values; Stata has no others."""
    labels: dict[Any, str] = {}
    for key, label in variable.labels.items():
        fitting = STATA.fitting(label, STATA.longest_meaning)
        if key in letters:
            if label != f".{letters[key]}":  # which is what it is called in a frame, and no label
                labels[letters[key]] = fitting
        elif not variable.is_text and float(key).is_integer() and abs(key) <= packages.STATA_WHOLE:
            labels[int(key)] = fitting
    return labels


def _stata_values(variable: Variable, letters: Mapping[Any, str]) -> pl.Series:
    if variable.is_text:
        return variable.values
    numbers, marks = _split_missing_codes(variable, letters)
    whole = (numbers == numbers.floor()) & (numbers.abs() <= packages.STATA_WHOLE)
    numbers = numbers.cast(pl.Int32) if whole.all() else numbers
    if not letters:
        return numbers
    cells = np.array(numbers.to_list(), dtype=object)  # the library wants letters among the numbers
    if marks is not None:
        lettered = marks.is_not_null()
        cells[lettered.to_numpy()] = marks.filter(lettered).to_list()
    return pl.Series(variable.name, cells.tolist(), dtype=pl.Object)


def _split_missing_codes(
    variable: Variable, letters: Mapping[Any, str]
) -> tuple[pl.Series, pl.Series | None]:
    """The numbers with nothing in the place of missing codes, and the letters of these, if there are any."""
    numbers = variable.values.cast(pl.Float64)
    codes = pl.Series(list(letters), dtype=pl.Float64, strict=False)
    marks = numbers.replace_strict(codes, list(letters.values()), default=None, return_dtype=pl.String)
    if marks.null_count() == len(marks):
        return numbers, None
    return numbers.set(marks.is_not_null(), None), marks


# SAS -------------------------------------------------------------------------------------------------------


def _sas(variables: list[Variable]) -> _Call:
    columns, letters = [], {}
    for variable in variables:
        numbers, marks = variable.values, None
        if not variable.is_text:
            numbers, marks = _split_missing_codes(variable, packages.letters_of(variable, SAS))
        columns.append(numbers)
        if marks is not None:
            letters[variable.name] = marks.str.to_uppercase()
    frame = pl.DataFrame(columns)
    if len(frame) and all(v.is_text for v in variables) and not "".join(frame.row(-1)).strip(" "):
        raise WriteError(
            "the last record has no text, and a SAS transport file would lose it",
            hint="add a column of numbers, or write another format",
        )
    how = {
        "column_labels": _column_labels(variables, SAS),
        "file_format_version": 5 if all(_fits_old(variable) for variable in variables) else 8,
        "variable_format": _formats(variables),
    }
    return _Call("write_xport", frame, how, letters)


def _fits_old(variable: Variable) -> bool:
    longest = variable.values.str.len_bytes().max() if variable.is_text else 0
    name = variable.name
    short = len(name) <= _OLD_NAME and len(variable.label.encode()) <= _OLD_LABEL
    return short and name == name.upper() and int(longest or 0) <= _OLD_TEXT  # type: ignore[arg-type]


def _put_letters(call: _Call, path: Path, read: Callable[..., Any]) -> None:
    _, metadata = read(str(path.absolute()), metadataonly=True, output_format="dict")
    layout = xport.layout(path, [metadata.variable_storage_width[name] for name in call.frame.columns])
    for place, name in enumerate(call.frame.columns):
        if name in call.letters:
            xport.put_letters(layout, place, call.letters[name].fill_null("").to_numpy())


_CALLS: Mapping[str, Callable[[list[Variable]], _Call]] = {
    ".sav": lambda variables: _spss(variables, compress=False),
    ".zsav": lambda variables: _spss(variables, compress=True),
    ".dta": _stata,
    ".xpt": _sas,
}
