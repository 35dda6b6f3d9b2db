"""The report's files: the same bytes twice, no request, safe names, and honest on degenerate results."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from market_cases import market_data, random_bars

from bellmark.backtester import run_strategy
from bellmark.component import Report, make
from bellmark.errors import PluginError, RunError, UsageError
from bellmark.evaluation.trades import trade_table
from bellmark.host import host
from bellmark.plugins.metrics import METRICS
from bellmark.plugins.reports import REPORTS
from bellmark.reporting import build
from bellmark.reporting.content import collect
from bellmark.reporting.html import html_text
from bellmark.reporting.markdown import markdown_text

ALL = [metric() for metric in METRICS]
NASTY = "<script>alert(1)</script>|`x`</script>\u2028"


def strict(text):
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def reports():
    return [report() for report in REPORTS]


class Page(HTMLParser):
    """The elements of a page outside scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


def test_same_results_give_the_same_bytes_in_two_processes(synthetic, tmp_path):
    first = build(synthetic.run(), synthetic.typical(300), tmp_path / "a", reports())
    again = build(synthetic.run(), synthetic.typical(300), tmp_path / "b", reports())
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import conftest\n"
        "from bellmark.reporting import build; from bellmark.plugins.reports import REPORTS\n"
        "build(conftest.make_run(), conftest.typical(300), sys.argv[2], [one() for one in REPORTS])\n"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent), str(tmp_path / "c")]
    subprocess.run(command, check=True, cwd=tmp_path, env={"PYTHONHASHSEED": "77", "PATH": ""}, timeout=120)
    for name, path in first.items():
        assert path.read_bytes() == again[name].read_bytes(), name
        assert path.read_bytes() == (tmp_path / "c" / path.name).read_bytes(), name


def test_json_is_strict_and_sorted_and_has_no_clock_no_path_and_no_run_name(synthetic, tmp_path):
    text = build(synthetic.run(), synthetic.typical(), tmp_path, reports())["json"].read_text("utf-8")
    document = strict(text)
    assert document["schema_version"] == 1
    assert list(document) == sorted(document)
    assert str(tmp_path) not in text and "quickstart-1" not in text
    assert "wall" not in text


def test_page_asks_no_host_for_anything(synthetic):
    page = Page(html_text(collect(synthetic.run(), synthetic.typical(), ALL)))
    for tag, name, value in page.attributes:
        if name in ("src", "href", "action", "data", "poster", "srcset", "background"):
            assert not re.match(r"\s*(https?:)?//", value), (tag, name, value)
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert any(tag == "meta" and name == "content" and "default-src 'none'" in value for tag, name, value in page.attributes)


def test_page_has_every_section_and_a_table_under_every_chart(synthetic):
    text = html_text(collect(synthetic.run(), synthetic.typical(), ALL))
    words = " ".join(Page(text).words)
    for title in ("Equity", "Under water", "Exposure", "Returns by month", "Action mix", "Training loss", "Validation Sharpe ratio",
                  "Gradient norm", "Mean Q value", "Metrics (P = 252", "Deepest drawdowns", "Costs by kind", "Rejected orders by reason",
                  "Trades (", "Provenance", "Warnings", "Fills by cause", "Market rules"):  # fmt: skip
        assert title in words, title
    figures = re.findall(r"<figure.*?</figure>", text, re.S)
    assert len(figures) == 9
    for figure in figures:
        assert "<h3>" in figure and 'class="unit"' in figure and "<details>" in figure and "<table>" in figure
        assert "aria-label=" in figure
    assert "prefers-color-scheme: dark" in text


def test_each_chart_is_drawn_into_its_own_place(synthetic):
    text = html_text(collect(synthetic.run(), synthetic.typical(), ALL))
    document = json.loads(re.search(r'id="bokeh-document">(.*?)</script>', text, re.S)[1])
    pairs = json.loads(re.search(r"var roots = (.*?);", text)[1])
    assert [root["id"] for root in document["roots"]] == [root for _, root in pairs]
    assert [name for name, _ in pairs][:3] == ["equity", "drawdown", "exposure"]
    in_percent = [re.search(r'"format": "[^"]*%"', json.dumps(root)) is not None for root in document["roots"]]
    assert in_percent == [False, True, True, False, False, False, False]
    for name, _ in pairs:
        assert f'id="plot-{name}"' in text


def test_names_are_text_everywhere(synthetic):
    run = synthetic.run()
    run.manifest["profile"] = NASTY
    run.manifest["build"] = {"blas": NASTY}
    tests = [
        synthetic.backtest(NASTY, [synthetic.lane(synthetic.walk(300, 1), learner=0, symbol=NASTY)], command=NASTY, warnings=(NASTY,)),
        synthetic.backtest(NASTY, [synthetic.lane(synthetic.walk(300, 2), symbol=NASTY)], "strategy"),
    ]
    content = collect(run, tests, ALL)
    text = html_text(content)
    page = Page(text)
    assert page.tags.count("script") == 3
    assert "alert(1)" in " ".join(page.words)
    assert "<script>alert" not in text
    markdown = markdown_text(content)
    assert "<script>" not in markdown.replace("\\<", "")
    for line in markdown.splitlines():
        if line.startswith("|"):
            assert "\\|" in line or "alert" not in line
    strict(json.dumps(content, allow_nan=False))


def test_headline_and_metrics_agree_in_the_three_files(synthetic, tmp_path):
    files = build(synthetic.run(), synthetic.typical(), tmp_path, reports())
    document = strict(files["json"].read_text("utf-8"))
    sentence = document["verdict"]["sentence"]
    assert sentence in files["html"].read_text("utf-8")
    assert sentence.replace("_", "\\_") in files["markdown"].read_text("utf-8").replace("\\(", "(")
    returns = [account["metrics"]["total_return"]["value"] for account in document["accounts"] if account["kind"] == "learner"]
    assert document["median"]["total_return"]["value"] == pytest.approx(float(np.median(returns)))
    assert document["verdict"]["median_total_return"] == pytest.approx(float(np.median(returns)))
    line = document["charts"]["equity"]["lines"][0]
    assert line["role"] == "median"
    assert line["value"][-1] / document["start_equity"] - 1 == pytest.approx(float(np.median(returns)), rel=1e-5)


def test_flat_policy_is_reported_with_reasons_not_zeros(synthetic):
    tests = [
        synthetic.backtest("p", [synthetic.lane(np.zeros(300), learner=k, trading=False) for k in range(2)]),
        synthetic.backtest("flat", [synthetic.lane(np.zeros(300), trading=False)], "strategy"),
    ]
    content = collect(synthetic.run(rows=[]), tests, ALL)
    assert content["median"]["sharpe_ratio"]["value"] is None
    assert "equity never moved" in content["median"]["sharpe_ratio"]["reason"]
    assert content["verdict"]["matched"] == ["flat"]
    assert content["actions"]["rows"] == []
    assert content["training"]["charts"] == []
    text = html_text(content)
    assert "equity never moved" in text and "undefined" in text


def test_ruined_account_is_warned_of_and_has_no_ratio(synthetic):
    returns = np.concatenate((np.full(50, -0.05), [-0.999999], np.zeros(300)))
    tests = [synthetic.backtest("p", [synthetic.lane(returns, learner=0, ruined=True), synthetic.lane(synthetic.walk(351, 3), learner=1)])]
    content = collect(synthetic.run(), tests, ALL)
    assert any("was ruined" in warning for warning in content["warnings"])
    assert content["accounts"][0]["metrics"]["sharpe_ratio"] == {"value": None, "reason": "the account was ruined"}
    assert content["median"]["sharpe_ratio"]["value"] is None
    assert "1 of 2 learners was ruined" in content["verdict"]["sentence"]
    html_text(content)


def test_equity_below_zero_is_reported(synthetic):
    lane = synthetic.lane(np.zeros(40), learner=0, ruined=True)
    lane.equity_T[20:] = -5_000_000_000
    content = collect(None, [synthetic.backtest("p", [lane])], ALL)
    assert content["accounts"][0]["metrics"]["max_drawdown"]["value"] < -1.0
    strict(json.dumps(content, allow_nan=False))
    html_text(content)


@pytest.mark.parametrize("bars", [0, 1, 2])
def test_shortest_windows_make_a_report(synthetic, bars, tmp_path):
    tests = synthetic.typical(bars)
    files = build(synthetic.run(), tests, tmp_path, reports())
    document = strict(files["json"].read_text("utf-8"))
    assert document["part"]["bars"] == bars
    assert document["accounts"][0]["metrics"]["sharpe_ratio"]["value"] is None


def test_missing_baselines_and_missing_run_make_a_report(synthetic, tmp_path):
    policy = synthetic.typical()[0]
    assert "no baseline" in collect(None, [policy], ALL)["verdict"]["sentence"]
    rules = synthetic.typical()[1:]
    content = collect(None, rules, ALL)
    assert content["verdict"]["sentence"].startswith("No learner") and content["median"] == {} and content["trades"] is None
    assert {line["label"] for line in content["charts"]["exposure"]["lines"]} == {"buy_and_hold", "sma_cross", "random", "flat"}
    build(None, rules, tmp_path, reports())


def test_accounts_with_other_stamps_and_several_symbols_are_aligned(synthetic):
    lanes = [synthetic.lane(synthetic.walk(200 + 10 * k, k), learner=k // 2, symbol="AB"[k % 2], first="2011-01-03") for k in range(4)]
    content = collect(synthetic.run(), [synthetic.backtest("p", lanes)], ALL)
    assert content["start_equity"] == 200_000.0
    assert [account["symbols"] for account in content["accounts"]] == [["A", "B"], ["A", "B"]]
    html_text(content)


CAUTION = "market.same_close: orders fill at the very close that decided them, which nobody can trade"


def test_what_is_better_than_life_stands_first_and_in_red_everywhere(synthetic, tmp_path):
    tests = synthetic.typical()
    for test in tests:
        test.cautions = (CAUTION,)
    files = build(synthetic.run(), tests, tmp_path, reports())
    assert strict(files["json"].read_text("utf-8"))["cautions"] == [CAUTION]
    page = files["html"].read_text("utf-8")
    assert re.search(r'<section class="cautions".*?' + re.escape(CAUTION), page, re.S)
    assert page.index('class="cautions"') < page.index('class="warnings"')
    style = re.search("<style>(.*?)</style>", page, re.S)[1]
    assert re.search(r"\.cautions {[^}]*color: var\(--red\)", style)
    light, dark = re.findall(r"--red: #(\w{6})", style)[:2]
    assert light != dark and all(int(code[:2], 16) > 2 * int(code[2:4], 16) for code in (light, dark))
    assert f"- **{CAUTION.replace('_', chr(92) + '_')}**" in files["markdown"].read_text("utf-8").replace("\\.", ".")
    quiet = build(synthetic.run(), synthetic.typical(), tmp_path / "quiet", reports())
    assert 'class="cautions"' not in quiet["html"].read_text("utf-8") and "Better than life" not in quiet["markdown"].read_text("utf-8")


def test_fills_are_counted_by_cause_and_rules_that_are_not_defaults_are_listed(synthetic):
    content = collect(None, synthetic.typical(), ALL)
    for account in content["accounts"]:
        assert sum(account["fills_by_cause"].values()) == account["fills"]
    assert set(content["accounts"][0]["fills_by_cause"]) == {"order", "stop"}
    rules = {rule["key"]: rule["value"] for rule in content["rules"]}
    assert rules == {
        "execution": "bar", "sizing": "fixed_lots", "sizing.lots": 500, "market.spread_ticks": 1.0, "market.participation": [0.1, 0.2, 0.3],
    }  # fmt: skip
    text = markdown_text(content)
    assert "## Fills by cause" in text and "| market.participation | 0.1, 0.2, 0.3 | fraction |" in text.replace("\\", "")


def test_a_shared_account_lists_each_symbol_and_says_that_it_is_one_account():
    shared = market_data([random_bars(60, seed=k, symbol=name) for k, name in enumerate("AB")], account="shared", same_close=False)
    result = run_strategy(shared, make(host().get("strategy", "random"), {"change_probability": 0.5, "seed": 1}, "random"))
    content = collect(None, [result], ALL)
    (account,) = content["accounts"]
    assert account["symbols"] == ["A", "B"] and content["part"]["shared_account"]
    assert account["open_lots"] == result.lanes[0].open_positions
    assert account["fills_by_cause"] == {"order": len(result.lanes[0].fills)}
    assert "of A, B in one account" in html_text(content)
    symbols = trade_table(result.portfolio())["symbol"]
    assert set(symbols.tolist()) == {0, 1}


def test_rejections_are_counted_by_reason(synthetic):
    content = collect(None, synthetic.typical(), ALL)
    counted = content["accounts"][0]["rejections"]
    assert sum(counted.values()) == 3 and sorted(counted.values()) == [1, 2]
    assert all(isinstance(reason, str) and not reason.isdigit() for reason in counted)


def test_months_compound_to_the_total(synthetic):
    content = collect(None, synthetic.typical(700), ALL)
    for column in content["months"]["columns"][1:]:
        total = np.prod([1.0 + value for value in column["month"]]) - 1.0
        account = next(one for one in content["accounts"] if one["label"] == column["label"])
        assert total == pytest.approx(account["metrics"]["total_return"]["value"])
        assert total == pytest.approx(np.prod([1.0 + value for value in column["year"]]) - 1.0)


def test_a_million_bars_make_a_file_of_the_same_size_as_a_few_thousand(synthetic):
    tests = synthetic.typical(1_000_000, learners=2, size=0.0001, step=60_000_000_000)
    text = html_text(collect(synthetic.run(), tests, ALL))
    small = html_text(collect(synthetic.run(), synthetic.typical(5_000, learners=2, size=0.0001, step=60_000_000_000), ALL))
    assert len(text) < 3_000_000
    assert len(text) < 1.1 * len(small)


def test_metrics_of_the_catalog_are_used_and_unusable_ones_are_named(synthetic, monkeypatch):
    from bellmark import host as host_module
    from bellmark.component import Metric, component, setting

    @component
    class Needy(Metric):
        """A metric that cannot be computed by default."""

        name = "needy"
        level: float = setting(meaning="what to compare with")

    loaded = host_module.Host().load()
    plugin = type("Plugin", (), {"bellmark_metrics": staticmethod(host_module.hookspecs.hookimpl(lambda: [Needy, METRICS[0]]))})
    record = loaded.register(plugin, "third_party")
    assert record.error is None
    monkeypatch.setattr(host_module, "host", lambda: loaded)
    content = collect(None, synthetic.typical(50))
    assert [info["name"] for info in content["metrics"]][:3] == ["cagr", "cagr_periods", "annual_volatility"]
    left_out = [warning for warning in content["warnings"] if "left out" in warning]
    assert len(left_out) == 2 and "needy" in left_out[0] and "third_party" in left_out[1]


def test_two_parts_or_no_backtest_are_refused(synthetic):
    a, b = synthetic.typical()[:2]
    b.split = "validation"
    with pytest.raises(UsageError, match="one part"):
        collect(None, [a, b], ALL)
    with pytest.raises(UsageError, match="at least one"):
        collect(None, [], ALL)
    a.lanes = ()
    with pytest.raises(UsageError, match="no account"):
        collect(None, [a], ALL)


def test_report_that_fails_is_named_and_leaves_the_old_file(synthetic, tmp_path):
    class Broken(Report):
        name = "broken"

        def write(self, content, folder):
            raise ZeroDivisionError("x")

    with pytest.raises(PluginError, match="report broken: write failed: ZeroDivisionError"):
        build(None, synthetic.typical(20), tmp_path, [Broken()])
    (tmp_path / "report.json").mkdir()
    with pytest.raises(RunError, match="report.json"):
        build(None, synthetic.typical(20), tmp_path, [REPORTS[1]()])


def test_only_the_report_imports_bokeh_and_only_when_it_draws():
    script = (
        "import sys, bellmark.reporting.content, bellmark.reporting.html, bellmark.reporting.markdown, bellmark.plugins.reports\n"
        "import bellmark.plugins.metrics, bellmark.plugins.trackers, bellmark.evaluation.metrics\n"
        "print(sorted({'bokeh', 'polars', 'numba', 'jinja2', 'pandas'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["metrics.jsonl", "profile.toml", "../x.html", "a/b.html", "/tmp/x", ""])
def test_a_report_file_outside_its_folder_or_over_a_file_of_the_run_is_refused(synthetic, tmp_path, name):
    for cls in REPORTS:
        with pytest.raises(UsageError, match="expected a plain file name that is none of the run's own"):
            build(synthetic.run(), synthetic.typical(60), tmp_path / "out", [cls(file=name)])
    assert not list((tmp_path / "out").iterdir())
