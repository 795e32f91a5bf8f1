"""Check this installation, and list its packages."""

from __future__ import annotations

import importlib
import os
from importlib.metadata import PackageNotFoundError, version

import click

from sfumato.cli._options import json_option, quiet_option
from sfumato.cli._screen import emit_json, emit_table, running
from sfumato.errors import MissingDependencyError
from sfumato.version import __version__

#: Optional packages, the extra each comes with, and what for.
_EXTRAS = {
    "statsmodels": ("data", "the data set fair"),
    "pandas": ("frames", "pandas tables"),
    "pyarrow": ("frames", "Arrow tables"),
    "fastexcel": ("files", "reading Excel files"),
    "xlsxwriter": ("files", "writing Excel files"),
    "pyreadstat": ("files", "files of SPSS, Stata and SAS"),
    "adbc-driver-sqlite": ("databases", "tables of SQLite"),
    "adbc-driver-postgresql": ("databases", "tables of PostgreSQL"),
    "optuna": ("tune", "searching for recipes, as `release` and `tune` do"),
    "splink": ("linkage", "probabilistic record linkage"),
    "scikit-learn": ("models", "forests as a measure of utility"),
    "opendp": ("dp", "differential privacy"),
    "phonenumbers": ("contacts", "phone numbers in texts"),
    "cryptography": ("parties", "recoding together with other owners of data"),
}


@click.command("doctor", help=__doc__)
@click.option(
    "--warm", is_flag=True, help="Compile the usual kernels now, so that no command waits for them."
)
@json_option
@quiet_option
def command(*, warm: bool, as_json: bool, quiet: bool) -> None:
    """Check the installation."""
    from sfumato.core import registry
    from sfumato.releasing.trail import environment

    if warm:
        from sfumato.cli import _warm

        with running(quiet=quiet) as run:
            _warm.warm(run)
    rows = [["sfumato", __version__, "ok"], *([name, found, "ok"] for name, found in environment().items())]
    rows += [[package, *_optional(package, *facts)] for package, facts in _EXTRAS.items()]
    rows.append(["methods", str(len(registry.methods())), "ok"])
    rows.append(["measures", str(len(registry.measures())), "ok"])
    rows.append(["kernels", *_kernels()])
    rows.append(["cores", str(os.cpu_count()), "ok"])
    if as_json:
        emit_json({what: {"found": found, "state": state} for what, found, state in rows})
    else:
        emit_table(["what", "found", "state"], rows)
    if any(state.startswith("broken") for _, _, state in rows):
        raise MissingDependencyError("the installation is broken", hint="the table shows which part")


def _optional(package: str, extra: str, purpose: str) -> tuple[str, str]:
    try:
        return version(package), "ok"
    except PackageNotFoundError:
        return "—", f"not installed; for {purpose}: pip install 'sfumato[{extra}]'"


def _kernels() -> tuple[str, str]:
    """Compile and run the smallest kernel: the part of an installation most likely to be broken."""
    import numpy as np

    try:
        groups = importlib.import_module("sfumato.kernels.groups")
        right = groups.mdav(np.array([[0.0], [1.0], [10.0], [11.0]]), 2).tolist() in (
            [0, 0, 1, 1],
            [1, 1, 0, 0],
        )
    except ImportError as error:
        return "—", f"broken: {error.name}"
    return "numba", "ok" if right else "broken: a wrong answer"
