"""Replies that are right but for one oddity of their head or their first bytes, over a real socket."""

import asyncio
import contextlib

import pytest

from tests.fakes.asking import HELLO, Heard, ask, hear_reply

LAST = 'data: {"choices":[{"index":0,"delta":{"content":"z"},"token_ids":[9],"finish_reason":"stop"}]}\n\n'


async def heard_from(answer: bytes) -> Heard:
    """A stream from a server that sends these bytes and then waits."""
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        with contextlib.suppress(ConnectionError):
            await reader.read(-1)  # until the client leaves
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        async with asyncio.timeout(5):
            found = await ask(f"http://127.0.0.1:{port}", HELLO, model="m")
            await gone.wait()
    return found


@pytest.mark.parametrize("before", ["retry: 500\n\n", "\ufeff", "\n\r\n", "\ufeff\n: ping\n\n", "\r\nevent: x\n"])
@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
async def test_a_stream_that_is_called_json(before: str, kind: str) -> None:
    """Whatever stands before its first event, it is read as the stream that it is."""
    heard = await hear_reply(raw=[before, LAST], wire={"content_type": kind})
    assert (heard.text, heard.finished.finish_reason) == ("z", "stop")


async def test_json_is_json_in_any_case() -> None:
    """The content type's letters do not decide whether an unstreamed answer is read."""
    body = '{"choices":[{"index":0,"message":{"content":"whole"},"finish_reason":"stop"}]}'
    heard = await hear_reply(raw=[body], wire={"content_type": "Application/JSON"})
    assert (heard.text, heard.notes["other"].startswith("The engine answered in one piece")) == ("whole", True)


async def test_created_is_no_refusal() -> None:
    """Some gateways answer every POST with 201; a reply without a body is still no answer."""
    heard = await hear_reply(status=201, raw=[LAST])
    assert heard.text == "z"
    empty = await hear_reply(status=204, raw=[])
    assert empty.failed.kind == "protocol"


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail\r\n", b"-ERR unknown command\r\n"])
async def test_another_service_on_the_port_is_told_at_once(answer: bytes) -> None:
    """It greets and waits, and so would we, for the whole first-token limit (A28)."""

    heard = await heard_from(answer)
    assert (heard.failed.kind, "not a status line" in heard.failed.message) == ("protocol", True)


async def test_tokens_before_a_broken_chunk_are_kept() -> None:
    """What came in the same read as the mistake is not lost, and the mistake does not wait for more bytes."""
    body = LAST.replace('"stop"', "null").encode()
    reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz\r\n" % (len(body), body)
    heard = await heard_from(reply)
    assert (heard.text, heard.failed.kind, "no size" in heard.failed.message) == ("z", "protocol", True)
