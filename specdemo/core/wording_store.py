"""What specdemo says of kept runs, in English, by key; see ``wording.py``."""

from __future__ import annotations

OF_STORE = {
    "store_unusable": "The run store cannot be used: {cause}.",
    "part_store_locked": "another program holds its lock; the next try may succeed",
    "part_store_full": "its disk is full; free some space or delete runs",
    "part_store_read_only": "it is read-only; make its file and folder writable",
    "part_store_unopened": "its file cannot be opened; check that its folder exists and is writable",
    "part_store_foreign": "its file is no database; move it away, and a new one is made",
    "part_store_damaged": "its file is damaged; move it away, and a new one is made",
    "part_store_disk": "its disk reported an error",
    "part_store_system": "the system said: {quote}",
    "part_store_newer": "a newer specdemo made it; update this one, or set store.url to another database",
    "part_store_unreachable": "its server cannot be reached; check store.url and that the server runs",
    "part_store_login": "it refused the name or password of the configured address",
    "part_store_name": "there is no database of the configured name",
    "part_store_rights": "its user may not do that",
    "part_store_slow": "it took too long",
    "part_store_code": "the database said {code}",
    "run_gone": "This run is no longer kept here, or it is private.",
    "run_damaged": "This run's entry in the run store is damaged; delete it.",
    "runs_not_kept": "Runs are not kept on this page, so none can be imported.",
    "run_contradicts": "This is no run that can be assessed: its events contradict each other.",
    "run_of_newer": "This run was stored by a newer specdemo (schema {found}, this one reads up to {known}); "
    "update specdemo to open it.",
    "run_no_json": "This is no stored run: it is not strict JSON.",
    "run_no_schema": "This is no stored run: it has no schema number.",
    "run_too_large": "The file is larger than {megabytes} MB, the most that is taken.",
    "run_keeping_failed": "specdemo failed while it kept this run; its log has the details.",
}
