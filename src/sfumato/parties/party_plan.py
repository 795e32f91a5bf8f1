"""The plan that all parties sign: an ordinary plan without data, and who takes part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Literal

from sfumato.core.params import PerColumn
from sfumato.core.requirement import Requirement
from sfumato.data.records import parse_toml, raise_all, read_record, read_text
from sfumato.data.schema import Role, Schema
from sfumato.errors import PlanError, ReadError, RefusedError, count_noun, quoted
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.methods.recoding import Recoding
from sfumato.parties.domain import MAX_CELLS, PublicDomain
from sfumato.parties.identity import NAME, PartyCertificate, PartyIdentity
from sfumato.parties.masks import FEWEST_PARTIES
from sfumato.recipes.parts import locate
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.load import load_resources

#: What the leader is called: its certificate is `leader.pem`.
LEADER = "leader"
#: Columns of these roles can be counted as records; those of others say which records belong together.
_ROLES = frozenset({Role.KEY, Role.SENSITIVE, Role.IDENTIFIER, Role.OTHER, None})


@dataclass(frozen=True)
class PartiesSpec:
    """The part ``[parties]`` of a plan: fingerprints of the leader and of all parties, and how records leave.

    ``pooled`` records leave as one shuffled file of the leader; those that leave ``apart`` are a file of each
    party, and each must meet k itself.
    """

    leader: str
    roster: Mapping[str, str]
    records: Literal["pooled", "apart"] = "pooled"

    def faults(self) -> Iterator[str]:
        """What is wrong with it."""
        if len(self.roster) < FEWEST_PARTIES:
            yield (
                f"[parties.roster] must name at least {FEWEST_PARTIES} parties, got: {len(self.roster)}; of "
                "two each would learn the other's counts"
            )
        if any(not NAME.fullmatch(name) or name == LEADER for name in self.roster):
            yield f"parties are named by small letters, digits and hyphens, and none is `{LEADER}`"
        if len({each.lower() for each in self.roster.values()}) < len(self.roster):
            yield "two parties of the roster have the same key"


@dataclass(frozen=True, eq=False)
class PartyPlan:
    """What all parties agree on; ``digest`` is of the whole file and of every hierarchy that it names."""

    plan: Plan
    spec: PartiesSpec
    digest: bytes
    domain: PublicDomain
    certificates: Mapping[str, PartyCertificate] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> PartyPlan:
        """Read it with the certificates beside it, gathering its faults."""
        text = read_text(path, what="plan", hint="the guide on parties shows one")
        content = parse_toml(text, f"the plan `{path}`")
        if "parties" not in content:
            raise PlanError(
                f"the plan `{path}` names no parties", hint="add [parties] with leader and roster"
            )
        spec = read_record(PartiesSpec, content.pop("parties"), "[parties] of the plan")
        plan = Plan.from_dict(content, folder=path.parent)
        raise_all("the plan of the parties", [*spec.faults(), *_faults(plan)])
        columns = [plan.schema[name] for name in sorted(plan.recipe.steps[0].resolve(plan.schema))]  # type: ignore[arg-type,index]
        resources = load_resources(plan)
        domain = PublicDomain.of(columns, {each.name: resources[each.hierarchy] for each in columns})
        made = cls(plan, spec, _digest(plan, text), domain, _certificates(spec, path.parent))
        if made.n_numbers > MAX_CELLS:
            raise PlanError(
                f"the keys make more than {MAX_CELLS:,} numbers that each party sends",
                hint="use fewer keys, or hierarchies with fewer values or levels",
            )
        return made

    @property
    def method(self) -> GlobalRecoding:
        """What is searched for."""
        method = self.plan.recipe.steps[0].method
        assert isinstance(method, GlobalRecoding)  # the faults of another are told
        return method

    @property
    def pools(self) -> bool:
        """Whether all records leave as one file."""
        return self.spec.records == "pooled"

    @property
    def n_nodes(self) -> int:
        """How many combinations of levels there are."""
        return prod(self.domain.heights)

    @property
    def n_numbers(self) -> int:
        """How many numbers each party sends: one for each cell, or some for each node."""
        n_keys = len(self.domain.keys)
        return self.domain.n_cells if self.pools else (self.n_nodes + 1) * (n_keys + 1)

    @property
    def keys(self) -> dict[str, bytes]:
        """The public key of each party."""
        return {name: self.certificates[name].key for name in self.spec.roster}

    @cached_property
    def roster_digest(self) -> str:
        """A digest of who takes part, whatever they are called."""
        return hashlib.sha256("".join(sorted(self.spec.roster.values())).lower().encode()).hexdigest()

    def name_of(self, identity: PartyIdentity) -> str:
        """What the roster calls the owner of a key."""
        for name, key in self.keys.items():
            if key == identity.public_key:
                return name
        raise RefusedError(f"the key `{identity.path}` is of none of the parties in the plan's roster")

    @property
    def released_columns(self) -> tuple[str, ...]:
        """The columns that leave beside the keys."""
        assert self.plan.schema is not None  # else the plan has faults
        left = {*self.plan.left_out, *self.domain.names}
        return tuple(name for name in self.plan.schema.names if name not in left)

    def judged(self, plan: Plan) -> Plan:
        """A plan that requires at least the k of the search."""
        asked = any(each.requirement.required_class_size is not None for each in plan.demands)
        own = () if asked else (Requirement.parse(f"k-anonymity >= {self.method.k}"),)
        return replace(plan, requirements=(*plan.requirements, *own))

    def with_levels(self, levels: Mapping[str, int]) -> Plan:
        """The plan that comes back to all: the same with fixed levels in place of the search."""
        recoding = Recoding(levels=PerColumn(0, tuple(levels.items())))
        return replace(self.judged(self.plan), recipe=Recipe((Step(recoding, self.domain.names),)))


def _faults(plan: Plan) -> Iterator[str]:
    """What an ordinary plan may have and one of parties may not."""
    if plan.data is not None or plan.tables or plan.series is not None or plan.control:
        yield "a plan of parties has neither [data] nor [tables] nor [series]: each party names its own file"
    if plan.schema is None:
        yield "the plan declares no columns"
        return
    yield from plan.blockers()
    if plan.output.copies > 1 or not plan.output.shuffle:
        yield "[output] of a plan of parties has one shuffled copy"
    counted = [each.name for each in plan.schema.columns if each.role not in _ROLES or each.pseudonym]
    if counted:
        yield f"parties count records, so that no column may link records of a person: {quoted(counted)}"
    if any(source.holds != "hierarchy" or source.is_builtin for source in plan.resources.values()):
        yield "the resources of a plan of parties are files of hierarchies"
    yield from _step_faults(plan, plan.schema)


def _step_faults(plan: Plan, schema: Schema) -> Iterator[str]:
    """What the step may not be, so that counts of public values tell all that it needs."""
    steps = plan.recipe.steps
    method = steps[0].method if len(steps) == 1 else None
    if not isinstance(method, GlobalRecoding) or steps[0].within or steps[0].together:
        yield f"a plan of parties has one step, global-recoding, got: {count_noun(len(steps), 'step')}"
        return
    if method != GlobalRecoding(k=method.k, suppression=method.suppression, budget=method.budget):
        yield "global-recoding of parties takes `k`, `suppression` and `budget` alone"
    sizes = [each.requirement.required_class_size or 0 for each in plan.demands]
    if max(sizes, default=0) > method.k:
        yield f"the plan requires k >= {max(sizes)}, but its step enforces {method.k}"
    own, left = set(steps[0].resolve(schema)), set(plan.left_out)
    private = sorted(name for name in own if not schema[name].hierarchy)
    if private:
        yield f"these keys need a public hierarchy: {quoted(private)}"
    exposed = sorted((set(schema.with_role(Role.KEY)) - own - left) | (own & left))
    if exposed:
        yield f"a key is either in the step or in `drop`, got: {quoted(exposed)}"


def _digest(plan: Plan, text: str) -> bytes:
    state = hashlib.blake2b(digest_size=32, person=b"sfumato-plan")
    pieces: list[Any] = [text.encode()]
    for _, source in sorted(plan.resources.items()):
        pieces.append(Path(locate(source.path, plan.folder)).read_bytes())
    for piece in pieces:
        state.update(len(piece).to_bytes(8, "little") + piece)
    return state.digest()


def _certificates(spec: PartiesSpec, folder: Path) -> dict[str, PartyCertificate]:
    """The certificate of each, which must be of the key whose fingerprint the plan holds."""
    found = {}
    for name, fingerprint in {**spec.roster, LEADER: spec.leader}.items():
        found[name] = PartyCertificate.read(folder / f"{name}.pem")
        if found[name].fingerprint != fingerprint.lower():
            raise ReadError(
                f"`{name}.pem` is not of the key in the plan: its fingerprint differs",
                hint="get it again from its owner, and compare the fingerprint with them",
            )
    return found
