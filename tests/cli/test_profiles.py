"""`bellmark profiles`."""

import tomllib

import pytest

from bellmark.profile_layers import builtin_profiles


def test_list_names_every_profile_with_a_description(bellmark):
    rows = bellmark("profiles", "list", "--json").json
    assert {"base", "demo", "smoke"} <= {row["name"] for row in rows}
    assert all(row["description"] for row in rows)
    assert "demo" in bellmark("profiles", "list").out


@pytest.mark.parametrize("name", [name for name in builtin_profiles() if name != "base"])
def test_every_built_in_profile_is_right(bellmark, name):
    result = bellmark("profiles", "check", name)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{name}: right (hash ")


def test_the_base_names_no_data_and_says_so(bellmark):
    result = bellmark("profiles", "check", "base")
    assert result.code == 2
    assert result.err.startswith("error: base.toml: data.use: expected the name of a dataset, found nothing (have: ")


def test_show_is_toml_with_origins_and_json_says_the_same(bellmark):
    text = bellmark("profiles", "show", "demo", "--set", "trainer.batch=32", "--seed", "7").out
    values = tomllib.loads(text)
    assert values["trainer"]["batch"] == 32 and values["learners"]["seed"] == 7
    assert any(line.startswith("batch = 32 ") and line.endswith("# --set") for line in text.splitlines())
    assert any(line.startswith("seed = 7 ") and line.endswith("# --seed") for line in text.splitlines())
    document = bellmark("profiles", "show", "demo", "--set", "trainer.batch=32", "--seed", "7", "--json").json
    assert document["values"]["trainer"]["batch"] == {"value": 32, "origin": "--set"}


def test_environment_counts_and_is_named(bellmark, monkeypatch):
    monkeypatch.setenv("BELLMARK__TRAINER__BATCH", "48")
    values = bellmark("profiles", "show", "smoke", "--json").json["values"]
    assert values["trainer"]["batch"] == {"value": 48, "origin": "BELLMARK__TRAINER__BATCH"}


def test_check_prints_every_problem_on_its_own_line(bellmark, tmp_path):
    (tmp_path / "bad.toml").write_text('extends = "smoke"\n[trainer]\nbatch = "x"\ngamma = 2\n[markt]\n')
    result = bellmark("profiles", "check", "smoke", "bad.toml")
    assert result.code == 2
    assert result.out.startswith("smoke: right")
    assert sorted(result.errors) == [
        "error: bad.toml:3: trainer.batch: expected int >= 1, found str 'x'",
        "error: bad.toml:4: trainer.gamma: expected float >= 0 <= 1, found int 2",
        *[line for line in result.errors if 'bad.toml:5: unknown section "markt"; did you mean \'market\'?' in line],
    ]
    document = bellmark("profiles", "check", "bad.toml", "--json").json
    assert document[0]["ok"] is False and len(document[0]["problems"]) == 3


def test_given_case_of_a_key_with_a_trailing_space(bellmark, tmp_path):
    (tmp_path / "space.toml").write_text('extends = "smoke"\n\n[market]\n"fee_per_contract " = 2.25\nslippage_ticks = 1\n')
    result = bellmark("train", "space.toml")
    assert result.code == 2
    assert result.err.startswith('error: space.toml:4: market: unknown key "fee_per_contract "; did you mean \'fee_per_contract\'?')
    assert not (tmp_path / "runs").exists()
