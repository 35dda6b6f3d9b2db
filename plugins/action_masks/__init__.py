"""Action masks: what a policy may do."""

from bellmark.component import ActionMask
from bellmark.plugins.action_masks.max_position import MaxPosition
from bellmark.plugins.action_masks.session import Session

ACTION_MASKS: list[type[ActionMask]] = [MaxPosition, Session]
