"""Addresses of databases, as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdemo.errors import ConfigError
from specdemo.store.database import parse


@pytest.mark.parametrize(
    "address",
    ["", "x", "mysql://h/x", "sqlite://", "sqlite:///:memory:", "postgresql://u:secret99@h:x/y", "postgresql://u:se:cret99@h:²/y",
     "postgresql://h:0/y", "postgresql://h:99999/y", "postgresql://u:secret99@h:1,h:2/y", "sqlite://u:secret99@h:5/x", "sqlite:////a\0b",
     "sqlite:////a?timeout=secret99", "sqlite:///file:x?mode=memory&uri=true"],
)  # fmt: skip
def test_bad_addresses_are_one_sentence(address: str) -> None:
    """A bad port, option or kind is said at the start, without the password (C21)."""
    with pytest.raises(ConfigError, match=r"store\.url is no address") as caught:
        parse(address)
    assert "cret99" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["postgresql://u:p@h/x", "postgresql+asyncpg://h:5432/x", "sqlite:///{folder}/x.db"]
)
def test_good_addresses(address: str, tmp_path: Path) -> None:
    """The driver is ours, whichever was named."""
    assert parse(address.format(folder=tmp_path)).drivername in ("postgresql+psycopg", "sqlite+pysqlite")
