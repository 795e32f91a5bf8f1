"""What the report of a release costs beside the measures that it shows, and how large it is.

    python benchmarks/bench_report.py [n …]

Prints processor seconds: all measures of the report asked of `evaluate` alone, each once, and the report in
both forms with its twins, which asks for them itself. Their ratio should be at most 1.5, a page below 3 MB.
"""

import sys
from dataclasses import replace

import ratios

from sfumato.core.requirement import parse_method
from sfumato.core.run import Run
from sfumato.datasets import patients
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.carry_out import carry_out, maker
from sfumato.report.page import as_json
from sfumato.report.release_result import Released
from sfumato.study.evaluate import EvaluationCase, evaluate

SMALL = "1000"
SIZES = (1_000, 10_000, 100_000)


def made(n, control):
    table = patients(n)
    keys = ("age_yrs", "sex", "los")
    plan = Plan(
        data=Source("builtin:patients"), schema=table.schema, control=control,
        recipe=Recipe((Step(parse_method("mondrian(k=5)"), tuple(k for k in keys if k in table.names)),)),
        output=Output(path="out.csv"),
    )  # fmt: skip
    run = Run(seed=1)
    return Released(carry_out(plan, run, table=table), None, "as the plan says", run)


def told(released):
    found = released.tell()
    texts = [found.page(public=public) for public in (True, False)]
    texts += [as_json(found.to_dict(public=public)) for public in (True, False)]
    return found, texts


def measures_alone(found, released):
    """The same questions to `evaluate`, intruder by intruder, of a table that remembers nothing yet."""
    measured = found.tables[""]
    part = released.part
    case = EvaluationCase(
        part.original, resources=released.run.resources, control=part.plan.control, make=maker(part.plan)
    )
    utilities = [measure for measure, _ in measured.utilities.values()]
    for each in measured.intruders:
        here, risks = replace(case, scenario=each.scenario), [measure for measure, _ in each.risks.values()]
        evaluate(
            part.release,
            here,
            [*risks, *(utilities if each is measured.main else ())],
            released.run,
            allow_sampling=True,
        )
        evaluate(
            None,
            here,
            [risk for risk in risks if str(risk) in each.before],
            released.run,
            allow_sampling=True,
        )


def main(sizes):
    told(made(1_000, 0.2))  # what is compiled once
    for n in sizes:
        control = 0.2 if n <= 10_000 else 0.0
        released, fresh = made(n, control), made(n, control)
        whole, (found, texts) = ratios.least(lambda released=released: told(released), times=1)
        alone, _ = ratios.least(lambda found=found, fresh=fresh: measures_alone(found, fresh), times=1)
        ratios.beside("report, both forms", n, whole, "its measures alone", alone, at_most=1.5)
        print(f"    pages {', '.join(f'{len(text.encode()) / 1e6:.2f}' for text in texts[:2])} MB")


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or SIZES)
