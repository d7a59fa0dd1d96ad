"""Read by Alembic: the steps run on the connection that ``database.py`` holds, under its lock."""

from __future__ import annotations

from alembic import context

from specdemo.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a table by making it anew
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
