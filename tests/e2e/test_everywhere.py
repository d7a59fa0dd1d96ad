"""Languages, sizes, sub-paths, programs, engine panel: the page where and as people use it."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from playwright.sync_api import expect

from specdemo.core.engine import EngineState
from specdemo.core.events import Side
from specdemo.core.run import RunRecord
from specdemo.ui.recordings import Recording
from tests.e2e.conftest import Visitor
from tests.e2e.site import Site
from tests.golden import frames_run as golden

Visit = Callable[..., Visitor]


def test_chinese_by_browser_and_by_switch(site: Site, visit: Visit) -> None:
    """A Chinese browser gets a Chinese page, in form, race view and status; the switch turns it into English."""
    visitor = visit(site.url, locale="zh-CN").open()
    expect(visitor.page.locator("#sd-run")).to_have_text("运行")
    visitor.run("讲一个故事。")
    visitor.wait_finished()
    expect(visitor.status).to_contain_text("已完成")
    expect(visitor.page.locator("html")).to_have_attribute("lang", "zh-CN")
    text = visitor.page.locator("#sd-arena").inner_text()
    assert "加速" in text or "接受率" in text
    visitor.page.locator('[data-do="language"]').click()
    expect(visitor.page.locator("#sd-run")).to_have_text("Run")
    assert "lang=en" in visitor.page.url


@pytest.mark.parametrize("width", [375, 390, 2560])
def test_no_width_overflows(site: Site, visit: Visit, width: int) -> None:
    """From phones to wide screens nothing scrolls sideways, and Run is within reach (C13)."""
    site.use({"reply": {"text": "long" * 400 + " 你好" * 40, "step_s": 0.001}})
    visitor = visit(site.url, viewport={"width": width, "height": 800}, is_mobile=width < 600).open()
    visitor.run()
    visitor.wait_finished()
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    expect(visitor.page.locator("#sd-stop")).to_be_visible()
    boxes = [visitor.output(side).bounding_box() for side in ("standard", "speculative")]
    assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)


def test_programs_get_the_contract(site: Site) -> None:
    """``gradio_client`` runs a race and gets the document of the command line; streaming gives the page's frames."""
    client = Client(site.url, verbose=False, httpx_kwargs={"timeout": 60})
    document = client.predict("A prompt.", max_tokens=64, api_name="/race")
    assert document["schema"] == 1
    assert document["sides"]["standard"]["text"] == document["sides"]["speculative"]["text"]
    frames = [json.loads(text) for text in client.submit("A prompt.", api_name="/race_stream")]
    assert [frame["seq"] for frame in frames] == list(range(len(frames)))
    assert frames[-1]["done"]
    with pytest.raises(AppError, match="empty"):
        client.predict(" ", api_name="/race")
    named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(named) == {"/race", "/race_stream"}


def test_program_that_leaves_stops_its_run(site: Site) -> None:
    """Cancelling a streaming job frees both engines."""
    site.use({"reply": {"tokens": 2000, "step_s": 0.05}}, {"k": 4, "reply": {"tokens": 2000, "step_s": 0.05}})
    job = Client(site.url, verbose=False, httpx_kwargs={"timeout": 60}).submit(
        "A prompt.", max_tokens=2000, api_name="/race_stream"
    )
    site.wait_busy()
    job.cancel()
    site.wait_idle()


def test_under_a_sub_path(visit: Visit) -> None:
    """Behind a proxy that strips a prefix, styles, scripts, stream, links and downloads all work (C14)."""
    with Site(root_path="/demo") as site:
        visitor = visit(site.url).open()
        run_id = visitor.run()
        visitor.wait_finished()
        address = visitor.page.locator("#sd-status a", has_text="JSON").evaluate("a => a.href")
        assert address == f"{site.url}runs/{run_id}/record"
        assert httpx.get(address).json()["schema"] == 1
        assert visitor.page.locator(".sd-head").evaluate("e => getComputedStyle(e).display") == "flex"
        direct = httpx.get(site.url.replace("/demo/", "/demo/assets/js/pane.mjs"))
        assert direct.headers["content-type"].startswith("text/javascript")
        visitor.page.close()


def test_behind_tls_on_an_odd_port(visit: Visit, tmp_path: Path) -> None:
    """Behind a proxy that speaks https on a port of its own, nothing is mixed or lost, and the cookie is for https (C14)."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=demo",
            "-keyout", "key.pem", "-out", "cert.pem", "-addext", "subjectAltName=IP:127.0.0.1"]  # fmt: skip
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with Site(root_path="/demo", tls=context) as site:
        visitor = visit(site.url, ignore_https_errors=True).open()
        run_id = visitor.run()
        visitor.wait_finished()
        address = visitor.page.locator("#sd-status a", has_text="JSON").evaluate("a => a.href")
        assert address == f"{site.url}runs/{run_id}/record"
        assert site.url.startswith("https://")
        [cookie] = visitor.context.cookies()
        assert (cookie["secure"], cookie["httpOnly"], cookie["path"]) == (True, True, "/demo/")
        visitor.page.close()


def test_password_covers_every_route(visit: Visit) -> None:
    """With a password set, neither the page nor a run's stream opens without it; with it all works."""
    with Site(auth="ann:secret") as site:
        for path in ("", "engines", "runs/x/events", "assets/js/pane.mjs", "gradio_api/info", "config"):
            assert httpx.get(site.url + path).status_code == 401
        credentials = {"username": "ann", "password": "secret"}
        visitor = visit(site.url, http_credentials=credentials).open()
        visitor.run()
        visitor.wait_finished()
        visitor.page.close()


def test_engine_panel_commands_and_logs(visit: Visit) -> None:
    """The panel shows state and log as text, and its buttons reach the engines; in public there are none."""
    with Site() as site:
        visitor = visit(site.url).open()
        card = visitor.page.locator('[data-engine="speculative"]')
        expect(card.locator('[data-field="state"]')).to_have_text("ready")
        card.locator("summary").click()
        expect(card.locator("pre")).to_contain_text("loading <weights>")
        card.locator('[data-command="restart"]').click()
        expect(visitor.status).to_contain_text("Restart requested")
        assert site.control.commands == [("restart", Side.SPECULATIVE)]
        visitor.page.close()
    with Site(public=True) as site:
        visitor = visit(site.url).open()
        card = visitor.page.locator('[data-engine="standard"]')
        expect(card.locator('[data-field="state"]')).to_have_text("ready")
        expect(card.locator("[data-command]").first).to_be_hidden()
        assert "vllm serve" not in visitor.page.content()
        visitor.page.close()


def test_recording_plays_while_engines_load(visit: Visit) -> None:
    """A first visitor who comes too early sees a recorded run, marked as one, and when the engines will be ready."""
    recording = Recording("rec-small", RunRecord(golden.HEADER, golden.EVENTS))
    with Site(recordings={"rec-small": recording}) as site:
        site.control.eta_s = 33.0
        site.control.states = dict.fromkeys(Side, EngineState.LOADING)
        visitor = visit(site.url).open()
        expect(visitor.page.locator(".sd-pill")).to_contain_text("33 s")
        expect(visitor.status).to_contain_text("33 s")
        expect(visitor.page.locator('[data-role="badge"]')).to_have_attribute("data-badge", "recorded")
        expect(visitor.output("speculative")).to_contain_text("Hello")
        assert visitor.run_id == ""
        visitor.page.locator("#sd-recordings-box > button").click()
        visitor.page.locator('[data-open="rec-small"]').click()
        visitor.page.wait_for_url("**/?run=rec-small")
        site.control.states = dict.fromkeys(Side, EngineState.READY)
        expect(visitor.page.locator(".sd-pill")).to_have_attribute("data-state", "ready")
        expect(visitor.status).to_contain_text("Ready")
        visitor.page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_tab_by_address(site: Site, visit: Visit, width: int) -> None:
    """``?tab=how`` opens that tab, also where the bar has no room for its button; a tab that is none opens the race."""
    visitor = visit(site.url, viewport={"width": width, "height": 844}).open("?tab=how")
    expect(visitor.page.locator("#sd-tab-how")).to_be_visible()
    expect(visitor.page.locator("#sd-tab-race")).to_be_hidden()
    visitor.open("?tab=%3Cnone%3E")
    expect(visitor.page.locator("#sd-tab-race")).to_be_visible()
    if width == 1280:
        visitor.page.locator("#sd-tab-runs-button").click()
        visitor.page.wait_for_function("new URL(location.href).searchParams.get('tab') === 'runs'")
