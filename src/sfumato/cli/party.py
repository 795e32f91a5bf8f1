"""Recode together with other owners of data: nobody sees the records or the counts of another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._options import F
from sfumato.cli._release import WRITE_REQUIREMENTS, tell, write_if_open
from sfumato.cli._resources import request_of
from sfumato.cli._screen import emit_line, running, say
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.parties.identity import PartyIdentity
    from sfumato.parties.party_plan import PartyPlan
    from sfumato.parties.search import AgreedRecoding
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.decide import Decision
    from sfumato.releasing.destination import Destination
    from sfumato.releasing.outcome import PlanOutcome

_EPILOG = (
    "Needs the extra `parties`. PLAN is the plan that all parties have, with NAME.pem of each beside it."
)


def _address(_: click.Context, __: click.Parameter, value: str) -> tuple[str, int]:
    host, _sign, port = value.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004  — the last port there is
        raise ParameterError("`--at` must be written HOST:PORT, got: another text")
    return host.strip("[]"), int(port)


def _session_options(function: F) -> F:
    """Give a verb the options of a session."""
    for option in reversed(_SESSION):
        function = option(function)
    return function


_SESSION = (
    click.option(
        "--key", "key_path", required=True, type=click.Path(path_type=Path),
        help="Your own key, made by `sfumato party key`.",
    ),
    click.option(
        "--at", "address", default="127.0.0.1:8473", show_default=True, callback=_address,
        metavar="HOST:PORT", help="Where the leader waits for the parties.",
    ),
    click.option(
        "--minutes", default=10.0, show_default=True, type=click.FloatRange(0, min_open=True),
        help="How long to wait for others before the session ends.",
    ),
    _options.overwrite_option,
    _options.quiet_option,
)  # fmt: skip


@click.group("party", help=__doc__, epilog=_EPILOG)
def command() -> None:
    """Recode together with others."""


@command.command("key", short_help="Make a key and its certificate.")
@click.argument("name")
@click.option("--folder", default=".", type=click.Path(path_type=Path), help="Where to write the two files.")
@_options.quiet_option
def make_key(name: str, folder: Path, *, quiet: bool) -> None:
    """Make a key: NAME.key stays with you, NAME.pem and its fingerprint go to all others."""
    from sfumato.parties.identity import make_identity

    emit_line(make_identity(name, folder).fingerprint)
    say(f"keep {name}.key and do not share it; give {name}.pem and this fingerprint to all", quiet=quiet)


@command.command("serve", short_help="Lead a session.", epilog=_EPILOG)
@_options.plan_argument
@_session_options
def serve(plan_path: Path, **options: Any) -> None:
    """Lead a session: wait for all parties, add up their masked counts, and write the pooled release."""
    from sfumato.parties.leader import open_session
    from sfumato.releasing.decide import decide

    party_plan, identity, destination = _prepare(plan_path, options)
    quiet, seconds = options["quiet"], 60 * options["minutes"]
    if party_plan.pools:
        destination.check()

    def write(agreed: AgreedRecoding, outcome: PlanOutcome | None) -> None:
        if outcome is not None:
            _write_release(decide(outcome, subject=str(plan_path)), destination, quiet=quiet)
        _write_agreed(party_plan.with_levels(agreed.levels), plan_path, agreed, options)

    with (
        running(quiet=quiet) as run,
        open_session(party_plan, identity, options["address"], run, seconds=seconds) as session,
    ):
        say(f"waiting for {len(party_plan.spec.roster)} parties at {session.address}", quiet=quiet)
        session.lead(write)


@command.command("join", short_help="Take part in a session with your own file.", epilog=_EPILOG)
@_options.plan_argument
@click.argument("data")
@_session_options
@click.option(
    "--another-roster", is_flag=True,
    help="Count these data with another roster than before, which can reveal the counts of one party.",
)  # fmt: skip
@_options.reading_options
def join_session(plan_path: Path, data: str, **options: Any) -> None:
    """Take part in a session with your own file: its counts leave only under masks."""
    from sfumato.io import addresses
    from sfumato.parties.member import join
    from sfumato.recipes.parts import Source, relative_to

    is_file = not (data.startswith("builtin:") or addresses.is_address(data))
    party_plan, identity, destination = _prepare(plan_path, options, *([data] if is_file else []))
    path = relative_to(Path(data), party_plan.plan.folder) if is_file else data
    source = request_of(data, options).source_as_given(Source(path))
    quiet, seconds = options["quiet"], 60 * options["minutes"]
    if not party_plan.pools:
        destination.check()
    with running(quiet=quiet) as run:
        joined = join(
            party_plan, identity, source, options["address"], run,
            seconds=seconds, another_roster=options["another_roster"],
        )  # fmt: skip
    if joined.decision is not None:
        _write_release(joined.decision, destination, quiet=quiet)
    _write_agreed(joined.plan, plan_path, joined.agreed, options)


def _prepare(
    plan_path: Path, options: dict[str, Any], *read: str
) -> tuple[PartyPlan, PartyIdentity, Destination]:
    """The plan of all, the key of one, and where a release would go; the new plan must have a free place."""
    from sfumato.io import check_writable
    from sfumato.parties.identity import PartyIdentity
    from sfumato.parties.party_plan import PartyPlan
    from sfumato.releasing.destination import Destination

    party_plan, identity = PartyPlan.read(plan_path), PartyIdentity.read(options["key_path"])
    originals: tuple[str | Path, ...] = (plan_path, identity.path, *read)
    check_writable(_agreed_place(plan_path), originals=originals, overwrite=options["overwrite"])
    destination = Destination(party_plan.plan, overwrite=options["overwrite"], also_read=originals)
    return party_plan, identity, destination


def _agreed_place(plan_path: Path) -> Path:
    """Where the plan goes that comes back."""
    return plan_path.with_suffix(".agreed.toml")


def _write_release(decision: Decision, destination: Destination, *, quiet: bool) -> None:
    assert decision.outcome is not None  # it was made in the session
    tell(decision.outcome, quiet=quiet)
    write_if_open(decision, destination, required_by=WRITE_REQUIREMENTS, quiet=quiet)


def _write_agreed(plan: Plan, plan_path: Path, agreed: AgreedRecoding, options: dict[str, Any]) -> None:
    from sfumato.io import write_text

    place = _agreed_place(plan_path)
    write_text(place, plan.to_toml(), overwrite=options["overwrite"])
    say(f"{agreed.sentence()}\nwritten: {place}", quiet=options["quiet"])
