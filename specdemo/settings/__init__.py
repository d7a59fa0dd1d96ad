"""Settings: the schema (``schema``), the list of them (``describe``), and where their values come from (``layers``)."""

from specdemo.settings.describe import Described, described, markdown
from specdemo.settings.layers import Loaded, hosted, load, parse_assignment
from specdemo.settings.schema import Settings

__all__ = ["Described", "Loaded", "Settings", "described", "hosted", "load", "markdown", "parse_assignment"]
