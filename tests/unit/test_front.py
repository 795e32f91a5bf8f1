"""The front door: scores by any spelling, roles that are given, and numbers in a release."""

import polars as pl
import pytest

import sfumato
from sfumato.data.schema import Role
from sfumato.errors import SfumatoError, UnknownNameError
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.methods.local_suppression import LocalSuppression

PEOPLE = pl.DataFrame({"age": [30, 30, 41, 41, 52], "weight": [1.5, 2.5, 1.0, 4.0, 2.0]})


def test_scores_answer_to_the_spelling_they_were_asked_by():
    scores = sfumato.assess(PEOPLE, measures=["k", "k-anonymity(missing=any)"])
    assert list(scores) == ["k-anonymity", "k-anonymity(missing=any)"]
    assert scores["k"] is scores["k-anonymity"]
    assert scores.get("k") is scores["k-anonymity"]
    assert scores["k( missing = any )"] is scores["k-anonymity(missing=any)"]
    assert "k" in scores
    assert "l" not in scores
    assert "nothing" not in scores
    assert scores.get("l") is None
    with pytest.raises(KeyError):
        scores["l"]
    with pytest.raises(UnknownNameError):
        scores["nothing"]


def test_a_weight_is_not_guessed(tmp_path):
    path = tmp_path / "people.csv"
    PEOPLE.write_csv(path)
    assert sfumato.read(path).schema["weight"].role is None
    assert sfumato.read(path, roles={"weight": "weight"}).weights is not None
    read = sfumato.read(path, roles=None)
    assert [column.role for column in read.schema.columns] == [None, None]
    assert sfumato.read(path, roles={"age": "key"}).schema["age"].role is Role.KEY
    with pytest.raises(SfumatoError):
        sfumato.read(path, roles={"age": "nonsense"})
    with pytest.raises(SfumatoError):
        sfumato.read(path, roles={"nobody": "key"})
    assert "population_size" not in sfumato.assess(PEOPLE, measures=["k"])["k"].details


def test_a_release_tells_counts_and_losses_as_numbers():
    release = sfumato.protect(PEOPLE, LocalSuppression(k=2), columns="age")
    assert release.figures == release.provenance[0].figures == {"cells_suppressed": 3, "cells": 5}
    assert release.provenance[0].to_dict()["figures"]["cells_suppressed"] == 3
    found = sfumato.protect(PEOPLE, GlobalRecoding(k=2, suppression=40), columns="age").figures
    assert found["records_suppressed"] + found["records_left_out"] == 1
    assert 0 < found["loss"] < 1


def test_figures_of_strata_add_up_or_are_means():
    frame = pl.DataFrame({"age": [1, 1, 2, 3, 3, 4, 4, 5], "town": list("aaabbbbb")})
    release = sfumato.protect(frame, LocalSuppression(k=2), columns="age", within="town")
    assert release.figures["cells"] == 8
    lost = release.data["age"].null_count()
    assert release.figures["cells_suppressed"] == lost > 0
