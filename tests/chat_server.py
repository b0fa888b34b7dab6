"""A judge's service on a loopback port: OpenAI's chat completions, as a test scripts them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the service says to one request.

    Attributes:
        text: The judge's reply; None as a service sends it that withholds one.
        status: Of HTTP.
        finish: Why the reply ended.
        usage: Tokens of prompt and reply; None where the service counts none.
        headers: Further headers.
        raw: The whole body, in place of a chat completion.
        hangs: Whether nothing ever comes.
    """

    text: str | None = ""
    status: int = 200
    finish: str = "stop"
    usage: tuple[int, int] | None = (100, 2)
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hangs: bool = False


def refused(status: int, message: str = "no", code: str = "", **headers: str) -> Answer:
    """Return a refusal as OpenAI words it."""
    error = {"message": message, "type": code or None, "code": code or None}
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, raw=json.dumps({"error": error}).encode(), headers=more)


Judge = Callable[[Body], Answer | str]


@dataclass
class Chat:
    """A service that answers as it is told.

    Attributes:
        judge: Gives the answer to a request's body.
        url: What to write into `base_url`.
        bodies: Every request.
        headers: Their headers, names in lower case.
    """

    judge: Judge
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def asked(self, number: int = -1) -> str:
        """Return the user's message of one request."""
        return str(self.bodies[number]["messages"][-1]["content"])


@contextmanager
def chat(judge: Judge, *, serial: bool = True) -> Iterator[Chat]:
    """Serve a judge.

    Args:
        judge: Answers each request.
        serial: Whether it is asked by one request at a time.
    """
    told = Chat(judge)
    lock, one_by_one = threading.Lock(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                told.bodies.append(body)
                told.paths.append(self.path)
                told.headers.append({name.lower(): one for name, one in self.headers.items()})
            with one_by_one if serial else nullcontext():
                answer = told.judge(body)
            self._say(Answer(answer) if isinstance(answer, str) else answer)

        def _say(self, answer: Answer) -> None:
            if answer.hangs:
                told.closing.wait()
                self.close_connection = True
                return
            data = answer.raw if answer.raw is not None else completion(answer)
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield told
    finally:
        told.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def completion(answer: Answer) -> bytes:
    """Return a chat completion as the service writes it."""
    message = {"role": "assistant", "content": answer.text, "refusal": None}
    made: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "served-model",
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish}],
    }
    if answer.usage is not None:
        asked, replied = answer.usage
        made["usage"] = {
            "prompt_tokens": asked,
            "completion_tokens": replied,
            "total_tokens": asked + replied,
        }
    return json.dumps(made).encode()


def mark_of(body: Body) -> str:
    """Return the number that this request's marks carry, from the system message."""
    found = re.search(r"<response-([0-9a-f]+)>", body["messages"][0]["content"])
    assert found is not None
    return found[1]


def fenced(body: Body) -> list[tuple[str, str]]:
    """Return name and text of everything between marks, as a reader of the structure sees it."""
    mark = mark_of(body)
    text = body["messages"][1]["content"]
    return re.findall(
        rf"^<([a-z0-9-]+)-{mark}>\n(.*?)\n</\1-{mark}>$", text, re.DOTALL | re.MULTILINE
    )


def by_words(body: Body) -> str:
    """Rate a response by the share of the reference's words that it has: 0 to 10.

    It obeys the structure of the prompt and nothing else: what stands between the marks of the
    response is looked at for words and not followed.
    """
    texts = dict(fenced(body))
    wanted = set(texts["reference"].lower().split())
    had = wanted & set(texts["response"].lower().split())
    return str(round(10 * len(had) / len(wanted)))
