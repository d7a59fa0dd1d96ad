"""Runs and their parts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "runs",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("stored_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
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
    )
    op.create_index("ix_runs_stored", "runs", ["stored_at"])
    op.create_index("ix_runs_owner", "runs", ["owner", "stored_at"])
    op.create_table(
        "run_parts",
        sa.Column("run_id", sa.String(64), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Drop both tables."""
    op.drop_table("run_parts")
    op.drop_table("runs")
