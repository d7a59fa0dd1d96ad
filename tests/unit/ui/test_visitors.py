"""Who asks: cookies that cannot be forged, addresses that cannot be invented, limits that cannot be slipped."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from specdemo.ui.asked import visitor_of
from specdemo.ui.guard import Guard
from specdemo.ui.quota import Allowance, Quota, Refused
from specdemo.ui.visitors import COOKIE, Cookies, Proxies, Visitor, signing_key

ANN, BEN = Visitor("ann", "192.0.2.1"), Visitor("ben", "192.0.2.2")


async def _who(request: Request) -> Response:
    visitor = visitor_of(request)
    return JSONResponse({
        "id": visitor.id, "address": visitor.address, "scheme": request.url.scheme,
        "forwarded": [name for name in request.headers if "forward" in name],
    })  # fmt: skip


def client(guard: ASGIApp, peer: str = "127.0.0.1", **headers: str) -> httpx.AsyncClient:
    """Somebody who connects from ``peer``."""
    transport = httpx.ASGITransport(guard, client=(peer, 1))
    return httpx.AsyncClient(transport=transport, base_url="http://page", headers=headers)


def site(secret: str = "s") -> Guard:
    """A guard that gives cookies."""
    return Guard(Starlette(routes=[Route("/{rest:path}", _who)]), cookies=Cookies(secret))


async def test_a_visitor_keeps_the_name() -> None:
    """The first page brings a cookie that scripts cannot read; later requests are known by it."""
    async with client(site()) as http:
        first = await http.get("/")
        given = first.headers["set-cookie"]
        assert "HttpOnly" in given
        assert "SameSite=Lax" in given
        assert first.headers["cache-control"] == "no-store"
        names = {(await http.get(path)).json()["id"] for path in ("/", "/engines")}
        assert len(names) == 1
        assert len(names.pop()) >= 16


@pytest.mark.parametrize("cookie", ["", "x", "ann", "ann.signature", 'ann."', "a" * 5000, "ann.\x01", "=;=;"])
async def test_forged_cookies_make_nobody(cookie: str) -> None:
    """A name that we did not sign, or one signed with another key, is no name; the page gives a new one."""
    other = Cookies("another").header("ann", secure=False).partition(";")[0]
    for given in (f"{COOKIE}={cookie}", other):
        async with client(site(), cookie=given.encode().decode("latin1")) as http:
            reply = await http.get("/")
            assert reply.json()["id"] == ""
            assert COOKIE in reply.headers["set-cookie"]


@pytest.mark.parametrize(
    "other",
    ['prefs={"a":1}', "a[b]=c", "x=a,b c", "bare", "=v", "", 'x="open', "x=\u00e9", "path=/", "expires=Wed, 01 Jan 2020",
     "secure", f"{COOKIE}=bob.other", f"x{COOKIE}=1", f"{COOKIE}"],
)  # fmt: skip
def test_cookies_of_other_sites_of_this_host_do_no_harm(other: str) -> None:
    """Whatever stands beside ours, in whatever order or in a line of its own, the visitor is still known."""
    cookies = Cookies("s")
    own = cookies.header("ann", secure=False).partition(";")[0]
    second = Cookies("of another specdemo").header("ben", secure=False).partition(";")[0]
    for lines in ([f"{other}; {own}"], [f"{own};{other}"], [f"{second}; {own}; {other}"], [other, own], [own, other]):
        raw = [(b"cookie", line.encode("latin1")) for line in lines]
        assert cookies.read(Headers(raw=raw)) == "ann", lines


def test_framed_cookies_are_partitioned() -> None:
    """In a frame of a hosting site the cookie is for that site's frame alone; over https it never goes plain."""
    framed = Cookies("s", framed=True).header("ann", secure=True)
    assert "SameSite=None; Secure; Partitioned" in framed
    assert "; Secure" in Cookies("s").header("ann", secure=True)
    assert Cookies("s").read(Headers({"cookie": framed.partition(";")[0]})) == "ann"


@pytest.mark.parametrize(
    "peer, given, seen",
    [
        ("10.0.0.9", "203.0.113.7", "203.0.113.7"),
        ("10.0.0.9", "1.1.1.1, 203.0.113.7", "203.0.113.7"),  # the first was invented by the visitor
        ("10.0.0.9", "203.0.113.7, 10.0.0.8", "203.0.113.7"),
        ("192.0.2.9", "203.0.113.7", "192.0.2.9"),
        ("10.0.0.9", "", "10.0.0.9"),
        ("2001:db8::1", "203.0.113.7", "2001:db8::/64"),
        ("::ffff:192.0.2.9", "203.0.113.7", "192.0.2.9"),
    ],
)
async def test_addresses_behind_proxies(peer: str, given: str, seen: str) -> None:
    """Only a trusted proxy says whose request it is, and of what a chain says only what it added itself counts."""
    app = Proxies("10.0.0.0/8").before(site())
    async with client(app, peer, **({"x-forwarded-for": given, "x-forwarded-proto": "https"} if given else {})) as http:
        found = (await http.get("/x")).json()
    assert found["address"] == seen
    trusted = peer.startswith("10.") and bool(given)
    assert found["scheme"] == ("https" if trusted else "http")
    assert bool(found["forwarded"]) is trusted


@pytest.mark.parametrize(
    ("trusted", "peer", "given", "seen"),
    [
        ("10.0.0.0/8", "::ffff:10.0.0.5", "203.0.113.7", "203.0.113.7"),
        ("::ffff:10.0.0.0/104", "10.0.0.5", "203.0.113.7", "203.0.113.7"),
        ("::ffff:10.0.0.5", "::ffff:10.0.0.5", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "127.0.0.1", "1.2.3.4, ::ffff:127.0.0.1", "1.2.3.4"),
        ("127.0.0.1", "::ffff:7f00:1", "1.2.3.4,[::ffff:127.0.0.1]:5000", "1.2.3.4"),
        ("127.0.0.1", "127.0.0.1", "2001:db8::1, ::ffff:127.0.0.1", "2001:db8::/64"),
        ("127.0.0.1", "127.0.0.1", "[::ffff:1.2.3.4]:99", "1.2.3.4"),
        ("127.0.0.1", "127.0.0.1", "1.2.3.4, ,", "1.2.3.4"),
        ("10.0.0.0/8", "::ffff:192.0.2.9", "203.0.113.7", "192.0.2.9"),
        ("127.0.0.1", "127.0.0.1", "unknown, ::ffff:nothing", "::ffff:nothing"),
    ],
)
async def test_ipv4_written_as_ipv6(trusted: str, peer: str, given: str, seen: str) -> None:
    """A listener on "::" sees IPv4 proxies as ::ffff:10.0.0.5; they, and hops written so, are the same addresses."""
    app = Proxies(trusted).before(site())
    async with client(app, peer, **{"x-forwarded-for": given, "x-forwarded-proto": "https"}) as http:
        found = (await http.get("/x")).json()
    assert found["address"] == seen
    assert found["scheme"] == ("http" if peer == "::ffff:192.0.2.9" else "https")


@pytest.mark.parametrize(
    ("lines", "address", "scheme"),
    [
        ([("x-forwarded-for", "203.0.113.7"), ("x-forwarded-for", "10.0.0.8")], "203.0.113.7", "http"),
        ([("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.7, 10.0.0.8:80")], "203.0.113.7", "http"),
        ([("x-forwarded-proto", "https, http")], "10.0.0.9", "https"),
        ([("x-forwarded-proto", "https"), ("x-forwarded-proto", "http")], "10.0.0.9", "https"),
        ([("x-forwarded-proto", "HTTPS")], "10.0.0.9", "https"),
        ([("x-forwarded-proto", "http,https")], "10.0.0.9", "http"),
        ([("x-forwarded-proto", ""), ("x-forwarded-for", "")], "10.0.0.9", "http"),
    ],
)
async def test_several_proxies_in_a_row(lines: list[tuple[str, str]], address: str, scheme: str) -> None:
    """Each may append to a line or add one; whose address it is the last ones say, how it was reached the first."""
    app = Proxies("10.0.0.0/8").before(site())
    async with client(app, "10.0.0.9") as http:
        found = (await http.get("/x", headers=lines)).json()
        assert (found["address"], found["scheme"]) == (address, scheme)
    async with client(app, "192.0.2.9") as http:
        found = (await http.get("/x", headers=lines)).json()
    assert (found["address"], found["scheme"], found["forwarded"]) == ("192.0.2.9", "http", [])


@pytest.mark.parametrize("peer", ["10.0.0.9", "192.0.2.9"])
async def test_no_visitor_names_another_server(peer: str) -> None:
    """Gradio would write the address in this header into the page as the place of its own files."""
    seen: list[bytes] = []

    async def app(scope: Scope, _: Receive, send: Send) -> None:
        seen.extend(name for name, _ in scope["headers"])
        await Response()(scope, _, send)

    async with client(Proxies("10.0.0.0/8").before(app), peer) as http:
        await http.get("/", headers={"X-Gradio-Server": "http://evil.example"})
    assert seen
    assert b"x-gradio-server" not in seen


def test_key_is_kept_and_private(tmp_path: Path) -> None:
    """A restart knows its visitors again; the key is readable by its user alone; without a folder one is made up."""
    first = signing_key(tmp_path / "data")
    assert signing_key(tmp_path / "data") == first
    assert (tmp_path / "data" / "cookie.key").stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("")
    assert signing_key(tmp_path / "file") != signing_key(tmp_path / "file")


class Clock:
    """Time by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_runs_a_minute() -> None:
    """A visitor may use the minute's runs at once; they come back evenly, and the sentence says when the next one does."""
    clock = Clock()
    quota = Quota(Allowance(runs_per_minute=3), clock=clock)
    for _ in range(3):
        quota.run(ANN)()
    with pytest.raises(Refused, match="3 runs a minute") as caught:
        quota.run(ANN)
    assert (caught.value.kind, caught.value.reason, caught.value.retry_s) == ("limit", "runs", 20)
    assert "每分钟" in caught.value.text("zh")
    quota.run(BEN)()
    clock.now = 20.1
    quota.run(ANN)()


def test_new_cookies_buy_nothing() -> None:
    """An address has a few visitors' worth, however many cookies it shows; without cookies one visitor's."""
    quota = Quota(Allowance(runs_per_minute=2, per_address=3), clock=Clock())
    for number in range(6):
        quota.run(Visitor(f"fresh{number}", "192.0.2.1"))()
    with pytest.raises(Refused):
        quota.run(Visitor("one more", "192.0.2.1"))
    for _ in range(2):
        quota.run(Visitor("", "192.0.2.5"))()
    with pytest.raises(Refused):
        quota.run(Visitor("", "192.0.2.5"))


def test_open_runs_are_given_back() -> None:
    """A run counts from its start to its end; giving back twice gives back once."""
    quota = Quota(Allowance(open_runs=2))
    first, _ = quota.run(ANN), quota.run(ANN)
    with pytest.raises(Refused, match="2 runs going"):
        quota.run(ANN)
    first()
    first()
    quota.run(ANN)
    with pytest.raises(Refused):
        quota.run(ANN)


def test_a_refused_run_costs_nothing() -> None:
    """Knocking while refused does not put the next run further off."""
    clock = Clock()
    quota = Quota(Allowance(runs_per_minute=1), clock=clock)
    quota.run(ANN)()
    for second in range(1, 60):
        clock.now = float(second)
        with pytest.raises(Refused):
            quota.run(ANN)
    clock.now = 60.0
    quota.run(ANN)()


def test_memory_of_visitors_is_bounded() -> None:
    """A flood of addresses does not grow the tables for ever, and its own address stays known."""
    quota = Quota(Allowance(requests_per_minute=1, per_address=1), clock=Clock())
    quota.request(Visitor("", "192.0.2.1"))
    for number in range(30_000):
        quota.request(Visitor("", f"host-{number}"))
    assert len(quota._buckets._held) <= 20_000
    with pytest.raises(Refused):
        quota.request(Visitor("", "host-29999"))


def test_closing_refuses_new_runs() -> None:
    """A page that is about to end takes no new run and says so."""
    quota = Quota()
    quota.closing = True
    with pytest.raises(Refused, match="restarted"):
        quota.run(ANN)
