"""Door one: the command line. One file per verb; a file here without a leading underscore is a verb."""

from __future__ import annotations

import ast
import errno
import gc
import importlib
import io
import os
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

import click

from sfumato.errors import (
    MemoryLimitError,
    NoteWarning,
    ParameterError,
    SfumatoError,
    WriteError,
    trouble_with,
)
from sfumato.version import __version__

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # as `kernels.threads.one_thread_of_algebra`, for all there is
#: The verbs that a newcomer needs, in their order.
_FIRST = ("release", "verify")
INTERNAL_ERROR = 70
INTERRUPTED = 130
#: What the system says of an output that takes no more: nobody reads on, the disk is full or broken.
_OUTPUT_FAILS = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


#: What Python and the system's loader say where memory for a thread or a library is lacking.
_NO_MEMORY = ("can't start new thread", "failed to map segment", "annot allocate memory")
_OUT_OF_MEMORY = (
    "error: There is not enough memory for this. Nothing was written.\n\n"
    "hint: allow more memory, take fewer columns or records, or keep columns in files with --engine stream"
)


class _Verbs(click.Group):
    """Finds verbs by looking in this folder, and loads one only when it is called.

    The list of verbs reads each file's docstring without running the file, so ``--help`` costs no imports.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(name.replace("_", "-") for name in _verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        name = cmd_name.replace("-", "_")
        if name not in _verbs():
            return None
        command: click.Command = importlib.import_module(f"sfumato.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and self.get_command(ctx, name) is None and not name.startswith("-"):
            from sfumato.errors import UnknownNameError

            error = UnknownNameError.of("command", name, self.list_commands(ctx))
            ctx.fail(f"{error.message}\n\nhint: {error.hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        others = [name for name in self.list_commands(ctx) if name not in _FIRST]
        for title, names in (("From a file to a release", _FIRST), ("Step by step", others)):
            with formatter.section(title):
                formatter.write_dl([(name, _summary(name.replace("-", "_"))) for name in names])


@cache
def _verbs() -> frozenset[str]:
    """Every verb."""
    return frozenset(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))


def _summary(verb: str) -> str:
    """The first line of the docstring of a verb's file."""
    from importlib.resources import files

    source = files(__name__).joinpath(f"{verb}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


GREETING = """\
sfumato turns microdata about people into data that can be released.

  sfumato inspect FILE                show its columns and who is at risk
  sfumato release FILE --for public   protect, check and write it in one go
  sfumato risk ORIGINAL RELEASE       measure what an intruder could learn
  sfumato methods, sfumato measures   list the methods and the measures

`sfumato --help` lists every command; `sfumato COMMAND --help` explains one.
No data at hand? Use builtin:rand or builtin:patients in place of a file."""


@click.command(
    cls=_Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="sfumato")
@click.pass_context
def cli(context: click.Context) -> None:
    """Turn microdata about people into data that can be released.

    Start with `sfumato release FILE`. `sfumato methods` and `sfumato measures` list what can be used.
    """
    if context.invoked_subcommand is None:
        click.echo(GREETING)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every way it can end has its exit code."""
    gc.set_threshold(
        20_000
    )  # what is loaded stays: to look for rubbish in it takes a sixth of a short command
    if isinstance(sys.stdout, io.TextIOWrapper):  # a locale without a letter is no reason to end
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(_exit_code(arguments))


def _show_note(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """Show what was renamed as a note; any other warning as Python does."""
    if issubclass(category, NoteWarning):
        _say(f"note: {message}")
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def _say(text: str) -> None:
    from sfumato.cli._screen import say  # only here: `--help` costs no imports

    say(text)


def _exit_code(arguments: list[str] | None) -> int:
    warnings.showwarning = _show_note
    try:
        given = sys.argv[1:] if arguments is None else None  # for the child of an engine; none in a test
        _require_text(given or arguments or ())
        result: Any = _in_limited_child(given)
        if result is None:
            result = cli.main(args=arguments, prog_name="sfumato", standalone_mode=False, obj=given)
        sys.stdout.flush()  # what cannot be written is found out here, not when Python ends
    except MemoryLimitError as error:
        click.echo(f"error: {error}", err=True)  # as it is: to break lines would take more memory
        return error.exit_code
    except SfumatoError as error:
        _say(f"error: {error}")
        return error.exit_code
    except click.ClickException as error:
        return _explain_misuse(error)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nstopped; no incomplete file was left behind", err=True)
        return INTERRUPTED
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  — the last line of defence: no cell may reach the screen
        return _of_system(error) if isinstance(error, OSError) else _report_internal(error)
    return result if isinstance(result, int) else 0


def _require_text(arguments: Iterable[str]) -> None:
    """Refuse what the system gives as bytes that are no text: neither polars nor a plan has such a name."""
    for number, each in enumerate(arguments, start=1):
        if not each.isascii() and any("\ud800" <= character <= "\udfff" for character in each):
            raise ParameterError(
                f"Argument {number} is not text in UTF-8.", hint="rename the file, or use a locale with UTF-8"
            )


def _in_limited_child(arguments: list[str] | None) -> int | None:
    """The exit code of a command that was done in a child, as it must where memory is limited, else None."""
    if not arguments or os.name != "posix":
        return None
    from sfumato.cli._engine import work_within_limit

    return work_within_limit(arguments)


def _explain_misuse(error: click.ClickException) -> int:
    """Say what is wrong with a command; one that is not whole shows its help."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # since click 8.2
        click.echo(error.format_message(), err=True)
    else:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage() + "\n", err=True)
        _say(f"error: {error.format_message()}")
    return 2


def _of_system(error: OSError) -> int:
    """Say what the system says of a file, or of stdout that takes no more; what it says quotes no cell."""
    if error.errno in _OUTPUT_FAILS:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more is tried
    if isinstance(error, BrokenPipeError):  # the reader of our output went away, as `head` does
        return 0
    if error.errno in {None, errno.ENOMEM}:
        return _report_internal(error)
    what = "the output cannot be written" if error.errno in _OUTPUT_FAILS else "a file or folder is unusable"
    click.echo(f"error: {what}: {trouble_with(error)}", err=True)
    return WriteError.exit_code


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether memory was missing, also where a library could not be loaded for that."""
    lacks = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    return lacks or any(words in str(error) for words in _NO_MEMORY)


def _report_internal(error: BaseException) -> int:
    """Say where it happened and not what it said: the text of a foreign error may quote cells."""
    if any(map(_lacks_memory, (error, error.__cause__, error.__context__))):
        click.echo(_OUT_OF_MEMORY, err=True)
        return MemoryLimitError.exit_code
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(where.filename)}, line {where.lineno}"  # noqa: PTH119
    click.echo(f"error: something went wrong inside sfumato ({type(error).__name__} in {place})", err=True)
    click.echo(
        "\nhint: please report it; SFUMATO_DEBUG=1 shows the traceback, which may quote your data", err=True
    )
    if os.environ.get("SFUMATO_DEBUG"):
        traceback.print_exception(error)
    return INTERNAL_ERROR
