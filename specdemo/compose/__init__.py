"""From settings to two engines that can be asked: the only place where a concrete engine meets a run."""

from specdemo.compose.deployment import Deployment, Mode, folders, open_deployment
from specdemo.compose.running import keep_announced, running_statuses

__all__ = ["Deployment", "Mode", "folders", "keep_announced", "open_deployment", "running_statuses"]
