"""What users rely on, as one flat dictionary: Python names, verbs, methods, measures, plan keys, exit codes.

``python tests/interface.py > tests/kept/interface.json`` writes it down when a version is cut.
"""

import dataclasses
import importlib
import inspect
import json
import sys

import click

import sfumato
from sfumato import errors
from sfumato.cli import cli
from sfumato.core import registry
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column
from sfumato.recipes import parts, plan
from sfumato.recipes.step import Step

#: What a plan is made of, each with the class whose fields are its keys.
PLAN = {
    "": plan.PlanParts,
    "data": parts.Source,
    "columns": Column,
    "scenarios": Scenario,
    "steps": Step,
    "output": parts.Output,
    "series": parts.SeriesSpec,
    "release": parts.About,
    "release.tables": parts.CountTable,
}


def interface():
    """Every name that users rely on, with what is promised of it."""
    return dict(sorted([*_python(), *_verbs(), *_components(), *_plan_keys(), *_exit_codes()]))


def _python():
    for name in sfumato.__all__:
        own = getattr(sfumato, name)
        if callable(own):
            yield f"python {name}", _signature(own)
        for member, value in vars(own).items() if inspect.isclass(own) else ():
            if not member.startswith("_") and (callable(value) or isinstance(value, (property, classmethod))):
                yield f"python {name}.{member}", _signature(getattr(own, member))
    for name in importlib.import_module("sfumato.arrays").__all__:
        yield f"python arrays.{name}", ""


def _signature(own):
    try:
        parameters = inspect.signature(own).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown = [each.name + ("" if each.default is each.empty else "=") for each in parameters]
    return ", ".join(shown)


def _verbs(group=cli, before="verb"):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            if name not in {"protect", "methods"}:  # a command for each method, which stands below
                yield f"{before} {name}", ""
                yield from _verbs(command, f"{before} {name}")
            continue
        yield f"{before} {name}", ""
        for option in command.params:
            yield f"{before} {name} {option.opts[0]}", "needed" if option.required else ""


def _components():
    for kind, known in (("method", registry.methods()), ("measure", registry.measures())):
        for name, cls in known.items():
            yield f"{kind} {name}", ", ".join(cls.aliases)
            for declared in cls.parameters():
                told = declared.to_dict()
                yield f"{kind} {name} {declared.name}", f"{told['type']} = {told.get('default')}"


def _plan_keys():
    for part, owner in PLAN.items():
        for field in dataclasses.fields(owner):
            yield f"plan {part} {field.name}".replace("  ", " "), ""


def _exit_codes():
    for name, own in vars(errors).items():
        if inspect.isclass(own) and issubclass(own, errors.SfumatoError):
            yield f"error {name}", str(own.exit_code)


if __name__ == "__main__":
    json.dump(interface(), sys.stdout, indent=0, ensure_ascii=False)
    sys.stdout.write("\n")
