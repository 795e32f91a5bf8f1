"""What is told of a release where a package is missing that one of the measures needs."""

import math
from types import SimpleNamespace

from sfumato.core.measure import Score
from sfumato.core.run import Run
from sfumato.errors import MissingDependencyError
from sfumato.report import release_scores
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.inference import Inference


def test_a_missing_package_costs_its_own_measure_and_no_other(monkeypatch):
    def score(copies, case, measures, run, *, allow_sampling):
        if any(isinstance(each, Inference) for each in measures):
            raise MissingDependencyError.of("scikit-learn", extra="models", purpose="a random forest")
        return {str(each): Score(7.0) for each in measures}

    monkeypatch.setattr(release_scores, "score_copies", score)
    part, asked = SimpleNamespace(copies=()), [KAnonymity(), Inference()]
    found = release_scores._score_rest(part, None, asked, Run(seed=1), {})
    assert found[str(KAnonymity())].value == 7
    assert math.isnan(found[str(Inference())].value)
    assert "needs the package `scikit-learn`" in found[str(Inference())].reason
    assert "sfumato[models]" in found[str(Inference())].reason
