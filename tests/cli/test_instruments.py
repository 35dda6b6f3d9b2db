"""`bellmark instruments`."""

import tomllib


def test_list_names_every_instrument_and_json_has_the_sources(bellmark):
    text = bellmark("instruments", "list").out
    assert "E-mini S&P 500 future (CME)" in text and "cme_equity_index" in text
    rows = bellmark("instruments", "list", "--json").json
    assert {"ES", "BTC-PERP", "us_equity", "EURUSD"} <= {row["name"] for row in rows}
    assert all(figure["source"] and figure["date"] for row in rows for figure in row["figures"].values())


def test_show_prints_value_date_and_source(bellmark):
    result = bellmark("instruments", "show", "ES")
    assert result.code == 0 and "13,200" in result.out and "CME advisory 23-376 of 2023-12-19" in result.out
    document = bellmark("instruments", "show", "ESZ24", "--json").json
    assert document["name"] == "ES" and document["figures"]["market.fee_per_contract"]["value"] == 2.25
    values = tomllib.loads(bellmark("instruments", "show", "ES", "--toml").out)
    assert values["instrument"]["session"] == "cme_equity_index" and values["market"]["slippage_ticks"] == 1.0


def test_an_unknown_name_is_a_usage_error(bellmark):
    result = bellmark("instruments", "show", "EZ")
    assert result.code == 2 and len(result.errors) == 1 and "no instrument 'EZ'" in result.err


def test_a_file_of_ones_own_is_listed_and_shown(bellmark, tmp_path):
    (tmp_path / "mine.toml").write_text('[FDAX]\ntick_size = 0.5\n[FESX]\ntick_size = 1.0\ncurrency = "EUR"\n')
    assert [row["name"] for row in bellmark("instruments", "list", "mine.toml", "--json").json] == ["FDAX", "FESX"]
    assert bellmark("instruments", "show", "mine.toml:FESX", "--json").json["origin"] == "mine.toml"
