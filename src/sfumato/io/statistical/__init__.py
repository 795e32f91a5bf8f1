"""The files of SPSS, Stata and SAS, with what they say of their variables: labels, missing codes, levels.

What comes in as an SPSS file goes out as one with its labels, levels of measurement and missing codes, also
after columns were protected or left out; likewise Stata files, which have no levels, and SAS transport files,
which have neither levels nor labels of values. `losses` says what a file would not keep.

These files know one missing text, the empty one; SPSS and SAS also pass over blanks at the end of a text.
Numbers that are all whole come as such. How the special missing values of Stata and SAS come and go is told
in `sfumato.io.statistical.variables`; an SPSS portable file gives its missing codes as plain missing values.
File labels, notes and the formats in which numbers are shown are not kept: notes may tell of persons.
"""

from __future__ import annotations

from sfumato.io.statistical.reading import read
from sfumato.io.statistical.writing import losses, write

__all__ = ["losses", "read", "write"]
