"""The built-in plugins, one folder a kind, one file a component. They come in through the hooks that third parties use.

The imports are inside the hooks, so that a command that needs one kind does not import the others.
"""

from bellmark.hookspecs import hookimpl


@hookimpl
def bellmark_features():
    from bellmark.plugins.features import FEATURES

    return FEATURES


@hookimpl
def bellmark_rewards():
    from bellmark.plugins.rewards import REWARDS

    return REWARDS


@hookimpl
def bellmark_action_masks():
    from bellmark.plugins.action_masks import ACTION_MASKS

    return ACTION_MASKS


@hookimpl
def bellmark_sizings():
    from bellmark.plugins.sizings import SIZINGS

    return SIZINGS


@hookimpl
def bellmark_executions():
    from bellmark.plugins.execution import EXECUTIONS

    return EXECUTIONS


@hookimpl
def bellmark_losses():
    from bellmark.plugins.losses import LOSSES

    return LOSSES


@hookimpl
def bellmark_trainers():
    from bellmark.plugins.trainers import TRAINERS

    return TRAINERS


@hookimpl
def bellmark_metrics():
    from bellmark.plugins.metrics import METRICS

    return METRICS


@hookimpl
def bellmark_reports():
    from bellmark.plugins.reports import REPORTS

    return REPORTS


@hookimpl
def bellmark_trackers():
    from bellmark.plugins.trackers import TRACKERS

    return TRACKERS
