"""The typed sections of a profile that no plugin owns. Each is strict and frozen like a component; unknown keys are refused.

Sections with `use` ([data], [sizing], [execution], [trainer]) and with labels ([features.LABEL] ...) are components: see their plugins.
"""

from __future__ import annotations

import datetime
from typing import ClassVar, Literal

from pydantic import ValidationInfo, field_validator, model_validator

from bellmark.component import Component, component, setting
from bellmark.errors import did_you_mean, known_list

_MOST_MONEY = 4.6e9  # of currency: int64 nano-currency with room to add


class Section(Component):
    """One table of a profile."""

    kind: ClassVar[str] = "section"


@component
class InstrumentSettings(Section):
    """Overrides of what the dataset says of the instruments; an absent key leaves the dataset's value."""

    name: ClassVar[str] = "instrument"
    tick_size: float | None = setting(None, "smallest price step; 0 = prices are not rounded", ge=0.0, unit="price")
    contract_multiplier: float | None = setting(None, "value of one price unit of one contract", gt=0.0, unit="currency")
    lot_size: float | None = setting(None, "contracts, shares or coins in one lot", gt=0.0, unit="units")
    price_quantum: float | None = setting(None, "price step in which money is counted; the tick or a fraction", gt=0.0, unit="price")
    currency: str | None = setting(None, "currency of prices, fees and equity")
    session: str | None = setting(
        None,
        "hours, with holidays: nyse, cme_equity_index, cme_energy_metals, cme_currency, fx; alone: us_equity, cme_regular, cme_globex; "
        "none; or as 'America/New_York 09:30-16:00'",
    )
    periods_per_year: float | None = setting(None, "bars in a year, for annual figures", gt=0.0, le=1e9, unit="bars")

    @field_validator("session")
    @classmethod
    def _known_session(cls, value: str | None) -> str | None:
        from bellmark.instrument import Session

        if value is not None:
            Session.parse(value, "instrument.session")
        return value


@component
class SplitSettings(Section):
    """Where the data are cut into train, validation and test (the rest)."""

    name: ClassVar[str] = "split"
    train: float | str = setting(0.6, "share of bars to train on, or the ISO date at which training ends (exclusive)")
    validation: float | str = setting(0.2, "share of bars to choose on, or the ISO date at which validation ends (exclusive)")
    embargo_bars: int = setting(0, "bars left out after the train and after the validation part", ge=0, unit="bars")

    @field_validator("train", "validation")
    @classmethod
    def _share_or_date(cls, value: float | str) -> float | str:
        if isinstance(value, str):
            try:
                datetime.datetime.fromisoformat(value)
            except ValueError:
                raise ValueError("a share between 0 and 1 or an ISO date such as 2012-01-01") from None
        elif not 0.0 < value < 1.0:
            raise ValueError("a share lies between 0 and 1")
        return value

    @model_validator(mode="after")
    def _leaves_a_test_part(self) -> SplitSettings:
        if isinstance(self.train, str) != isinstance(self.validation, str):
            raise ValueError("train and validation: expected two shares or two dates, found one of each")
        if not isinstance(self.train, str) and not isinstance(self.validation, str) and self.train + self.validation >= 1.0:
            raise ValueError(f"train + validation: expected a sum below 1, found {self.train + self.validation:g}: no test part is left")
        if isinstance(self.train, str) and isinstance(self.validation, str) and self.train >= self.validation:
            raise ValueError("train: expected a date before that of validation")
        return self


@component
class MarketSettings(Section):
    """The rules of the simulated account: clock, costs, margin. The same for training and backtest."""

    name: ClassVar[str] = "market"
    start_equity: float = setting(100_000.0, "equity of an account at its start", ge=1e-9, le=_MOST_MONEY, unit="currency")
    account: Literal["per_symbol", "shared"] = setting(
        "per_symbol", "an account for each symbol, or one for all of them (rule strategies only)", static=True
    )
    spread_ticks: float = setting(0.0, "full bid-ask spread; an order pays half of it", ge=0.0, le=1e9, unit="ticks")
    slippage_ticks: float = setting(0.0, "worse price of a market order, beside the spread", ge=0.0, le=1e9, unit="ticks")
    slippage_bps: float = setting(0.0, "worse price of a market order, in hundredths of a percent of price", ge=0.0, le=5_000.0, unit="bps")
    roll_spread_ticks: float | None = setting(
        None, "full bid-ask spread of each leg of a roll; absent = spread_ticks", ge=0.0, le=1e9, unit="ticks"
    )
    fee_per_contract: float = setting(0.0, "fee for one contract or share, each side", ge=0.0, le=_MOST_MONEY, unit="currency")
    fee_bps: float = setting(0.0, "fee on the traded value, each side", ge=0.0, le=10_000.0, unit="bps")
    maker_fee_per_contract: float | None = setting(
        None, "of an order that rested; below 0 a rebate; absent = fee_per_contract", ge=-_MOST_MONEY, le=_MOST_MONEY, unit="currency"
    )
    maker_fee_bps: float | None = setting(
        None, "the same of an order that rested; below 0 a rebate; absent = fee_bps", ge=-10_000.0, le=10_000.0, unit="bps"
    )
    fee_minimum: float = setting(0.0, "least fee of an order over all its parts", ge=0.0, le=_MOST_MONEY, unit="currency")
    initial_margin_per_contract: float = setting(
        0.0, "equity needed to open one contract, beside the rate", ge=0.0, le=_MOST_MONEY, unit="currency"
    )
    initial_margin_rate: float = setting(0.0, "equity needed to open, as a share of the position's value", ge=0.0, le=1.0, unit="fraction")
    maintenance_margin_per_contract: float = setting(
        0.0, "equity below which one contract is liquidated at the next open, beside the rate", ge=0.0, le=_MOST_MONEY, unit="currency"
    )
    maintenance_margin_rate: float = setting(
        0.0, "equity below which a position is liquidated at the next open, as a share of its value", ge=0.0, le=1.0, unit="fraction"
    )
    unaffordable: Literal["refuse", "cut"] = setting(
        "refuse", "what becomes of an order that the account cannot carry: refused whole, or cut to what it can", static=True
    )
    capital_floor: float = setting(0.0, "an account at or below this share of its start equity is ruined", ge=0.0, lt=1.0, unit="fraction")
    latency_bars: int = setting(1, "bars from the decision to the bar in which its order works", ge=1, le=16, unit="bars", static=True)
    same_close: bool = setting(
        False, "orders fill at the close that decided them: better than life, and labelled so in every report", static=True
    )
    size_at: Literal["close", "fill"] = setting("close", "whether an order is sized at the decision's close or at its fill", static=True)
    resize: Literal["on_change", "always"] = setting(
        "on_change", "size the position anew when the exposure changes, or each bar", static=True
    )
    participation: tuple[float, ...] = setting(
        (), "largest share of a bar's volume that an order takes: patient, normal, aggressive; absent = no limit", unit="fraction"
    )
    limit_offset_ticks: tuple[float, ...] = setting(
        (1.0, 0.0, -1.0), "how far from the near touch a limit order rests, below 0 nearer: patient, normal, aggressive", unit="ticks"
    )
    limit_offset_bps: tuple[float, ...] = setting((0.0, 0.0, 0.0), "the same in hundredths of a percent of price, added", unit="bps")
    ioc_cap_ticks: tuple[float, ...] = setting(
        (0.0, 1.0, 2.0), "how much worse than the far touch an ioc order may fill: patient, normal, aggressive", unit="ticks"
    )
    ioc_cap_bps: tuple[float, ...] = setting((0.0, 0.0, 0.0), "the same in hundredths of a percent of price, added", unit="bps")
    stop_loss: float = setting(0.0, "distance of the stop as a share of the entry price; 0 = none", ge=0.0, lt=1.0, unit="fraction")
    stop_loss_ticks: float = setting(0.0, "the same in ticks, added", ge=0.0, le=1e9, unit="ticks")
    take_profit: float = setting(0.0, "distance of the target as a share of the entry price; 0 = none", ge=0.0, le=9.0, unit="fraction")
    take_profit_ticks: float = setting(0.0, "the same in ticks, added", ge=0.0, le=1e9, unit="ticks")
    trailing_stop: float = setting(
        0.0, "distance of the trailing stop as a share of the best price since entry; 0 = none", ge=0.0, lt=1.0, unit="fraction"
    )
    trailing_stop_ticks: float = setting(0.0, "the same in ticks, added", ge=0.0, le=1e9, unit="ticks")
    stop_anchor: Literal["fill", "decision", "close"] = setting(
        "fill", "what stop and target are measured from: entry price, close that decided the order, close of the fill's bar", static=True
    )
    stop_from: Literal["fill_bar", "next_bar"] = setting(
        "fill_bar", "first bar in which stop and target of a new position are tested", static=True
    )
    target_gap: Literal["price", "open"] = setting(
        "price", "fill of a target that the market opens beyond: its price, or the better open", static=True
    )
    flat_by_close: bool = setting(False, "order each position closed in the last bar of its session", static=True)
    close_at_end: bool = setting(False, "close the position at the last close of the window", static=True)

    @field_validator("participation", "limit_offset_ticks", "limit_offset_bps", "ioc_cap_ticks", "ioc_cap_bps")
    @classmethod
    def _three(cls, value: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        if len(value) != 3 and (value or info.field_name != "participation"):
            raise ValueError("expected three numbers: patient, normal, aggressive")
        if info.field_name == "participation" and not all(0.0 < share <= 1.0 for share in value):
            raise ValueError("shares above 0 and at most 1")
        most = 5_000.0 if str(info.field_name).endswith("bps") else 1e9
        if not all(-most <= number <= most for number in value):
            raise ValueError(f"numbers between -{most:g} and {most:g}")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> MarketSettings:
        if self.same_close and self.latency_bars != 1:
            raise ValueError(f"same_close: expected latency_bars = 1, found {self.latency_bars}: an order cannot work at once and later")
        return self


@component
class ActionSettings(Section):
    """The choices of the policy: every exposure with every order type and urgency."""

    name: ClassVar[str] = "action"
    exposures: tuple[float, ...] = setting((-1.0, -0.5, 0.0, 0.5, 1.0), "target exposures, rising, with 0 among them")
    order_types: tuple[str, ...] = setting(("market",), "order types; the execution model says which it knows")
    urgencies: tuple[str, ...] = setting(("normal",), "urgencies: patient, normal, aggressive")
    head: Literal["branching", "flat"] = setting("branching", "a branch of outputs a factor, or one output an action")

    @field_validator("exposures")
    @classmethod
    def _rising_with_zero(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if 0.0 not in value:
            raise ValueError("0 must be among them: it is the action that does nothing")
        if max(map(abs, value)) > 1e6:
            raise ValueError("they lie between -1e6 and 1e6")
        if any(later <= earlier for earlier, later in zip(value, value[1:], strict=False)):
            raise ValueError("they must rise, each once")
        return value

    @field_validator("order_types", "urgencies")
    @classmethod
    def _each_once(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not value or len(set(value)) != len(value):
            raise ValueError("at least one, each once")
        from bellmark.actions import ORDER_TYPES, URGENCIES

        known = ORDER_TYPES if info.field_name == "order_types" else URGENCIES
        for name in value:
            if name not in known:
                raise ValueError(f"no '{name}'{did_you_mean(name, known)}{known_list(known)}")
        return value


@component
class EnvironmentSettings(Section):
    """The simulated accounts that collect experience."""

    name: ClassVar[str] = "environment"
    use: Literal["market"] = setting("market", "kind of environment")
    lanes: int = setting(16, "accounts of each learner that step side by side", ge=1)
    episode_bars: int = setting(256, "bars of an episode; at its end an account starts anew elsewhere", ge=2, unit="bars")


@component
class NetworkSettings(Section):
    """The network that gives the value of each action."""

    name: ClassVar[str] = "network"
    hidden: tuple[int, ...] = setting((64, 64), "width of each hidden layer")
    activation: Literal["relu", "gelu"] = setting("relu", "function between layers")
    dueling: bool = setting(True, "value and advantage as two heads")

    @field_validator("hidden")
    @classmethod
    def _widths(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or min(value) < 1:
            raise ValueError("at least one layer, each at least 1 wide")
        return value


@component
class ReplaySettings(Section):
    """The memory of transitions and how it is sampled."""

    name: ClassVar[str] = "replay"
    capacity: int = setting(100_000, "transitions kept for each learner; sums of 2^24 priorities of 40 bits fill 64", ge=1, le=2**24)
    n_step: int = setting(1, "steps summed into one transition", ge=1, unit="bars")
    source: Literal["tape", "stored"] = setting("tape", "keep references into the tape, or whole observations")
    alpha: float = setting(0.6, "strength of priorities; 0 = uniform", ge=0.0, le=1.0)
    beta_start: float = setting(0.4, "importance correction at the start", ge=0.0, le=1.0)
    beta_end: float = setting(1.0, "importance correction at the end", ge=0.0, le=1.0)
    priority_epsilon: float = setting(1e-6, "added to each TD error before the power", gt=0.0)
    learning_starts: int = setting(1000, "transitions kept before the first update; at most the capacity", ge=1)

    @model_validator(mode="after")
    def _starts_within_capacity(self) -> ReplaySettings:
        if self.learning_starts > self.capacity:
            raise ValueError(f"learning_starts: expected at most the capacity {self.capacity}, found {self.learning_starts}")
        return self


@component
class OptimizerSettings(Section):
    """Adam with a clipped global gradient norm."""

    name: ClassVar[str] = "optimizer"
    learning_rate: float = setting(3e-4, "step size; 0 leaves the network as it starts", ge=0.0)
    learning_rate_end: float | None = setting(None, "step size at the last update, reached in a straight line; absent = constant", ge=0.0)
    beta1: float = setting(0.9, "decay of the first moment", ge=0.0, lt=1.0)
    beta2: float = setting(0.999, "decay of the second moment", ge=0.0, lt=1.0)
    epsilon: float = setting(1e-8, "added to the root of the second moment", gt=0.0)
    max_grad_norm: float = setting(10.0, "global norm above which a gradient is scaled down", gt=0.0)


@component
class LearnersSettings(Section):
    """Learners that train side by side; learner l has the seed `seed` + l."""

    name: ClassVar[str] = "learners"
    count: int = setting(4, "number of learners", ge=1)
    seed: int = setting(1, "seed of the first learner", ge=0, lt=2**31)


@component
class RunSettings(Section):
    """Where runs are kept. It decides no result, so it is no part of the profile's hash."""

    name: ClassVar[str] = "run"
    folder: str = setting("runs", "folder of the runs, absolute or from the current folder")

    @field_validator("folder")
    @classmethod
    def _named(cls, value: str) -> str:
        if not value.strip() or "\0" in value:
            raise ValueError("a folder; . is the current one")
        return value


SECTIONS: dict[str, type[Section]] = {
    cls.name: cls
    for cls in (
        InstrumentSettings,
        SplitSettings,
        MarketSettings,
        ActionSettings,
        EnvironmentSettings,
        NetworkSettings,
        ReplaySettings,
        OptimizerSettings,
        LearnersSettings,
        RunSettings,
    )
}
"""Sections with fixed settings, by name."""

SINGLE: dict[str, str] = {"data": "dataset", "sizing": "sizing", "execution": "execution", "trainer": "trainer"}
"""Sections that are one component: section -> kind. `use` names it."""

LABELLED: dict[str, str] = {
    "features": "feature",
    "rewards": "reward",
    "action_masks": "action_mask",
    "losses": "loss",
    "baselines": "strategy",
    "trackers": "tracker",
    "reports": "report",
}
"""Sections that hold any number of components under labels of the user: section -> kind."""

DEFAULT_USE: dict[str, str] = {"sizing": "equity_fraction", "execution": "bar", "trainer": "dqn"}
"""The component of a single section when the profile names none; [data] must name one."""

ORDER: tuple[str, ...] = (
    "data",
    "instrument",
    "split",
    "market",
    "action",
    "environment",
    "features",
    "rewards",
    "action_masks",
    "sizing",
    "execution",
    "network",
    "losses",
    "replay",
    "optimizer",
    "trainer",
    "learners",
    "baselines",
    "trackers",
    "reports",
    "run",
)
"""Every section in the order in which data pass through them."""
