"""Errors that a user can act on: one line that says where, what was expected, what was found and the nearest right thing."""

from collections.abc import Iterable
from difflib import get_close_matches


class BellmarkError(Exception):
    """An expected failure. Its text is one line; the command line prints it and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(str(message).split()))


class UsageError(BellmarkError):
    """A wrong option, name or value given by the user."""

    exit_code = 2


class ProfileError(UsageError):
    """A profile that cannot be used: unknown key, wrong type, value out of range."""


class UnknownNameError(UsageError):
    """A name that nothing has."""


class DataError(BellmarkError):
    """Data that break the rules of a dataset; names file and rows."""


class PluginError(BellmarkError):
    """A plugin that failed; names plugin, component and function."""


class RunError(BellmarkError):
    """A run folder or checkpoint that cannot be read or written."""


class UnknownRunError(RunError):
    """A run name or folder that nothing has."""

    exit_code = 2


class RequirementError(BellmarkError):
    """A stated requirement that was not met."""

    exit_code = 3


class GuardError(BellmarkError):
    """The numerical guard stopped a learner."""

    exit_code = 4


class InternalError(BellmarkError):
    """A broken promise of Bellmark itself, such as an accounting identity that does not hold."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a half-sentence, or nothing; capitals make no difference."""
    folded = {each.lower(): each for each in known}
    close = get_close_matches(name.strip().lower(), folded, n=1, cutoff=0.6)
    return f"; did you mean '{folded[close[0]]}'?" if close else ""


def known_list(known: Iterable[str], limit: int = 24) -> str:
    """The known names in brackets, for the end of an error."""
    names = sorted(known)
    shown = ", ".join(names[:limit]) + (f", and {len(names) - limit} more" if len(names) > limit else "")
    return f" (have: {shown})" if names else " (there are none)"
