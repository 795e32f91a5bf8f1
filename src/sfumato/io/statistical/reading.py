"""Reads the files of statistical packages, some records at a time."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from sfumato.errors import MissingDependencyError, ReadError
from sfumato.io.formats import Contents, Options, damaged_file
from sfumato.io.sniff import known_encoding
from sfumato.io.statistical import xport
from sfumato.io.statistical.packages import SAS, SPSS, STATA, Package
from sfumato.io.statistical.soundness import require_sound
from sfumato.io.statistical.variables import LETTERS, Variable, tag, to_column

_CELLS = 4_000_000  # read at once: the library makes an object of each
_PASSES = 10  # at most, since what was read before must be passed over each time
_PLAUSIBLE = 2_000  # records for each byte of a file: a header that states more is damaged

_TAGS = {letter: tag(letter) for letter in LETTERS}


@dataclass(frozen=True)
class _Reader:
    """Which function of the library reads the files of a suffix, and what it can be told."""

    package: Package
    function: str
    told_of_missing: bool = True
    told_of_encoding: bool = True


_READERS = {
    ".sav": _Reader(SPSS, "read_sav"),
    ".zsav": _Reader(SPSS, "read_sav"),
    ".por": _Reader(SPSS, "read_por", told_of_missing=False, told_of_encoding=False),
    ".dta": _Reader(STATA, "read_dta"),
    ".xpt": _Reader(SAS, "read_xport", told_of_missing=False),
    ".sas7bdat": _Reader(SAS, "read_sas7bdat"),
}


def library(package: Package) -> ModuleType:
    """Import pyreadstat, which reads and writes all these files."""
    try:
        return importlib.import_module("pyreadstat")
    except ImportError:
        purpose = f"a file of {package.name}"
        raise MissingDependencyError.of("pyreadstat", extra="files", purpose=purpose) from None


def read(path: Path, options: Options) -> Contents:
    """Read a file of SPSS, Stata or SAS, with what it says of its columns."""
    reader = _READERS[path.suffix.lower()]
    allowed = {"rows", "text"} | ({"encoding"} if reader.told_of_encoding else set())
    options.refuse_unless(frozenset(allowed), what=f"{reader.package.name} files")
    source = _StatisticalFile(path, reader, options.encoding)
    require_sound(path, reader.package.name)
    metadata = source.metadata()
    records = _RawRecords(source, metadata)
    records.read(options.rows)
    columns = [to_column(variable, reader.package.clock) for variable in records.variables()]
    frame = pl.DataFrame([series for series, _ in columns])
    return Contents(frame, {series.name: facts for series, facts in columns if facts})


@dataclass(frozen=True)
class _StatisticalFile:
    """A file, and how the library is called for it."""

    path: Path
    reader: _Reader
    encoding: str | None

    def call(self, **how: Any) -> tuple[Mapping[str, list[Any]], Any]:
        """Read something of the file; no error quotes what it is about."""
        pyreadstat = library(self.reader.package)
        function: Callable[..., Any] = getattr(pyreadstat, self.reader.function)
        if self.reader.told_of_missing:
            how["user_missing"] = True
        if self.encoding is not None:
            name = known_encoding(self.encoding).replace("_", "-")
            how["encoding"] = {"mac-roman": "macintosh"}.get(name, name)  # as iconv calls it
        try:
            cells, metadata = function(
                str(self.path.absolute()), output_format="dict", disable_datetime_conversion=True, **how
            )
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
            raise self._fault(str(error)) from None
        except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError):
            raise self._fault("") from None
        return cells, metadata

    def metadata(self) -> Any:
        """What the file says of its variables."""
        _, metadata = self.call(metadataonly=True)
        if not metadata.column_names:
            raise ReadError(f"`{self.path.name}` has no variables")
        if (
            not all(metadata.column_names)
            or (metadata.number_rows or 0) > _PLAUSIBLE * self.path.stat().st_size
        ):
            raise self._fault("")
        return metadata

    def _fault(self, reason: str) -> ReadError:
        if "encoding" in reason or "character set" in reason:
            return ReadError(
                f"the text of `{self.path.name}` is not in the encoding that is stated for it",
                hint="give the right one, for example encoding='cp1252'",
            )
        return damaged_file(self.path.name, self.reader.package.name)


@dataclass
class _RawRecords:
    """The records of a file as they are read: text, or numbers with a `tag` in the place of each letter."""

    source: _StatisticalFile
    metadata: Any
    blocks: list[pl.DataFrame] = field(default_factory=list, repr=False)
    letters: dict[str, set[str]] = field(default_factory=dict)
    tagged: Counter[str] = field(default_factory=Counter)

    def is_text(self, name: str) -> bool:
        """Whether a variable holds text."""
        return bool(self.metadata.readstat_variable_types[name] == "string")

    def read(self, rows: int | None) -> None:
        """Read the records block by block: the library needs several times the room that they take."""
        path, total, layout = self.source.path, self.metadata.number_rows, None
        if path.suffix.lower() == ".xpt":
            widths = [self.metadata.variable_storage_width[name] for name in self.metadata.column_names]
            layout = xport.layout(path, widths)
            total = layout.records
        self.blocks.append(self._block({name: [] for name in self.metadata.column_names}, {}))
        for offset, limit in self._blocks(rows, total):
            cells, metadata = self.source.call(row_offset=offset, row_limit=limit)
            block = self._block(cells, metadata.missing_user_values)
            if layout is not None:
                block = self._with_letters(block, layout, offset)
            elif total is not None and block.height < limit:
                raise damaged_file(path.name, self.source.reader.package.name)
            self.blocks.append(block)

    def _blocks(self, rows: int | None, total: int | None) -> Iterator[tuple[int, int]]:
        """Where each block begins and how many records it has; a file of unknown length is read at once."""
        if total is None:
            if rows != 0:
                yield 0, rows or 0  # 0 is for all
            return
        wanted = total if rows is None else min(rows, total)
        step = max(_CELLS // len(self.metadata.column_names), wanted // _PASSES + 1)
        for offset in range(0, wanted, step):
            yield offset, min(step, wanted - offset)

    def _block(self, cells: Mapping[str, list[Any]], lettered: Mapping[str, Any]) -> pl.DataFrame:
        columns = []
        for name, values in cells.items():
            if self.is_text(name):
                columns.append(pl.Series(name, values, dtype=pl.String).str.strip_chars_end(" "))
            elif name in lettered:
                numbers = pl.Series(name, values, dtype=pl.Float64, strict=False)
                found = pl.Series(values, dtype=pl.String, strict=False)
                columns.append(self._restore_tags(numbers, found.set(numbers.is_not_null(), None)))
            else:
                columns.append(pl.Series(name, values, dtype=pl.Float64).fill_nan(None))
        return pl.DataFrame(columns)

    def _with_letters(self, block: pl.DataFrame, layout: xport.XportLayout, offset: int) -> pl.DataFrame:
        """Find the letters of a transport file, which the library takes for plain missing values."""
        columns = []
        for place, series in enumerate(block):
            if series.dtype.is_numeric() and series.null_count():
                found = pl.Series(xport.letters(layout, place, range(offset, offset + block.height)))
                columns.append(
                    self._restore_tags(series, found.set(series.is_not_null() | (found == ""), None))
                )
            else:
                columns.append(series)
        return pl.DataFrame(columns)

    def _restore_tags(self, numbers: pl.Series, found: pl.Series) -> pl.Series:
        """Put the numbers that stand for letters in their places."""
        self.letters.setdefault(numbers.name, set()).update(found.drop_nulls().unique())
        self.tagged[numbers.name] += len(found) - found.null_count()
        tags = found.str.to_lowercase().replace_strict(
            list(_TAGS), list(_TAGS.values()), default=None, return_dtype=pl.Float64
        )
        return numbers.zip_with(tags.is_null(), tags)

    def variables(self) -> Iterator[Variable]:
        """The variables with all that the file says of them."""
        frame = pl.concat(self.blocks)
        for name in self.metadata.column_names:
            self._require_no_others(frame[name])
            yield self._variable(frame[name])

    def _require_no_others(self, values: pl.Series) -> None:
        first, last = _TAGS["_"], _TAGS["z"]
        if self.tagged[values.name] and values.is_between(first, last).sum() != self.tagged[values.name]:
            raise ReadError(
                f"`{values.name}` has special missing values and numbers from {first} to {last}, by which "
                "these are represented here",
                hint="recode one of the two in the file",
            )

    def _variable(self, values: pl.Series) -> Variable:
        name, metadata = values.name, self.metadata
        labels = {key: label for key, label in metadata.variable_value_labels.get(name, {}).items() if label}
        text = self.is_text(name)
        letters = self.letters.get(name, set()) | {key for key in labels if isinstance(key, str) and not text}
        tags = {tag(letter): letter.lower() for letter in sorted(letters)}
        ranges = [(ends["lo"], ends["hi"]) for ends in metadata.missing_ranges.get(name, ())]
        return Variable(
            name,
            values,
            label=metadata.column_names_to_labels.get(name) or "",
            labels={tag(key) if key in letters else key: label for key, label in labels.items()},
            codes=(*(lo for lo, hi in ranges if lo == hi), *tags),
            span=next((ends for ends in ranges if ends[0] != ends[1]), None),
            tags=tags,
            level=metadata.variable_measure.get(name, "unknown"),
            shown_as=metadata.original_variable_types.get(name) or "",
        )
