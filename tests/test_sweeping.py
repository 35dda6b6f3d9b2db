"""Sweeps: what they run over, rows that equal the backtests of their settings, ranking, the number tried, and the deflated Sharpe ratio."""

import itertools
import json
import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from market_cases import DAY, market_data, random_bars

from bellmark import backtester, trials
from bellmark import sweeping as sweep
from bellmark.assembly import backtest_strategy
from bellmark.backtester import ledger_rows, run_strategies, run_strategy, run_sweep
from bellmark.cli.sweep_output import print_sweep
from bellmark.component import Metric, Strategy, component, make, setting, settings_of
from bellmark.errors import UnknownNameError, UsageError
from bellmark.evaluation.curve import Undefined
from bellmark.evaluation.metrics import evaluate, evaluate_summary
from bellmark.evaluation.selection import deflated_sharpe_ratio, probabilistic_sharpe_ratio
from bellmark.evaluation.summary import Summary, summary_of
from bellmark.files import json_text
from bellmark.host import host
from bellmark.instrument import Instrument
from bellmark.market import LAST_BAR, RATE_ONE, margin_need, safe_closes
from bellmark.plugins.metrics import METRICS
from bellmark.plugins.sizings import FixedLots
from bellmark.profile import load_profile
from bellmark.strategies.sma_cross import SmaCross
from bellmark.sweep_axes import MOST, parse_sweeps

cpu = pytest.mark.cpu
ALL = [metric() for metric in METRICS]


# -- what a sweep runs over ----------------------------------------------------------------------------------------------------------


@component
class Many(Strategy):
    """A strategy with a setting of every type."""

    name: ClassVar[str] = "many"
    bars: int = setting(5, "bars", ge=1, le=1000)
    share: float = setting(0.5, "share", gt=-1.0, lt=1.0)
    level: float | None = setting(None, "level")
    both: bool = setting(False, "both sides")
    text: str = setting("a", "text")
    list: tuple[float, ...] = setting((), "numbers")


def values_of(text, strategy=Many):
    (axis,) = parse_sweeps([text], strategy, FixedLots)
    return list(axis.values)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("bars=5:50:5", [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]),
        ("bars=5:12:3", [5, 8, 11]),
        ("bars=9:3:-3", [9, 6, 3]),
        ("bars=7:7:1", [7]),
        (" bars = 1 , 3,2 ", [1, 3, 2]),
        ("bars=1e2,2.0", [100, 2]),
        ("share=0.1:0.7:0.1", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
        ("share=-0.5:0.5:0.25", [-0.5, -0.25, 0.0, 0.25, 0.5]),
        ("level=1:2:0.5", [1.0, 1.5, 2.0]),
        ("both=true,false", [True, False]),
        ("text=a:b,c", ["a:b", "c"]),
        ("market.fee_bps=0:2:1", [0.0, 1.0, 2.0]),
        ("market.maker_fee_bps=-1,0", [-1.0, 0.0]),
        ("market.resize=always,on_change", ["always", "on_change"]),
        ("market.latency_bars=1:3:1", [1, 2, 3]),
        ("sizing.lots=1,5", [1, 5]),
    ],
)
def test_values_are_the_decimals_that_were_written_in_the_type_of_the_setting(text, values):
    found = values_of(text)
    assert found == values and [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bars", "expected KEY=START:STOP:STEP or KEY=a,b,c, found 'bars'"),
        ("bars=", "found 'bars='"),
        ("bars=１,2", "expected int >= 1 <= 1000, found '１'"),
        ("bars=1_0", "expected int >= 1 <= 1000, found '1_0'"),
        ("bras=1,2", r"strategy 'many' has no setting 'bras'; did you mean 'bars'\? \(have: bars, both, .*market.NAME, .*sizing.NAME"),
        ("market.fee_bsp=1,2", r"\[market\] has no setting 'fee_bsp'; did you mean 'fee_bps'\?"),
        ("sizing.lot=1,2", r"\[sizing\] has no setting 'lot'; did you mean 'lots'\?"),
        ("trainer.batch=1,2", "strategy 'many' has no setting 'trainer.batch'"),
        ("bars=1:5", "expected START:STOP:STEP or a,b,c, found '1:5'"),
        ("bars=1:5:1,9", "expected START:STOP:STEP or a,b,c"),
        ("bars=1:5:0", "expected a step other than 0"),
        ("bars=1:5:-1", "expected a step that leads from 1 to 5, found -1"),
        ("bars=1:x:1", "expected int >= 1 <= 1000, found 'x'"),
        ("bars=1,,2", "expected int >= 1 <= 1000, found ''"),
        ("bars=1,2.5", "expected int >= 1 <= 1000, found 2.5"),
        ("bars=0:10:5", "expected int >= 1 <= 1000, found 0"),
        ("bars=990:1010:10", "found 1010"),
        ("bars=nan,1", "found 'nan'"),
        ("bars=1e999999999,1", "expected a number of at most 18 digits"),
        ("share=1e-99999999,0", "expected a number of at most 18 digits"),
        ("share=0.5,1", "expected float > -1 < 1, found 1"),
        ("bars=2,2", "expected each value once, found 2 twice"),
        ("bars=2,2.0", "found 2 twice"),
        ("both=yes,no", "expected true or false, found 'yes'"),
        ("text=a,,b", "found an empty value"),
        ("market.resize=alway", r"expected one of 'on_change', 'always', found 'alway'; did you mean 'always'\?"),
        ("list=1,2", "expected a setting with single values, found list of float: it cannot be swept"),
        ("level=0:2000000:1", "expected at most 1,000,000 values, found 2,000,001"),
        ("level=0:1:1e-17", "expected at most 1,000,000 values"),
    ],
)
def test_text_that_means_no_values_is_one_line(text, words):
    with pytest.raises(UsageError, match="^--sweep.*" + words):
        values_of(text)


def test_axes_keep_their_order_and_stay_below_a_million_combinations():
    axes = parse_sweeps(["share=0.1,0.2", "bars=1:3:1", "market.fee_bps=0,1"], Many, FixedLots)
    assert [axis.key for axis in axes] == ["share", "bars", "market.fee_bps"]
    with pytest.raises(UsageError, match=r"expected at most 1,000,000 combinations, found 2,000,000 \(1,000 x 2,000\)"):
        parse_sweeps(["bars=1:1000:1", "level=1:2000:1"], Many, FixedLots)
    assert math.prod(len(axis.values) for axis in parse_sweeps(["bars=1:1000:1", "level=1:1000:1"], Many, FixedLots)) == MOST
    with pytest.raises(UsageError, match="--sweep bars: expected each setting once, found it twice"):
        parse_sweeps(["bars=1,2", "bars=3,4"], Many, FixedLots)
    with pytest.raises(UsageError, match="found nothing to sweep"):
        parse_sweeps([], Many, FixedLots)


# -- one pass against curves ---------------------------------------------------------------------------------------------------------


def grid():
    settings = itertools.product((2, 5, 9), (10, 30), (0.0, -1.0))
    return [SmaCross(fast=fast, slow=slow, short_exposure=short) for fast, slow, short in settings]


def sized(fraction):
    return {"sizing": ("equity_fraction", {"fraction": fraction})}


MARKETS = {
    "costs": lambda: market_data(random_bars(700, seed=1), spread_ticks=2.0, fee_bps=3.0, slippage_bps=1.0, fee_minimum=2.0, **sized(1.0)),
    "ruin": lambda: market_data(random_bars(700, seed=2, scale=0.03), spread_ticks=2.0, capital_floor=0.5, **sized(3.0)),
    "days": lambda: market_data(random_bars(20, seed=6), **sized(1.0)),
    "refusals": lambda: market_data(random_bars(700, seed=5), initial_margin_rate=0.4, fee_bps=1.0, **sized(3.0)),
    "stops": lambda: market_data(
        random_bars(700, seed=5), maintenance_margin_rate=0.3, participation=(0.1, 0.5, 1.0), stop_loss=0.02, take_profit=0.03,
        trailing_stop=0.025, **sized(3.0),
    ),
    "shared": lambda: market_data(
        [random_bars(400, seed=3, symbol="A"), random_bars(300, seed=4, symbol="B", start=50 * DAY)],
        account="shared", fee_bps=2.0, **sized(1.0),
    ),
}  # fmt: skip


@cpu
@pytest.mark.slow
@pytest.mark.parametrize("market", MARKETS)
def test_metrics_in_the_pass_equal_those_of_the_curves(market):
    data = MARKETS[market]()
    found = run_sweep(data, grid())
    for summary, result in zip(found, run_strategies(data, grid()), strict=True):
        curve, (lane,) = result.portfolio(), result.lanes
        held = list(lane.open_positions.values())
        refused = int((lane.rejections["reason"] != LAST_BAR).sum())
        wanted = summary_of(curve, refusals=refused, open_position=sum(map(abs, held)) if len(held) > 1 else sum(held))
        for one, other in zip(evaluate(curve, ALL), evaluate_summary(summary, ALL), strict=True):
            if one.name != "exposure":
                assert other.reason == one.reason, one.name
                assert one.value is None or other.value == pytest.approx(one.value, rel=1e-9, abs=1e-12), one.name
        for name in Summary.__dataclass_fields__:
            assert getattr(summary, name) == pytest.approx(getattr(wanted, name), rel=1e-9, abs=1e-9), name
    if market == "ruin":
        assert any(summary.ruined for summary in found)
    if market == "refusals":
        assert any(summary.refusals for summary in found)


# -- the whole sweep -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def profile(tmp_path):
    return load_profile("smoke", options={"run.folder": (str(tmp_path / "runs"), "test"), "market.fee_bps": (1.0, "test")})


SWEEPS = ["fast=2:8:2", "slow=6,12,24"]


def rows_by_settings(result):
    return {tuple(row.settings.values()): row for row in result.rows}


@cpu
def test_each_row_equals_the_backtest_of_its_settings(profile):
    sweeps = ["fast=2,5", "market.fee_bps=0,3", "market.spread_ticks=10:20:10", "sizing.lots=1,2"]
    found = rows_by_settings(sweep.run("sma_cross", profile, sweeps, split="validation"))
    assert list(itertools.product((2, 5), (0.0, 3.0), (10.0, 20.0), (1, 2))) == sorted(found)
    for fast, fee, spread, lots in found:
        market = replace(profile.market, fee_bps=fee, spread_ticks=spread)
        one = replace(profile, market=market, sizing=replace(profile.sizing, lots=lots))
        curve = backtest_strategy(SmaCross(fast=fast), one, split="validation").portfolio()
        row = found[fast, fee, spread, lots]
        assert row.summary.end_equity == pytest.approx(curve.equity[-1], rel=1e-15)
        for value in evaluate(curve, ALL):
            if value.name != "exposure":
                assert row.values[value.name] == pytest.approx(value.value, rel=1e-9, abs=1e-12)
                assert row.reasons.get(value.name) == value.reason


@cpu
def test_rows_come_from_the_best_to_the_worst_and_refused_combinations_are_counted(profile):
    result = sweep.run("sma_cross", profile, SWEEPS)
    values = [row.values["sharpe_ratio"] for row in result.rows]
    assert values == sorted(values, reverse=True) and result.best is result.rows[0]
    assert len(result.rows) == 10 and result.refused == 2 == sum(result.refusals.values())
    assert next(iter(result.refusals)) == "strategy 'sma_cross': expected fast below slow, found fast 6 and slow 6"
    assert result.split == "train" and result.warnings == ()
    costs = sweep.run("sma_cross", profile, SWEEPS, rank="costs")
    values = [row.values["costs"] for row in costs.rows]
    assert values == sorted(values), "less is better"
    assert rows_by_settings(costs) == rows_by_settings(result)


@cpu
def test_equal_rows_keep_the_order_of_the_combinations_and_rows_without_a_value_come_last(profile):
    # short_exposure moves nothing where averages of 700 bars are not reached within the first bars of the part
    result = sweep.run("sma_cross", profile, ["slow=700,4,720", "fast=3,2"], rank="profit_factor")
    known = [row for row in result.rows if row.values["profit_factor"] is not None]
    assert [row.settings["slow"] for row in known] == [4, 4]
    missing = [(row.settings["slow"], row.settings["fast"]) for row in result.rows[len(known) :]]
    assert missing == [(700, 3), (700, 2), (720, 3), (720, 2)]
    assert result.rows[-1].reasons["profit_factor"]


@cpu
def test_every_combination_is_one_trial_however_often_it_is_seen(profile):
    from bellmark import api

    first = sweep.run("sma_cross", profile, SWEEPS)
    assert first.tried == 10
    assert sweep.run("sma_cross", profile, SWEEPS).tried == 10
    assert sweep.run("sma_cross", profile, ["fast=2,3", "slow=6,12"]).tried == 12
    assert sweep.run("sma_cross", profile, SWEEPS, split="test").tried == 10, "another window"
    api.backtest("sma_cross", profile=profile, split="train")
    assert sweep.run("sma_cross", profile, ["slow=50,60"]).tried == 14, "20 and 50 are the defaults, seen by the backtest"
    lines = trials.read(profile.run.folder)
    assert [len(trial.configurations) for trial in lines] == [10, 10, 4, 10, 0, 2]


@cpu
def test_deflated_ratio_of_the_best_counts_everything_tried(profile):
    sweep.run("sma_cross", profile, ["fast=1:3:1", "slow=30:60:10"])
    result = sweep.run("sma_cross", profile, SWEEPS)
    ratios = [ratio for row in result.rows if not isinstance(ratio := row.summary.sharpe(), Undefined)]
    best = result.best.summary
    found = result.deflated
    assert found.trials == result.tried == 22 and found.variance == pytest.approx(np.var(ratios, ddof=1))
    wanted = deflated_sharpe_ratio(best.sharpe(), best.bars, 22, found.variance, best.skewness(), best.kurtosis())
    assert found.value == wanted and 0.0 <= wanted <= 1.0
    assert wanted < probabilistic_sharpe_ratio(best.sharpe(), best.bars, best.skewness(), best.kurtosis())


@cpu
def test_one_combination_has_a_deflated_ratio_only_as_the_first_try(profile):
    first = sweep.run("sma_cross", profile, ["fast=3"])
    best = first.best.summary
    assert first.deflated.value == probabilistic_sharpe_ratio(best.sharpe(), best.bars, best.skewness(), best.kurtosis())
    second = sweep.run("sma_cross", profile, ["fast=4"])
    assert second.deflated.value is None and "how those of the 2 tried spread" in second.deflated.reason


@cpu
def test_nothing_to_rank_by_says_why(profile):
    result = sweep.run("sma_cross", profile, ["slow=1150,1160"])
    assert result.best is None and result.deflated.value is None
    assert result.deflated.reason == "no combination has a sharpe_ratio: equity never moved"


@cpu
def test_choosing_on_the_test_part_warns(profile):
    assert sweep.run("sma_cross", profile, ["fast=2,4"], split="test").warnings == (sweep.CHOSEN_ON_TEST,)


@cpu
@pytest.mark.slow
def test_settings_that_decide_the_code_run_in_groups_and_report_their_cautions(profile, monkeypatch):
    bars = random_bars(300, seed=3)

    def data_of(market):
        return market_data(bars, **{info.name: getattr(market, info.name) for info in settings_of(type(market))})

    monkeypatch.setattr(sweep, "load_market_data", lambda profile, plugins: data_of(profile.market))
    result = sweep.run("sma_cross", profile, ["market.same_close=false,true", "fast=2,4"])
    assert len(result.cautions) == 1 and "same_close" in result.cautions[0]
    found = rows_by_settings(result)
    for same, fast in itertools.product((False, True), (2, 4)):
        (wanted,) = run_sweep(data_of(replace(profile.market, same_close=same)), [SmaCross(fast=fast)])
        assert found[same, fast].summary == wanted
    assert found[False, 2].summary.end_equity != found[True, 2].summary.end_equity


@cpu
def test_section_that_refuses_a_combination_of_its_settings_is_counted(profile, monkeypatch):
    monkeypatch.setattr(sweep, "load_market_data", lambda profile, plugins: market_data(random_bars(300, seed=3), same_close=True))
    result = sweep.run("sma_cross", profile, ["market.same_close=true", "market.latency_bars=1,2"])
    assert len(result.rows) == 1 and result.refused == 1
    assert "expected latency_bars = 1, found 2" in next(iter(result.refusals))


class Held(Metric):
    """Bars with a position; only the curve knows."""

    name = "held"
    unit = "fraction of bars"
    convention = "bars with a position / bars"
    higher_is_better = False

    def compute(self, curve):
        return float(np.mean(curve.exposure[1:] != 0.0))


@cpu
def test_metric_that_needs_the_curve_gives_the_same_rows_with_more_work(profile, monkeypatch):
    monkeypatch.setattr(sweep, "_MEMORY", 1_000_000)  # several rounds
    light = sweep.run("sma_cross", profile, SWEEPS, metrics=ALL)
    heavy = sweep.run("sma_cross", profile, SWEEPS, "held", metrics=[*ALL, Held()])
    names = [[metric["name"] for metric in result.metrics] for result in (light, heavy)]
    assert set(names[1]) - set(names[0]) == {"exposure", "held"}
    held = [row.values["held"] for row in heavy.rows]
    assert held == sorted(held)
    curves = rows_by_settings(heavy)
    for key, row in rows_by_settings(light).items():
        for name, value in row.values.items():
            assert curves[key].values[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
        assert curves[key].summary.skewness() == pytest.approx(row.summary.skewness(), rel=1e-9)
        assert curves[key].summary.fills == row.summary.fills


@cpu
def test_curves_under_several_market_settings_share_one_reading_of_the_data(profile, monkeypatch):
    read, load = [], sweep.load_market_data
    monkeypatch.setattr(sweep, "load_market_data", lambda *given: read.append(given[0]) or load(*given))
    texts = ["market.fee_bps=0,2,5", "market.start_equity=10000,20000"]
    light, heavy = (sweep.run("sma_cross", profile, texts, *rank, metrics=[*ALL, Held()]) for rank in ((), ("held",)))
    assert len(read) <= 3  # of the light one to see whether it needs curves, and for its group; of the heavy one for its group
    curves = rows_by_settings(heavy)
    for key, row in rows_by_settings(light).items():
        summary, other = row.summary, curves[key].summary
        assert (summary.start_equity, summary.fills) == (other.start_equity, other.fills)
        assert other.end_equity == pytest.approx(summary.end_equity, rel=1e-12)
    assert len({row.summary.end_equity for row in heavy.rows}) == 6


@cpu
def test_number_of_combinations_side_by_side_changes_nothing(profile, monkeypatch):
    seen = []
    whole = sweep.run("sma_cross", profile, SWEEPS)
    monkeypatch.setattr(sweep, "_LANES", 3)
    parts = sweep.run("sma_cross", profile, SWEEPS, progress=lambda done, total: seen.append((done, total)))
    assert parts.rows == whole.rows
    assert seen == [(5, 12), (8, 12), (11, 12), (12, 12)]


@cpu
@pytest.mark.slow
@pytest.mark.parametrize("account", ["per_symbol", "shared"])
def test_memory_of_a_combination_counts_its_curve_and_its_ledger(profile, account):
    data = market_data([random_bars(500, seed=1, symbol="A"), random_bars(400, seed=2, symbol="B")], account=account)
    axes = parse_sweeps(["fast=2,4"], SmaCross, FixedLots)
    search = sweep._Search(profile, SmaCross(), "", axes, "test", [Held()], Held(), None)
    run = backtester._StrategyRun(data, [SmaCross()] * 4, "test", "", ("record", "ledger"), ledger_rows=ledger_rows(data, "test"))
    used = sum(run.registry[name].nbytes for name in run.registry.names() if name.split("_")[-1].startswith("LN"))
    assert used / 4 <= search._bytes_each(data) <= 8 * used / 4
    assert search._side_by_side(data) * used / 4 <= sweep._MEMORY


@cpu
def test_only_strategies_whose_ledger_was_too_short_run_again(monkeypatch):
    data = market_data(random_bars(200, seed=1))
    strategies = [SmaCross(fast=fast, slow=2 * fast) for fast in (40, 1, 50, 2)]
    whole = run_strategies(data, strategies)
    made, kind = [], backtester._StrategyRun

    def counted(data, strategies, *given, **named):
        made.append((len(strategies), named["ledger_rows"]))
        return kind(data, strategies, *given, **named)

    monkeypatch.setattr(backtester, "_StrategyRun", counted)
    monkeypatch.setattr(backtester, "_FIRST_ROWS", 16)
    monkeypatch.setattr(backtester, "_LEDGER_MEMORY", 1)
    parts = run_strategies(data, strategies)
    written = [len(result.lanes[0].fills) + len(result.lanes[0].rejections) for result in whole]
    most = max(written)
    assert [count > 16 for count in written] == [False, True, False, True]
    assert made == [(4, 16), (1, most), (1, most)]
    for one, other in zip(whole, parts, strict=True):
        assert one.settings == other.settings and np.array_equal(one.lanes[0].fills, other.lanes[0].fills)
        assert np.array_equal(one.lanes[0].equity_T, other.lanes[0].equity_T)


@cpu
@pytest.mark.slow
def test_symbols_with_an_account_each_are_summed(profile, monkeypatch):
    bars = [random_bars(300, seed=3, symbol="A"), random_bars(260, seed=4, symbol="B")]
    data = market_data(bars, fee_bps=2.0, **sized(1.0))
    monkeypatch.setattr(sweep, "load_market_data", lambda profile, plugins: data)
    result = sweep.run("sma_cross", profile, ["fast=2,4", "slow=10,20"], split="train")
    assert result.symbols == ("A", "B")
    for row in result.rows:
        curve = run_strategies(data, [SmaCross(**row.settings)])[0].portfolio()
        assert row.values["sharpe_ratio"] == pytest.approx(evaluate(curve, ALL)[4].value, rel=1e-12)
        assert row.summary.start_equity == 200_000.0 and "exposure" in row.values


@cpu
def test_document_is_strict_json_and_the_columns_hold_every_row(profile):
    result = sweep.run("sma_cross", profile, [*SWEEPS, "short_exposure=0,-1"])
    document = json.loads(json_text(result.document()), parse_constant=lambda _: pytest.fail("not strict JSON"))
    assert len(document["rows"]) == 20 and document["tried"] == 20 and document["refused"]["count"] == 4
    assert document["rows"][0]["settings"] == result.rows[0].settings
    assert document["rows"][0]["metrics"]["sharpe_ratio"] == {"reason": None, "value": result.rows[0].values["sharpe_ratio"]}
    assert document["deflated_sharpe_ratio"]["value"] == result.deflated.value
    assert document["deflated_sharpe_ratio"]["expected_maximum_sharpe"] > 0.0 and "rejections" in document["rows"][0]
    command = "bellmark backtest sma_cross --profile smoke --sweep fast=2:8:2 --sweep slow=6,12,24 --sweep short_exposure=0,-1"
    assert document["provenance"]["command"] == f"{command} --rank sharpe_ratio --split train"
    columns = result.columns()
    assert {len(column) for column in columns.values()} == {20}
    assert list(columns)[:4] == ["rank", "fast", "slow", "short_exposure"] and columns["rank"] == list(range(1, 21))
    assert columns["sharpe_ratio"] == [row.values["sharpe_ratio"] for row in result.rows]


@cpu
def test_print_shows_the_best_the_number_tried_and_the_deflated_ratio(profile, capsys):
    result = sweep.run("sma_cross", profile, SWEEPS, split="test")
    print_sweep(result.document(), top=3)
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert "best 3 of 10 combinations by sharpe ratio" in printed.out
    assert sum(line.split()[:1] in (["1"], ["2"], ["3"], ["4"]) for line in lines) == 3
    assert "tried: 10 configurations on these bars, this sweep and all before it" in lines
    value = f"{result.deflated.value:.3f}"
    told = [line for line in lines if line.startswith(f"deflated Sharpe ratio: {value}")]
    assert len(told) == 1 and told[0].endswith("the best that 10 tries give by luck)")
    assert "refused: 2 combinations" in printed.out and sweep.CHOSEN_ON_TEST in printed.err


@cpu
def test_print_says_what_is_undefined(profile, capsys):
    document = sweep.run("sma_cross", profile, ["slow=1150,1160"]).document()
    print_sweep(document | {"cautions": ["market.same_close: better than life"]})
    printed = capsys.readouterr().out
    assert "deflated Sharpe ratio: undefined: no combination has a sharpe_ratio: equity never moved" in printed
    assert "caution: market.same_close: better than life" in printed


def test_bad_requests_are_one_line(profile):
    with pytest.raises(UsageError, match=r"split: expected one of train, validation, test, found 'tset'; did you mean 'test'\?"):
        sweep.run("sma_cross", profile, ["fast=1,2"], split="tset")
    with pytest.raises(UnknownNameError, match=r"no strategy named 'sma_cros'; did you mean 'sma_cross'\?"):
        sweep.run("sma_cros", profile, ["fast=1,2"])
    with pytest.raises(UnknownNameError, match=r"no metric named 'sharp_ratio'; did you mean 'sharpe_ratio'\?"):
        sweep.run("sma_cross", profile, ["fast=1,2"], "sharp_ratio")
    with pytest.raises(UsageError, match=r"--rank trades: this metric does not say which way is better \(have: .*sharpe_rati"):
        sweep.run("sma_cross", profile, ["fast=1,2"], "trades")
    with pytest.raises(UsageError, match="each of the 2 combinations is refused, the first because: strategy 'sma_cross': expected fast"):
        sweep.run("sma_cross", profile, ["fast=90,91"])
    assert trials.read(profile.run.folder) == [], "nothing was tried"


@cpu
def test_settings_of_the_strategy_that_are_not_swept_stay(profile):
    base = make(host().get("strategy", "sma_cross"), {"fast": 3, "slow": 9, "short_exposure": -1.0}, "sma_cross")
    result = sweep.run(base, profile, ["slow=9,12"], split="validation")
    wanted = backtest_strategy(base, profile, split="validation").portfolio()
    assert rows_by_settings(result)[(9,)].summary.end_equity == pytest.approx(wanted.equity[-1], rel=1e-15)


def test_a_rule_that_draws_lots_draws_the_same_alone_and_in_a_sweep():
    data = market_data(random_bars(300, seed=4))
    alike = [make(host().get("strategy", "random"), {"change_probability": 0.2}, "random")] * 3
    ends = [summary.end_equity for summary in run_sweep(data, alike)]
    alone = run_strategy(data, alike[0])
    assert ends == [alone.lanes[0].equity_T[-1] / 1e9] * 3 and len(alone.lanes[0].fills) > 5
    assert [len(result.lanes[0].fills) for result in run_strategies(data, alike)] == [len(alone.lanes[0].fills)] * 3


# -- bars on which nothing happens ---------------------------------------------------------------------------------------------------

QUIET_RULES = ("orders", "participation", "protect", "maintenance")
INSTRUMENTS = (
    Instrument("X", tick_size=0.25, contract_multiplier=50.0),
    Instrument("X", tick_size=0.01, lot_size=0.003, contract_multiplier=7.0),  # a quantum of a lot is no whole number of nano-currency
    Instrument("X", tick_size=0.01, contract_multiplier=10.0, allow_negative_prices=True),
)


def quiet_market(seed):
    """Random bars and numbers that stop, take profit, breach margins and ruin now and then."""
    draw = np.random.default_rng(seed)
    instrument = INSTRUMENTS[seed % 3]
    tick = instrument.tick_size
    bars = random_bars(400, seed=seed, scale=draw.choice([0.002, 0.01, 0.04]), tick=tick)
    bars = replace(bars, volume=draw.choice([0.0, np.nan, 5.0, 1e6], 400, p=[0.05, 0.05, 0.2, 0.7]))
    if instrument.allow_negative_prices:  # a commodity that falls through zero and comes back
        shift = np.round(draw.uniform(50, 110) / tick) * tick
        bars = replace(bars, **{name: np.round((price - shift) / tick) * tick for name, price in bars.prices.items()})
    numbers = {
        "spread_ticks": float(draw.choice([0.0, 2.0])),
        "fee_bps": float(draw.choice([0.0, 2.0])),
        "fee_per_contract": float(draw.choice([0.0, 1.5])),
        "start_equity": float(draw.choice([2_000.0, 20_000.0, 1e6])),
        "initial_margin_rate": float(draw.choice([0.0, 0.1])),
        "maintenance_margin_rate": float(draw.choice([0.0, 0.05, 0.3, 1.0])),
        "maintenance_margin_per_contract": float(draw.choice([0.0, 5.0, 400.0])),
        "capital_floor": float(draw.choice([0.0, 0.5, 0.9])),
        "stop_loss": float(draw.choice([0.0, 0.01, 0.05])),
        "take_profit": float(draw.choice([0.0, 0.01, 0.05])),
        "participation": (0.2, 0.5, 1.0) if draw.random() < 0.5 else (),
    }
    lots = int(draw.choice([1, 3, 40]))
    return market_data(bars, instrument, rules=QUIET_RULES, sizing=("fixed_lots", {"lots": lots}), **numbers)


def assert_same_accounts(data, strategies):
    """A pass with sums alone, where quiet bars run in loops of their own, against the whole step on every bar: the same accounts."""
    for summary, result in zip(run_sweep(data, strategies), run_strategies(data, strategies), strict=True):
        (lane,) = result.lanes
        refused = int((lane.rejections["reason"] != LAST_BAR).sum())
        wanted = summary_of(result.portfolio(), refusals=refused, open_position=lane.open_position)
        for name in ("end_equity", "costs", "gross", "fills", "refusals", "ruined", "open_position", "trades", "winning_trades",
                     "losing_trades", "bars", "winning_bars", "losing_bars", "peak_bar", "valley_bar"):  # fmt: skip
            assert getattr(summary, name) == getattr(wanted, name), name
        for name in ("return_sum", "return_sum_2", "return_sum_3", "return_sum_4", "loss_sum", "loss_sum_2", "max_drawdown", "equity_sum"):
            assert getattr(summary, name) == pytest.approx(getattr(wanted, name), rel=1e-9, abs=1e-12), name
    return summary


@cpu
def test_quiet_bars_change_no_account():
    strategies = [SmaCross(fast=fast, slow=slow, short_exposure=short) for fast, slow, short in ((2, 9, -1.0), (5, 30, -1.0), (3, 12, 0.0))]
    seen = [assert_same_accounts(quiet_market(seed), strategies) for seed in range(60)]
    assert any(summary.ruined for summary in seen) and any(summary.refusals for summary in seen)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("position", [1, 700, -1, -700])
def test_closes_that_are_called_safe_breach_nothing(position, rate):
    draw = np.random.default_rng(abs(position) + int(rate * 100))
    margin_rate = round(rate * RATE_ONE)
    tightest = 0
    for _ in range(400):
        numerator, per_lot = int(draw.choice([1, 12_500_000, 10_000_000_000])), int(draw.choice([0, 5_000_000_000]))
        price = int(draw.integers(1, 2_000_000))
        cash = int(draw.uniform(-2.0, 3.0) * price * abs(position) * numerator) - position * price * numerator * int(draw.random() < 0.5)
        floor = int(draw.choice([0, 10**12]))
        low, high = safe_closes(position, cash, position * numerator, floor, per_lot, margin_rate)
        edges = [edge + step for edge in (low, high) if abs(edge) < 10**9 for step in (-3, -2, -1, 0, 1, 2, 3)]
        for close in [price, *edges, *draw.integers(-100, 4_000_000, 20).tolist()]:
            equity = cash + position * close * numerator
            if low <= close <= high:
                assert equity > floor
                assert equity >= margin_need(position, close, numerator, 1, per_lot, margin_rate)
            tightest += low <= close <= high
    assert tightest > 400, "a bound that calls nothing safe would pass too"
