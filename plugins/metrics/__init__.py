"""The built-in metrics, in the order in which a report shows them."""

from bellmark.plugins.metrics.annual_volatility import AnnualVolatility
from bellmark.plugins.metrics.cagr import Cagr
from bellmark.plugins.metrics.cagr_periods import CagrPeriods
from bellmark.plugins.metrics.calmar_ratio import CalmarRatio
from bellmark.plugins.metrics.costs import Costs
from bellmark.plugins.metrics.exposure import Exposure
from bellmark.plugins.metrics.max_drawdown import MaxDrawdown
from bellmark.plugins.metrics.profit_factor import ProfitFactor
from bellmark.plugins.metrics.profit_factor_bars import ProfitFactorBars
from bellmark.plugins.metrics.sharpe_ratio import SharpeRatio
from bellmark.plugins.metrics.sortino_ratio import SortinoRatio
from bellmark.plugins.metrics.total_return import TotalReturn
from bellmark.plugins.metrics.trades import Trades
from bellmark.plugins.metrics.turnover import Turnover
from bellmark.plugins.metrics.win_rate import WinRate
from bellmark.plugins.metrics.win_rate_bars import WinRateBars

METRICS = [
    TotalReturn,
    Cagr,
    CagrPeriods,
    AnnualVolatility,
    SharpeRatio,
    SortinoRatio,
    CalmarRatio,
    MaxDrawdown,
    Exposure,
    Costs,
    Turnover,
    Trades,
    WinRate,
    ProfitFactor,
    WinRateBars,
    ProfitFactorBars,
]
