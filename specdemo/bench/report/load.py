"""Up to which load the gain is clear, in words; levels without data and levels with failures are named. Pure."""

from __future__ import annotations

from specdemo.bench.report.words import Speaker as Say
from specdemo.bench.summary import Result, Summary


def clear(result: Result) -> bool | None:
    """Whether a level's interval lies above 1; None without an interval."""
    low = None if result.speedup is None else result.speedup.low
    return None if low is None else low > 1.0


def reach(summary: Summary, say: Say) -> list[str]:
    """Sentences below the plot of the load: where the gain ends, what is not known, what failed."""
    found = _judged(summary)
    yes = [level for level, word in found.items() if word]
    no = [level for level, word in found.items() if word is False]
    unknown = [level for level, word in found.items() if word is None]
    told = []
    if no and not yes:
        told.append(say("gain_nowhere"))
    elif no and max(yes) > min(no):
        told.append(say("gain_mixed", no=_listed(no), yes=_listed(yes)))
    elif no:
        told.append(say("break_even", level=min(no)))
    elif yes:
        told.append(say("gain_where_known", levels=_listed(yes)) if unknown else say("no_break_even"))
    if unknown:
        told.append(say("load_unknown", levels=_listed(unknown)))
    failed = load_failures(summary, say)
    return [*told, failed] if failed else told


def load_failures(summary: Summary, say: Say) -> str:
    """What failed in the comparison, by level and engine; empty when nothing did."""
    listed = [
        say("load_failed_one", level=one.level, side=say(one.side.value), failed=one.failed, requests=one.requests)
        for one in summary.reliability
        if one.kind == "measure" and one.failed
    ]
    return say("load_failed", list="; ".join(listed)) if listed else ""


def claimed(summary: Summary, say: Say) -> str:
    """The short form, beside what the source article claims."""
    found = _judged(summary)
    yes = [level for level, word in found.items() if word]
    no = [level for level, word in found.items() if word is False]
    if not yes and not no:
        told = say("not_enough_data")
    elif not yes:
        told = say("claim_batch_none")
    elif no and max(yes) > min(no):
        told = say("claim_batch_mixed", levels=_listed(yes))
    elif no:
        told = say("claim_batch_here", level=min(no))
    else:
        told = say("claim_batch_all", level=max(yes))
    failed = load_failures(summary, say)
    return f"{told}. {failed}" if failed else told


def _judged(summary: Summary) -> dict[int, bool | None]:
    return {result.level: clear(result) for result in summary.levels}


def _listed(levels: list[int]) -> str:
    return ", ".join(map(str, levels))
