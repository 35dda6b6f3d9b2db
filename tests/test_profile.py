"""Profiles: layers, origins, and errors that name file, line, key, expectation and finding."""

import tomllib

import pytest

from bellmark.errors import ProfileError, UsageError
from bellmark.profile import InvalidProfileError, load_profile
from bellmark.profile_text import toml_value


@pytest.fixture
def load(tmp_path, small_host):
    def load(text, name="my.toml", environment=None, **options):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return load_profile(path, host=small_host, environment=environment or {}, **options)

    return load


def problems(load, text, **options):
    with pytest.raises(InvalidProfileError) as error:
        load(text, **options)
    return [problem.split("my.toml:")[-1] for problem in error.value.problems]


def test_defaults_and_values_know_where_they_come_from(load, small_text, tmp_path):
    profile = load(small_text + "window = 3\n[trainer]\nbatch = 32\n".replace("window = 3\n", ""))
    assert (profile.trainer.batch, profile.trainer.gamma) == (32, 0.99)
    assert profile.origin("trainer.batch") == f"{tmp_path / 'my.toml'}:14"
    assert profile.origin("trainer.gamma") == "default"
    assert profile.name == "my"


def test_precedence_is_command_line_environment_file_base_default(load, small_text, tmp_path):
    base = small_text + "[trainer]\nbatch = 1\nsteps = 1\ngamma = 0.1\n[learners]\nseed = 1\n"
    (tmp_path / "base.toml").write_text(base)
    text = 'extends = "base.toml"\n[trainer]\nbatch = 2\nsteps = 2\ngamma = 0.2\n'
    profile = load(
        text,
        environment={"BELLMARK__TRAINER__BATCH": "3", "BELLMARK__TRAINER__STEPS": "3", "BELLMARK_CACHE_DIR": "x"},
        sets=["trainer.batch=4"],
    )
    assert (profile.trainer.batch, profile.trainer.steps, profile.trainer.gamma, profile.learners.seed) == (4, 3, 0.2, 1)
    assert profile.learners.count == 4
    assert profile.origin("trainer.batch") == "--set"
    assert profile.origin("trainer.steps") == "BELLMARK__TRAINER__STEPS"
    assert profile.origin("trainer.gamma").endswith("my.toml:5")
    assert profile.origin("learners.seed").endswith("base.toml:18")
    assert profile.origin("learners.count") == "default"


def test_resolved_text_loads_to_the_same_hash_and_keeps_odd_strings(load, small_text):
    text = small_text.replace('use = "sample"', 'use = "sample"\npath = "a\\"b\\\\c\\n é"\ncolumns = { "ö p" = "o" }\n', 1)
    profile = load(text, sets=["optimizer.learning_rate_end=1e-5", "learners.seed=7"])
    again = load(profile.to_toml(), name="again.toml")
    assert again.hash == profile.hash
    assert again.values() == profile.values()
    assert again.data.path == 'a"b\\c\n é'
    assert again.name == "my"
    assert "seed = 7 " in profile.to_toml() and "# --set" in profile.to_toml()


def test_hash_is_over_values_not_origins_names_or_run_folder(load, small_text):
    plain = load(small_text)
    assert load(small_text, name="other.toml", sets=["trainer.batch=64", "run.folder=elsewhere"]).hash == plain.hash
    assert load(small_text, sets=["trainer.batch=65"]).hash != plain.hash
    assert load(small_text, sets=["trainer.batch=65"]).differences(plain) == ["trainer.batch: 65 here, 64 there"]


def test_order_of_features_is_part_of_the_hash(load, small_text):
    two = '[features.a]\nuse = "log_return"\n[features.b]\nuse = "log_return"\nwindow = 2\n'
    swapped = '[features.b]\nuse = "log_return"\nwindow = 2\n[features.a]\nuse = "log_return"\n'
    assert load(small_text + two).hash != load(small_text + swapped).hash


def test_another_component_drops_the_settings_of_the_former(load, small_text, small_host, tmp_path):
    (tmp_path / "base.toml").write_text(small_text + '[features.x]\nuse = "log_return"\nwindow = 9\n')
    assert load('extends = "base.toml"\n[features.x]\nwindow = 8\n').features["x"].window == 8
    (tmp_path / "base.toml").write_text(small_text + '[features.x]\nuse = "other"\nspan = 9\n')
    assert load('extends = "base.toml"\n[features.x]\nuse = "log_return"\n').features["x"].window == 1


def test_false_takes_an_inherited_component_away(load, small_text, tmp_path):
    (tmp_path / "base.toml").write_text(small_text + '[features.x]\nuse = "log_return"\n')
    assert list(load('extends = "base.toml"\n[features]\nx = false\n').features) == ["return_1"]
    assert list(load('extends = "base.toml"\n', sets=["features.x=false"]).features) == ["return_1"]
    found = problems(load, 'extends = "base.toml"\n[features]\nz = false\n')
    assert found == ["3: features.z: there is no such label to take away (have: return_1, x)"]


def test_key_with_a_trailing_space_is_an_error_that_shows_it(load, small_text):
    found = problems(load, small_text + '[market]\nslippage_ticks = 1\n"fee_per_contract " = 2.25\n')
    assert found[0].startswith('15: market: unknown key "fee_per_contract "; did you mean \'fee_per_contract\'?')


def test_five_wrong_types_are_five_messages(load, small_text):
    text = small_text + (
        '[trainer]\nsteps = "10000"\nbatch = 64.0\ngamma = 99\n[optimizer]\nlearning_rate = true\n[network]\nhidden = [256,\n "256"]\n'
    )
    assert sorted(problems(load, text)) == [
        "14: trainer.steps: expected int >= 1, found str '10000'",
        "15: trainer.batch: expected int >= 1, found float 64.0",
        "16: trainer.gamma: expected float >= 0 <= 1, found int 99",
        "18: optimizer.learning_rate: expected float >= 0, found bool True",
        "21: network.hidden[1]: expected int, found str '256'",
    ]


def test_given_case_of_wrong_types(shared, small_host):
    with pytest.raises(InvalidProfileError) as error:
        load_profile(shared / "cases" / "57_wrong_types" / "profile.toml", host=small_host, environment={})
    text = "\n".join(error.value.problems)
    for expected in (
        ":2: trainer.steps: expected int >= 1, found str '10000'",
        ":3: trainer.batch: expected int >= 1, found float 64.0",
        ":4: trainer.gamma: expected float >= 0 <= 1, found int 99",
        ':5: trainer: unknown key "learning_rate"; it is a key of [optimizer]',
        ':6: trainer: unknown key "hidden"; it is a key of [network]',
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ("[trianer]\nbatch = 1\n", '13: unknown section "trianer"; did you mean \'trainer\'?'),
        ("[trainer]\nuse = \"dqm\"\n", "14: trainer.use: no trainer named 'dqm'; did you mean 'dqn'?"),
        ("[rewards.log_eqity]\n", "13: rewards.log_eqity: no reward named 'log_eqity'; did you mean 'log_equity'?"),
        ("[rewards]\nx = 3\n", "14: rewards.x: expected a table (or false to take it away), found 3"),
        ('[rewards."a b"]\nuse = "log_equity"\n', '13: rewards: expected a label of letters, digits and _, found "a b"'),
        ("[action]\nurgencies = ['fast']\n", "14: action.urgencies: expected list of str, found list ['fast'] (no 'fast' (have:"),
        ("[action]\norder_types = ['limitt']\n", "14: action.order_types: expected list of str, found list ['limitt'] (no 'limitt'; did"),
        ("[instrument]\nsession = 'tokyo'\n", "14: instrument.session: expected a known session or 'ZONE HH:MM-HH:MM', found 'tokyo'"),
        ("[market]\nlimit_offset_ticks = [1.0]\n",
         "14: market.limit_offset_ticks: expected three numbers: patient, normal, aggressive, found list [1.0]"),
        ("[run]\nfolder = ''\n", "14: run.folder: expected str, found str ''"),
        ("[trainer]\ngamma = nan\n", "14: trainer.gamma: expected a finite number, found nan"),
        ("[trainer]\nbatch = 99999999999999999999\n", "14: trainer.batch: expected an integer of 64 bits"),
        ("[replay]\nlearning_starts = 200000\n", "14: replay.learning_starts: expected at most the capacity 100000, found 200000"),
        ("[split]\ntrain = 2012-01-01\n", "13: split: train and validation: expected two shares or two dates"),
    ],
)
def test_a_problem_names_line_and_key(load, small_text, addition, message):
    found = problems(load, small_text + addition)
    assert len(found) == 1, found
    assert found[0].startswith(message)


def test_a_profile_without_data_or_losses_says_so(load):
    found = problems(load, "[rewards.log_equity]\n")
    assert any("data.use: expected the name of a dataset, found nothing (have: sample)" in line for line in found)
    assert any("losses: expected at least one table [losses.LABEL]" in line for line in found)


def test_dates_may_be_written_without_quotes(load, small_text):
    profile = load(small_text + "[split]\ntrain = 2010-01-01\nvalidation = 2011-01-01\n")
    assert (profile.split.train, profile.split.validation) == ("2010-01-01", "2011-01-01")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a\n", r"my\.toml:1: expected TOML, found an error: expected ']'"),
        ("a = 1\na = 2\n", r"my\.toml:2: expected TOML, found an error: cannot overwrite"),
        ("a = [1,\n", r"my\.toml:\d: expected TOML, found an error"),
        ("schema_version = 2\n", r"my\.toml:1: schema_version: this Bellmark reads up to 1, found 2"),
        ("schema_version = true\n", r"schema_version: expected int >= 1, found True"),
        ('x = 1\nextends = "my.toml"\n', r"extends: expected a chain that ends, found a circle: .*my\.toml -> .*my\.toml"),
        ('x = 1\nextends = "qickstart"\n', r"my\.toml:2: extends: no profile named 'qickstart'"),
        ("extends = 3\n", r"my\.toml:1: extends: expected text, found 3"),
    ],
)
def test_a_file_that_cannot_be_read_as_a_profile(load, text, message):
    with pytest.raises(ProfileError, match=message):
        load(text)


def test_missing_file_names_the_nearest(load, small_text, tmp_path, small_host):
    load(small_text, name="market.toml")
    message = r"markt\.toml: the profile cannot be read: no such file or directory; did you mean 'market.toml'"
    with pytest.raises(ProfileError, match=message):
        load_profile(tmp_path / "markt.toml", host=small_host, environment={})


def test_text_that_is_not_utf8_is_refused_and_a_byte_order_mark_is_not(tmp_path, small_text, small_host):
    (tmp_path / "latin.toml").write_bytes(b'description = "\xe9"\n')
    with pytest.raises(ProfileError, match=r"expected UTF-8 text, found other bytes at position 15"):
        load_profile(tmp_path / "latin.toml", host=small_host, environment={})
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf" + small_text.replace("\n", "\r\n").encode())
    assert load_profile(tmp_path / "bom.toml", host=small_host, environment={}).origin("data.use").endswith("bom.toml:5")


@pytest.mark.parametrize("text", ["batch=1", "trainer.batch", "=1", "trainer.=1", "trainer.batch\nx=1", ""])
def test_set_without_section_key_and_value_is_refused(load, small_text, text):
    with pytest.raises(UsageError, match="--set: expected SECTION.KEY=VALUE, found"):
        load(small_text, sets=[text])


def test_set_takes_toml_values_and_else_text(load, small_text):
    profile = load(small_text, sets=["data.path=C:\\bars.csv", "network.hidden=[8, 8]", 'data.symbols=["A"]', "market.fee_bps = 2"])
    assert (profile.data.path, profile.data.symbols) == ("C:\\bars.csv", ("A",))
    assert (profile.network.hidden, profile.market.fee_bps) == ((8, 8), 2.0)
    with pytest.raises(InvalidProfileError, match=r"^--set: trainer.batch: expected int >= 1, found str '2x'$"):
        load(small_text, sets=["trainer.batch=2x"])
    with pytest.raises(InvalidProfileError, match="data.path"):
        load(small_text, sets=["data.path=1\nseed = 2", "data.path=1"])


def test_environment_names_are_checked_like_keys(load, small_text):
    with pytest.raises(InvalidProfileError, match=r"^BELLMARK__TRAINER__BATCHES: trainer: unknown key \"batches\"; did you mean 'batch'"):
        load(small_text, environment={"BELLMARK__TRAINER__BATCHES": "1"})
    with pytest.raises(UsageError, match="BELLMARK__BATCH: expected BELLMARK__SECTION__KEY"):
        load(small_text, environment={"BELLMARK__BATCH": "1"})


@pytest.mark.parametrize("value", [True, -3, 0.1, 1e-300, 1e22, 'q"\\\x7f\t', ["a", [1, 2.5]], {"a b": 1, "c": {"d": "e"}}, [], {}])
def test_toml_values_read_back(value):
    assert tomllib.loads(f"v = {toml_value(value)}")["v"] == value


def test_the_changes_of_a_command_make_the_same_profile_again():
    import shlex

    sets = ["market.same_close=true", "baselines.sma_cross.slow=80", "action.exposures=[-1.0,0.0,1.0]"]
    changed = load_profile("demo", sets=sets, options={"learners.seed": (7, "argument")}, environment={})
    words = shlex.split(shlex.join(changed.command_changes()))
    assert set(words[::2]) == {"--set"}
    assert load_profile("demo", sets=words[1::2], environment={}).hash == changed.hash
