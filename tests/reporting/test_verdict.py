"""The headline follows the numbers and never picks a learner."""

import pytest

from bellmark.reporting.verdict import verdict

BASELINES = {"buy_and_hold": 0.10, "flat": 0.0, "random": -0.05}


def sentence(learners, baselines=BASELINES, ruined=0, split="test"):
    return verdict(learners, ruined, baselines, split, "2011-01-03", "2012-12-31", 500)


def test_median_decides_not_the_best_learner():
    found = sentence([-0.02, -0.01, 0.90])
    assert found["median_total_return"] == -0.01
    assert found["beaten"] == ["random"] and found["beat_every_baseline"] is False
    assert "the median of 3 learners returned -1.00%" in found["sentence"]
    assert "beat 1 of 3 baselines: random (-5.00%), but not buy_and_hold (+10.00%) or flat (0.00%)" in found["sentence"]
    assert "ranged from -2.00% to +90.00%" in found["sentence"]


def test_all_baselines_beaten():
    found = sentence([0.2, 0.3])
    assert found["beat_every_baseline"] is True
    assert "beat all 3 baselines" in found["sentence"]


def test_no_baseline_beaten():
    assert "did not beat any of the 3 baselines" in sentence([-0.3])["sentence"]


def test_equal_is_not_better():
    found = sentence([0.0, 0.0])
    assert found["matched"] == ["flat"] and "flat" not in found["beaten"]
    assert "flat (0.00%, the same)" in found["sentence"]


def test_missing_baselines_are_said():
    found = sentence([0.5], {})
    assert "there is no baseline to compare it with" in found["sentence"]
    assert found["beat_every_baseline"] is False


@pytest.mark.parametrize(("ruined", "words"), [(1, "1 of 2 learners was ruined"), (2, "2 of 2 learners were ruined")])
def test_ruin_is_said(ruined, words):
    assert words in sentence([-1.0, 0.1], ruined=ruined)["sentence"]


def test_validation_part_is_not_called_unseen():
    text = sentence([0.1], split="validation")["sentence"]
    assert "unseen validation" not in text and "says nothing about unseen data" in text


def test_rules_alone_have_no_learner():
    found = sentence([])
    assert found["beat_every_baseline"] is None and "No learner" in found["sentence"]


def test_sentence_changes_with_the_numbers():
    assert len({sentence([value])["sentence"] for value in (-0.2, -0.01, 0.0, 0.05, 0.2)}) == 5
