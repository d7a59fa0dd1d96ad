"""What was found on this machine, what is not right, and the mend for each.

``report`` is the form of an answer, ``probes`` look at the outside world, ``checks`` turn what they saw into findings.
"""

from specdemo.doctor.checks import examine
from specdemo.doctor.probes import Probes
from specdemo.doctor.report import Finding, Level, Report

__all__ = ["Finding", "Level", "Probes", "Report", "examine"]
