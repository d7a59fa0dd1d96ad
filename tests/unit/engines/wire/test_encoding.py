"""Content codings."""

import gzip
import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.engines.wire.encoding import coding
from specdemo.errors import EngineProtocolError


def squeeze(data: bytes, bits: int) -> bytes:
    """Compressed with the given header kind."""
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(("name", "bits"), [("gzip", 31), (" X-GZIP", 31), ("deflate", 15), ("deflate", -15)])
@given(data=st.binary(max_size=500), cuts=st.lists(st.integers(1, 200), max_size=5))
def test_compressed_streams_in_any_cut(name: str, bits: int, data: bytes, cuts: list[int]) -> None:
    """gzip, zlib and bare deflate give the plain bytes (B24)."""
    packed = squeeze(data, bits)
    decoder = coding(name, 10_000)
    places = sorted({0, len(packed), *(cut for cut in cuts if cut < len(packed))})
    found = b""
    for start, end in itertools.pairwise(places):
        found += b"".join(decoder.decode(packed[start:end]))
    assert found == data


def test_identity() -> None:
    """No coding is no work."""
    assert coding("", 1).decode(b"abc") == coding("identity", 1).decode(b"abc") == [b"abc"]


def test_a_bomb_is_refused() -> None:
    """A small reply that unpacks to more than the limit is refused piece by piece."""
    with pytest.raises(EngineProtocolError, match="size limit"):
        coding("gzip", 1_000_000).decode(gzip.compress(b"0" * 50_000_000))


@pytest.mark.parametrize("name", ["br", "zstd", "gzip, br"])
def test_other_codings_are_named(name: str) -> None:
    """What nobody asked for is refused by name."""
    with pytest.raises(EngineProtocolError, match="compressed as"):
        coding(name, 10)


def test_damage_is_named() -> None:
    """Broken data are an error of the reply, wherever they begin."""
    decoder = coding("gzip", 10_000)
    assert decoder.decode(b"\x1f") == []
    with pytest.raises(EngineProtocolError, match="damaged"):
        decoder.decode(b"\x8b" + b"\xff" * 10)
    with pytest.raises(EngineProtocolError, match="damaged"):
        coding("gzip", 10_000).decode(b"\xff" * 10)


@given(parts=st.lists(st.binary(max_size=40), min_size=1, max_size=4), cuts=st.lists(st.integers(1, 200), max_size=9))
def test_several_gzip_members(parts: list[bytes], cuts: list[int]) -> None:
    """A gzip reply may be several behind one another, in any cut; padding behind them says nothing (B24)."""
    packed = b"".join(gzip.compress(part) for part in parts) + b"\0\0\0"
    decoder = coding("gzip", 10_000)
    places = sorted({0, len(packed), *(cut for cut in cuts if cut < len(packed))})
    found = b"".join(b"".join(decoder.decode(packed[start:end])) for start, end in itertools.pairwise(places))
    assert found == b"".join(parts)
    assert decoder.decode(b"more") == []


def test_the_limit_holds_over_all_members() -> None:
    """Many small replies behind one another are one."""
    with pytest.raises(EngineProtocolError, match="size limit"):
        coding("gzip", 1000).decode(gzip.compress(b"0" * 600) * 2)


def test_identity_beside_another_coding() -> None:
    """It changes nothing."""
    assert coding("gzip, identity", 100).decode(gzip.compress(b"a")) == [b"a"]
    assert coding("identity, identity", 100).decode(b"a") == [b"a"]


def test_members_byte_by_byte() -> None:
    """The beginning of another member may be cut as well."""
    decoder = coding("gzip", 100)
    packed = gzip.compress(b"a") + gzip.compress(b"b")
    assert b"".join(b"".join(decoder.decode(packed[at : at + 1])) for at in range(len(packed))) == b"ab"


@pytest.mark.parametrize("name", ["", "identity", "Identity", "none", "UTF-8", "identity, none"])
def test_names_that_mean_no_coding(name: str) -> None:
    """``none`` is how some apps keep proxies from compressing, and some name the charset here."""
    assert coding(name, 10).decode(b"data: x\n\n") == [b"data: x\n\n"]
