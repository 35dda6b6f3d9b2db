"""Rule strategies, one file each: the lane function `decide` gives the target exposure at the close of bar t."""

from bellmark.hookspecs import hookimpl


@hookimpl
def bellmark_strategies():
    from bellmark.strategies.bollinger_reversion import BollingerReversion
    from bellmark.strategies.buy_and_hold import BuyAndHold
    from bellmark.strategies.donchian_breakout import DonchianBreakout
    from bellmark.strategies.ema_cross import EmaCross
    from bellmark.strategies.flat import Flat
    from bellmark.strategies.no_trade_band import NoTradeBand
    from bellmark.strategies.random import Random
    from bellmark.strategies.rsi_reversion import RsiReversion
    from bellmark.strategies.signals import Signals
    from bellmark.strategies.sma_cross import SmaCross
    from bellmark.strategies.time_series_momentum import TimeSeriesMomentum
    from bellmark.strategies.volatility_target import VolatilityTarget

    return [
        BollingerReversion,
        BuyAndHold,
        DonchianBreakout,
        EmaCross,
        Flat,
        NoTradeBand,
        Random,
        RsiReversion,
        Signals,
        SmaCross,
        TimeSeriesMomentum,
        VolatilityTarget,
    ]
