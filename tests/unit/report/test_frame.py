"""The frame of charts: what every specification has, and that charts without data are charts all the same."""

import json

import pytest

from sfumato.report.frame import (
    CONFIG,
    OUTCOMES,
    by_method,
    chart,
    curves,
    label_axis,
    layer,
    layer_charts,
    tips,
)
from sfumato.report.release_charts import (
    attack_chart,
    before_after,
    contribution_chart,
    gauge_chart,
    loss_bars,
    slider_chart,
    strip_chart,
)
from sfumato.report.words import rounded


def test_a_chart_says_in_words_what_it_shows_and_fills_its_place():
    spec = chart("Two dots", "Right is more.", layer("point", {}, size=3), rows=[{"x": 1}], height=10)
    assert (spec["description"], spec["width"], spec["height"]) == (
        "Two dots. Right is more.",
        "container",
        10,
    )
    assert spec["usermeta"] == {"title": "Two dots", "subtitle": "Right is more."}
    assert spec["config"] is CONFIG
    assert spec["mark"] == {"type": "point", "size": 3}
    assert spec["data"] == {"values": [{"x": 1}]}
    assert "layer" not in spec


def test_layers_share_rows_and_filters():
    both = layer_charts(layer("line", {}), layer("point", {}), rows=[], where=["datum.a", {"fold": ["b"]}])
    assert [each["mark"]["type"] for each in both["layer"]] == ["line", "point"]
    assert both["transform"] == [{"filter": "datum.a"}, {"fold": ["b"]}]
    assert both["data"] == {"values": []}
    assert chart("Both", "See above.", both, layer("rule", {}))["layer"][0] is both


def test_names_of_columns_are_data_never_fields():
    evil = "datum.key == 'x'"
    assert label_axis([{"label": evil}])["sort"] == [evil]
    assert tips(text=evil) == [{"field": "text", "type": "nominal", "title": evil}]
    assert by_method([{"label": evil, "color": "#000000"}])["field"] == "label"


def test_curves_are_of_the_original_of_the_releases_and_of_what_is_told_of_both():
    original, releases, dots = curves({"field": "x"}, {"field": "y"}, OUTCOMES, tips(text="Share"), order="x")
    assert original["transform"][0] == {"filter": "datum.key == 'original'"}
    assert releases["encoding"]["color"]["scale"]["domain"] == ["Release"]
    assert dots["mark"]["opacity"] == 0
    assert dots["encoding"]["tooltip"][0]["title"] == "Share"


@pytest.mark.parametrize(
    "spec",
    [
        strip_chart([], "Risks", "Nothing.", title="risk"),
        attack_chart([]),
        gauge_chart([]),
        before_after([], "column", "Records", "Nothing.", title="records"),
        slider_chart("Risk", []),
        contribution_chart("Risk", {}),
        loss_bars([]),
    ],
)
def test_charts_without_data_are_drawn_all_the_same(spec):
    assert spec["description"]
    assert spec["height"] > 0
    assert spec["data"] == {"values": []}
    json.dumps(spec, allow_nan=False)


def test_bars_of_losses_are_stacked_the_longest_first():
    columns = [
        {
            "column": "age",
            "shares": {"coarser": 0.5, "suppressed": 0.1},
            "spans": {"coarser": 0.2},
            "became": "…",
        },
        {"column": "sex", "shares": {}, "spans": {}, "became": "sex untouched"},
        {"column": "job", "shares": {"changed": 1.0}, "spans": {}, "became": "…"},
    ]
    spec = loss_bars(columns)
    rows = [(row["label"], row["part"], row["share"], row["span"]) for row in spec["data"]["values"]]
    assert rows == [
        ("job", "another value", 1.0, 1.0), ("age", "ranges or groups", 0.5, 0.2),
        ("age", "suppressed or removed", 0.1, 1.0),
    ]  # fmt: skip
    assert spec["encoding"]["color"]["scale"]["domain"] == [
        "ranges or groups",
        "another value",
        "suppressed or removed",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.2, "0.2"), (0.9556, "0.956"), (1 / 1080, "0.000926"), (1e-5, "0.00001"), (-0.03712, "−0.0371"), (840, "840"),
     (1234.5, "1,234"), (0.0, "0"), (None, "–"), (float("nan"), "–")],
)  # fmt: skip
def test_numbers_of_a_table_have_three_digits(value, text):
    assert rounded(value) == text
