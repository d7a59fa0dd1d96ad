"""The tables. A row of ``runs`` is what a list shows; the document itself lies beside it in compressed parts.

A run's parts are appended while it streams, so that a checkpoint costs as much as what is new and a crash loses only
what came after the last one. ``migrations`` makes these tables; a test holds that both say the same.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

HEAD, TAIL = 0, -1
"""Part numbers: the header (or a whole document's first piece) and what follows the events; events lie at 1, 2, …"""

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("stored_at", sa.Double, nullable=False),  # s since 1970, by this machine's clock: order and age
    sa.Column("started_at", sa.Double, nullable=False),  # what the document says of itself
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("search", sa.Text, nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("method", sa.String(64)),
    sa.Column("k", sa.Integer),
    sa.Column("mode", sa.String(16)),
    sa.Column("badge", sa.String(16)),
    sa.Column("hardware", sa.Text),
    sa.Column("speedup", sa.Double),
    sa.Column("verdict", sa.String(24)),
    sa.Column("owner", sa.String(96), nullable=False),
    sa.Column("shared", sa.Boolean, nullable=False),
    sa.Column("imported", sa.Boolean, nullable=False),
    sa.Column("writer", sa.String(64), nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Index("ix_runs_stored", "stored_at"),
    sa.Index("ix_runs_owner", "owner", "stored_at"),
)

parts = sa.Table(
    "run_parts",
    metadata,
    sa.Column("run_id", sa.String(64), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
