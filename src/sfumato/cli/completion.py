"""Print a script that completes sfumato's commands in your shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion", help=__doc__, epilog='For bash: eval "$(sfumato completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    from sfumato.cli import cli

    found = get_completion_class(shell)
    assert found is not None  # the choices above are those click has
    click.echo(found(cli, {}, "sfumato", "_SFUMATO_COMPLETE").source())
