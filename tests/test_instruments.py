"""Instruments by name: the built-in table, where its figures come from, and files of one's own."""

import tomllib

import pytest

from bellmark import instruments
from bellmark.component import make
from bellmark.errors import BellmarkError, UsageError
from bellmark.instrument import Session
from bellmark.settings import InstrumentSettings, MarketSettings

NAMES = instruments.names()


@pytest.mark.parametrize("name", NAMES)
def test_every_listing_is_an_instrument_with_its_default_scenario(name):
    listing = instruments.find(name)
    instrument = listing.instrument("ANY")
    assert instrument.symbol == "ANY" and instrument.tick_size > 0 and instrument.currency in ("USD", "USDT", "JPY", "CHF", "CAD")
    settings = make(MarketSettings, listing.market, "market")
    assert settings.spread_ticks > 0
    costs = {"spread_ticks": settings.spread_ticks, "slippage_ticks": settings.slippage_ticks, "slippage_bps": settings.slippage_bps}
    price = 1.2 if instrument.contract_multiplier == 125_000 else 10_000.0
    instrument.with_costs(**costs).resolved(price).check_range(price, 1e8)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_says_where_it_was_read_and_when(name):
    for place, figure in instruments.find(name).sources.items():
        assert len(figure.source) > 8 and figure.date[:2] in ("19", "20"), place
        own = figure.source.partition("; beside it ")[0]  # what a figure was compared with is not its source
        looked_up = not any(text in own for text in ("not looked up", "no document", "a tenth of"))
        assert figure.assumed or looked_up, place


def test_the_table_holds_what_the_documentation_promises():
    assert {"ES", "NQ", "MES", "CL", "GC", "6E", "BTC-PERP", "ETH-PERP", "us_equity", "EURUSD", "USDJPY"} <= set(NAMES)
    unit = {name: instruments.find(name).instrument() for name in NAMES}
    worth = {name: round(each.tick_size * each.contract_multiplier, 9) for name, each in unit.items()}  # of a tick of one contract
    assert [worth[name] for name in ("ES", "NQ", "MES", "CL", "GC", "6E")] == [12.5, 5.0, 1.25, 10.0, 10.0, 6.25]
    assert unit["CL"].allow_negative_prices and not unit["ES"].allow_negative_prices
    assert unit["BTC-PERP"].session is None and instruments.find("BTC-PERP").funding_interval_hours == 8
    assert instruments.find("ES").funding_interval_hours is None


def test_the_default_scenario_of_es():
    assert instruments.find("ES").market == {
        "spread_ticks": 1.0,
        "slippage_ticks": 1.0,
        "fee_per_contract": 2.25,
        "initial_margin_per_contract": 13_200.0,
        "maintenance_margin_per_contract": 12_000.0,
    }


def test_the_default_scenario_of_es_is_that_of_the_maintainers_and_says_what_was_looked_up_beside_it():
    sources = instruments.find("ES").sources
    for name in ("spread_ticks", "slippage_ticks", "fee_per_contract", "initial_margin_per_contract"):
        assert sources[f"market.{name}"].source.startswith("default scenario of the maintainers, 2026-12"), name
    assert "elitetrader" in sources["market.initial_margin_per_contract"].source
    assert "IBKR" in sources["market.fee_per_contract"].source


@pytest.mark.parametrize(("symbol", "root"), [("ESZ3", "ES"), ("ESH24", "ES"), ("6EM2024", "6E"), ("CLF5", "CL"), ("AAPL", "AAPL")])
def test_a_contract_has_the_listing_of_its_root(symbol, root):
    assert instruments.root_of(symbol) == root
    if root != "AAPL":
        assert instruments.find(symbol).name == root and instruments.find(symbol).instrument(symbol).symbol == symbol


@pytest.mark.parametrize(
    ("name", "message"),
    [("es", "did you mean 'ES'"), ("EURUDS", "did you mean 'EURUSD'"), ("ZZZ", "or name a FILE.toml"), ("USDJPYZ3", "no instrument")],
)
def test_an_unknown_name_is_one_line_with_the_nearest(name, message):
    with pytest.raises(UsageError, match=message) as caught:
        instruments.find(name)
    assert "\n" not in str(caught.value)


ONE = """
[instrument]
tick_size = 0.5
contract_multiplier = 10.0
currency = "EUR"
session = "Europe/Berlin 08:00-22:00 calendar weekdays"
[market]
fee_per_contract = { value = 1.5, source = "my broker", date = "2024-05" }
"""


def test_a_file_of_one_instrument(tmp_path):
    path = tmp_path / "fesx.toml"
    path.write_text(ONE)
    listing = instruments.find(str(path), "FESX")
    assert (listing.name, listing.market, listing.origin) == ("fesx", {"fee_per_contract": 1.5}, str(path))
    instrument = listing.instrument("FESX")
    assert (instrument.symbol, instrument.tick_size, instrument.currency) == ("FESX", 0.5, "EUR")
    assert instrument.session == Session.parse("Europe/Berlin 08:00-22:00 calendar weekdays")
    assert listing.sources["market.fee_per_contract"].source == "my broker" and listing.sources["tick_size"].source == ""


def test_a_file_of_several_instruments_is_asked_by_name_symbol_or_root(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('schema_version = 1\n[A]\ntick_size = 1\n[FDAX]\nkind = "future"\ntick_size = 0.5\n')
    assert instruments.find(f"{path}:A").name == "A"
    assert instruments.find(str(path), "FDAXH24").name == "FDAX"
    with pytest.raises(UsageError, match=r"it holds several instruments \(have: A, FDAX\); name one as .*mine.toml:NAME"):
        instruments.find(str(path))
    with pytest.raises(UsageError, match="no instrument 'B'"):
        instruments.find(str(path), "B")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[instrument]\ntick = 1", "mine.tick: no such figure; did you mean 'tick_size'"),
        ("[instrument]\ntick_size = '1'", "tick_size: expected a number above 0, found '1'"),
        ("[instrument]\ntick_size = -1", "tick_size: expected a number above 0, found -1"),
        ("[instrument]\ntick_size = nan", "tick_size: expected a number above 0, found nan"),
        ("[instrument]\ncurrency = 1", "currency: expected text, found 1"),
        ("[instrument]\nallow_negative_prices = 1", "expected true or false, found 1"),
        ("[instrument]\nsession = 'nysee'", "did you mean 'nyse'"),
        ("[instrument]\nkind = 'share'", "kind: expected one of future, perpetual"),
        ("[instrument]\nmonths = 'AB'", "months: expected letters of FGHJKMNQUVXZ"),
        ("[instrument]\ntick_size = { valu = 1 }", "expected a value or { value, source, date, assumed }, found valu"),
        ("[instrument]\n[market]\nspread = 1.0", "market.spread: .*did you mean 'spread_ticks'"),
        ("[instrument]\n[market]\nspread_ticks = 'a'", "market.spread_ticks"),
        ("instrument = 3", "expected a table of figures, found 3"),
        ("schema_version = 2\n[A]\ntick_size = 1", "schema_version: expected 1, found 2"),
        ("", "expected .instrument., or a table for each instrument, found nothing"),
        ("[instrument", "cannot be read"),
    ],
)
def test_a_wrong_file_is_one_line_with_file_and_key(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(BellmarkError, match=message) as caught:
        instruments.find(str(path), "A")
    assert "\n" not in str(caught.value) and str(caught.value).startswith(str(path))


def test_an_absent_file_and_one_that_is_no_text_are_one_line(tmp_path):
    with pytest.raises(UsageError, match="no.toml: the instruments cannot be read"):
        instruments.find(str(tmp_path / "no.toml"))
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="b.toml: the instruments cannot be read"):
        instruments.find(str(tmp_path / "b.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_sections_of_a_profile_say_what_the_listing_says(name):
    listing = instruments.find(name)
    values = tomllib.loads(instruments.profile_text(listing))
    assert values["market"] == listing.market
    overrides = make(InstrumentSettings, values["instrument"], "instrument")
    assert overrides.tick_size == listing.instrument().tick_size
