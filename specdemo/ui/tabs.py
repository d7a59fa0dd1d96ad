"""The tabs of long work, where the page may have them: not on a page that is open to strangers."""

from __future__ import annotations

import gradio as gr

from specdemo.ui import tab_bench, tab_validate
from specdemo.ui.bench_desk import BenchDesk, PaceBook
from specdemo.ui.results import Results
from specdemo.ui.services import Services
from specdemo.ui.validate_desk import ValidateDesk


def results_of(services: Services) -> Results | None:
    """The kept results that this page may show; None on a public page and without a data folder."""
    if services.public or services.jobs is None:
        return None
    return Results(services.jobs.shop.folder)


def build(demo: gr.Blocks, services: Services, tr: gr.I18n) -> None:
    """Benchmark and Validate, inside ``gr.Tabs``; nothing where they are not allowed."""
    results = results_of(services)
    if results is None or services.jobs is None:
        return
    paces = PaceBook(services)
    tab_bench.build(demo, services, BenchDesk(services, services.jobs, results, paces), tr)
    tab_validate.build(demo, services, ValidateDesk(services, services.jobs, results, paces), tr)
