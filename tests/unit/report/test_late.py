"""What a report measures keeps to its time: what there is no time for has no number, and says so."""

import time
from dataclasses import replace

import pytest

import sfumato
from sfumato.core.run import Progress, Run
from sfumato.errors import Cancelled
from sfumato.study.evaluate import LATE, EvaluationCase, evaluate
from sfumato.study.target import as_measure


@pytest.fixture(scope="module")
def released():
    people = sfumato.read("builtin:patients?n=120")
    return sfumato.release(people, for_="scientific", minutes=0.001, methods=["mondrian"], seed=2**64)


def test_a_report_without_time_has_what_was_judged_and_says_of_the_rest_that_there_was_none(released):
    told = replace(released, seconds=0.0).tell().to_dict(public=False)
    text = str(told)
    assert LATE in text
    judged = [each for each in released.outcome.judgements if each.is_met]
    assert judged
    assert released.seconds > 0


def test_who_asked_to_stop_is_not_told_that_time_was_up():
    table = sfumato.read("builtin:patients?n=40")
    measures = [as_measure("uniqueness")]
    late = Run(seed=1).with_deadline(-1.0, time.monotonic)
    stopped = Run(seed=1, progress=Progress(stopped=lambda: True))
    kept = evaluate(None, EvaluationCase(table), measures, late, allow_sampling=True).scores
    assert {score.reason for score in kept.values()} <= {LATE, "", None}
    with pytest.raises(Cancelled):
        evaluate(None, EvaluationCase(table), [as_measure("suda")], stopped, allow_sampling=True)
    with pytest.raises(Cancelled):
        evaluate(None, EvaluationCase(table), [as_measure("suda")], late)
