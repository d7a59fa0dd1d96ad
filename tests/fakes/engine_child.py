"""A stand-in for a vLLM child: the same routes, log lines and habits, ready in a moment. A program of its own.

    python engine_child.py --port 8000 --model demo [--behaviour NAME] [--flag FILE]

Behaviours: ``normal``; ``exit`` prints a vLLM traceback and ends with code 1; ``taken-once`` fails with "address in use"
the first time (``--flag`` remembers); ``wait`` gets ready when ``--flag`` exists; ``mute`` never opens its port;
``other-model`` lists another model; ``stubborn`` ignores SIGTERM and has a child that does too; ``dies-warming-up``.
Control routes: POST /control/sick makes /health answer 503, POST /control/exit ends the process with code 3.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ERROR_LOG = """\
(APIServer pid=11) INFO 11-29 23:48:57 [model.py:733] Resolved architecture: LlamaForCausalLM
Traceback (most recent call last):
  File "config/speculative.py", line 1814, in check
pydantic_core._pydantic_core.ValidationError: 1 validation error for SpeculativeConfig
  Value error, prompt_lookup_min=6 must be <= prompt_lookup_max=4 [type=value_error, input_value={}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.14/v/value_error
"""


class Engine(BaseHTTPRequestHandler):
    """Routes that a supervisor asks."""

    model = "demo"
    behaviour = "normal"
    sick = False

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(503 if Engine.sick else 200, None)
        elif self.path == "/v1/models":
            name = "somebody-else" if self.behaviour == "other-model" else self.model
            self._answer(200, {"object": "list", "data": [{"id": name}]})
        elif self.path == "/version":
            self._answer(200, {"version": "0.32.0"})
        else:
            self._answer(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/control/sick":
            Engine.sick = True
        elif self.path == "/control/exit" or self.behaviour == "dies-warming-up":
            say("(EngineCore pid=12) ERROR 11-29 23:50:22 [core.py:1512] RuntimeError: index 49152 is out of bounds")
            os._exit(3)
        self._answer(200, {"choices": []})

    def log_message(self, *args: object) -> None:
        pass

    def _answer(self, status: int, body: object) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--behaviour", default="normal")
    parser.add_argument("--flag", type=Path)
    args = parser.parse_args()
    Engine.model, Engine.behaviour = args.model, args.behaviour
    say(f"key is {os.environ.get('VLLM_API_KEY', 'not set')}")
    if args.behaviour == "exit":
        say(ERROR_LOG)
        sys.exit(1)
    if args.behaviour == "taken-once" and not args.flag.exists():
        args.flag.touch()
        say("OSError: [Errno 98] Address already in use")
        sys.exit(1)
    if args.behaviour == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", program])
    say("(Worker pid=11890) INFO 11-29 23:49:11 [cpu_model_runner.py:68] Starting to load model demo...")
    say("Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00,  2.89it/s]")
    while args.behaviour == "mute" or (args.behaviour == "wait" and not args.flag.exists()):
        time.sleep(0.02)
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Engine)
    if args.behaviour != "stubborn":
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    say("INFO:     Application startup complete.")
    server.serve_forever(poll_interval=0.02)


if __name__ == "__main__":
    main()
