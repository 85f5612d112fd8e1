#!/usr/bin/env python3
"""A worker in Python with nothing but the standard library.

Everything that a worker needs is in the class `Worker`, and nothing in it is about this example: copy the file, keep the
class, and write your own skills below. The protocol is explained in docs/guide/writing-a-worker.md.

    ORCHESTRATOR_URL=http://localhost:8080 WORKER_TOKEN=... python3 worker.py
"""

import contextlib
import http.client
import json
import os
import queue
import random
import signal
import socket
import ssl
import sys
import threading
import time
import traceback
import urllib.parse
import uuid

try:  # optional: with it, spans of libraries that a skill uses belong to the span of the task
    from opentelemetry import propagate, trace
except ImportError:
    trace = None

POLL_SECONDS = 30
HEARTBEAT_SECONDS = 15.0
REQUEST_SECONDS = 15
# What an operator can read of a failure; the orchestrator keeps no more.
STACK_CHARS = 8000
# What has not changed is said again this often.
SAY_AGAIN_SECONDS = 300.0


class TaskError(Exception):
    """What a skill raises to say how its failure should be taken. Anything else that it raises is transient."""

    def __init__(self, code, message, details=None):
        super().__init__(message)
        self.code = code
        self.details = details


class Cancelled(Exception):
    """Raised by `task.check()` when nobody wants the result any more."""


class Refused(Exception):
    """The orchestrator answered, and it was no."""

    def __init__(self, status, text, retry_after=None):
        super().__init__(f"{status} {self._reason(text)}")
        self.status = status
        self.retry_after = retry_after

    @staticmethod
    def _reason(text):
        """The sentence of an answer that has one, else its beginning."""
        try:
            said = json.loads(text)["error"]
        except (ValueError, TypeError, KeyError):
            said = text
        return str(said)[:200]


class Task:
    """One task, as its skill sees it."""

    def __init__(self, worker, wire):
        self.wire = wire
        self.id = wire["task_id"]
        self.job_id = wire["job_id"]
        self.attempt = wire.get("attempt", 1)
        # The same for every delivery and every try: give it to whatever must not happen twice.
        self.idempotency_key = wire.get("idempotency_key", self.id)
        self.stop = threading.Event()
        # Somebody else will do it: whatever its skill still gives is nobody's business.
        self.handed_back = False
        self._worker = worker
        self._progress_at = 0.0

    def check(self):
        """Raises when the task was cancelled or its deadline has passed. Call it now and then."""
        if self.stop.is_set():
            raise Cancelled()
        deadline = self.wire.get("deadline")
        if deadline is not None and time.time() > deadline:
            raise TaskError("TIMEOUT_ERROR", "The deadline of the task has passed.")

    def sleep(self, seconds):
        """Like `time.sleep`, but ends at once with `Cancelled` when the task is cancelled."""
        self.stop.wait(seconds)
        self.check()

    def progress(self, fraction, message=None):
        """Says how far it is, from 0 to 1. Sent at most once a second; nothing depends on it, so it may be lost."""
        if time.monotonic() - self._progress_at < 1:
            return
        self._progress_at = time.monotonic()
        payload = {"progress": min(1.0, max(0.0, fraction))}
        if message is not None:
            payload["message"] = message
        try:
            self._worker.event(self, "progress", payload)
        except (OSError, http.client.HTTPException, Refused) as error:
            log("progress was not sent", error=str(error))


class Worker:
    """Registers, sends heartbeats, asks for tasks, runs them in threads, and brings the results back."""

    def __init__(self, url, token=None, worker_id=None, slots=4):
        self.id = worker_id or f"python-{uuid.uuid4()}"
        self._url = urllib.parse.urlsplit(url)
        self._token = token
        self._slots = threading.Semaphore(slots)
        self._slot_count = slots
        self._skills = {}
        self._running = {}
        self._lock = threading.Lock()
        self._registering = threading.Lock()
        self._registered = threading.Event()
        self._stopping = threading.Event()
        self._changed = threading.Event()
        self._polling = None
        self._outage = Outage()
        self._tracing = OpenTelemetryTracing() if trace is not None else PlainTracing()

    def skill(self, name):
        """Decorates a function `(params, task) -> result`."""

        def add(function):
            self._skills[name] = function
            return function

        return add

    def run(self, shutdown_seconds=30.0):
        """Works until SIGTERM or SIGINT; then finishes what is running, or hands it back when that takes too long."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopping.set())
        beating = threading.Thread(target=self._beat_for_ever, daemon=True)
        polling = threading.Thread(target=self._poll_for_ever, daemon=True)
        beating.start()
        polling.start()
        # With a timeout, because a wait without one keeps Python from handling the signal on some systems.
        while not self._stopping.wait(1.0):
            pass
        log("stopping: running tasks are waited for", running=sorted(self._running), seconds=shutdown_seconds)
        self._hang_up()
        self._say("draining")
        polling.join(timeout=REQUEST_SECONDS)
        self._finish(shutdown_seconds)
        self._say("offline")
        self._tracing.flush()
        log("stopped")

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _connect(self, timeout):
        host, port = self._url.hostname, self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context(cafile=os.environ.get("TLS_CA_PATH") or None)
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def _call(self, method, path, body=None, timeout=REQUEST_SECONDS, keep=None):
        """The answer as an object, or None for one without content. `keep` is given the connection while it is open."""
        connection = self._connect(timeout)
        headers = {"Content-Type": "application/json", "X-Worker-ID": self.id}
        if self._token:
            headers["X-Worker-Token"] = self._token
        try:
            if keep is not None:
                keep(connection)
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, self._url.path.rstrip("/") + path, data, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            self._outage.answered(answer.status)
            if answer.status >= 300:
                raise Refused(answer.status, text, answer.headers.get("Retry-After"))
            return json.loads(text) if text else None
        finally:
            connection.close()

    def event(self, task, event_type, payload):
        """Tells the job that something has happened. The id lets the orchestrator know it again if it comes twice."""
        return self._call("POST", "/_worker/events", {
            "event_id": str(uuid.uuid4()),
            "event_type": event_type,
            "worker_id": self.id,
            "target_job_id": task.job_id,
            "target_task_id": task.id,
            "payload": payload,
        })

    # -- registration and heartbeats -----------------------------------------------------------------------------------

    def _register(self):
        """Returns when the orchestrator knows this worker, however long that takes."""
        with self._registering:
            pause = Pause()
            while not self._registered.is_set() and not self._stopping.is_set():
                try:
                    self._call("POST", "/_worker/workers/register", {
                        "worker_id": self.id,
                        "worker_type": "python",
                        "supported_skills": sorted(self._skills),
                        "resources": {"max_concurrent_tasks": self._slot_count, "cpu_cores": os.cpu_count() or 1},
                        "installed_software": {"python": sys.version.split()[0]},
                        "capabilities": {"hostname": socket.gethostname()},
                    })
                    self._registered.set()
                    log("registered", worker_id=self.id)
                except (OSError, http.client.HTTPException, Refused) as error:
                    self._outage.failed("the worker could not register", error)
                    self._stopping.wait(pause.next(error))

    def _state(self, status=None):
        with self._lock:
            running = sorted(self._running)
        usual = "busy" if len(running) >= self._slot_count else "idle"
        if self._stopping.is_set():
            usual = "draining"
        # What is named here stays ours: every heartbeat renews its lease.
        return {"status": status or usual, "current_tasks": running}

    def _beat(self, status=None):
        try:
            answer = self._call("PATCH", f"/_worker/workers/{self.id}", self._state(status)) or {}
        except Refused as refused:
            if refused.status == 404:
                self._registered.clear()
            raise
        with self._lock:
            for task_id in answer.get("cancel_task_ids") or []:
                if task_id in self._running:
                    log("cancelled", task_id=task_id)
                    self._running[task_id].stop.set()
        return min((answer.get("next_heartbeat_jitter_ms") or 0) / 1000, HEARTBEAT_SECONDS)

    def _beat_for_ever(self):
        pause = Pause(longest=HEARTBEAT_SECONDS)
        while True:
            if not self._registered.is_set() and not self._stopping.is_set():
                self._register()
            try:
                wait = HEARTBEAT_SECONDS + self._beat()
                pause.reset()
            except (OSError, http.client.HTTPException, Refused) as error:
                self._outage.failed("a heartbeat failed", error)
                wait = pause.next(error)
            self._changed.wait(wait)
            self._changed.clear()

    def _say(self, status):
        if not self._registered.is_set():
            return
        try:
            self._beat(status)
        except (OSError, http.client.HTTPException, Refused) as error:
            log("the orchestrator could not be told", status=status, error=str(error))

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def _poll_for_ever(self):
        pause = Pause()
        path = f"/_worker/workers/{self.id}/tasks/next?timeout={POLL_SECONDS}"
        while not self._stopping.is_set():
            self._register()
            # Only who has a free slot asks.
            if not self._slots.acquire(timeout=1.0):
                continue
            wire = None
            try:
                if not self._stopping.is_set():
                    wire = self._call("GET", path, timeout=POLL_SECONDS + 10, keep=self._keep)
                pause.reset()
            except (OSError, http.client.HTTPException, Refused) as error:
                if isinstance(error, Refused) and error.status == 404:
                    self._registered.clear()
                if not self._stopping.is_set():
                    self._outage.failed("there was no answer to the poll", error)
                    self._stopping.wait(pause.next(error))
            finally:
                self._polling = None
            if wire is None:
                self._slots.release()
            else:
                self._begin(Task(self, wire))

    def _keep(self, connection):
        self._polling = connection

    def _hang_up(self):
        """Ends the poll that is under way: a task that was about to come goes back into its queue by itself."""
        connection = self._polling
        try:
            if connection is not None and connection.sock is not None:
                connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _begin(self, task):
        with self._lock:
            if task.id in self._running:
                self._slots.release()
                return
            self._running[task.id] = task
            if len(self._running) == self._slot_count:
                self._changed.set()
        threading.Thread(target=self._perform, args=(task,), daemon=True).start()

    def _perform(self, task):
        try:
            result = self._result_of(task)
            if not task.handed_back:
                self._deliver(task, result)
        finally:
            with self._lock:
                if len(self._running) == self._slot_count:
                    self._changed.set()
                self._running.pop(task.id, None)
            self._slots.release()

    def _result_of(self, task):
        skill = self._skills.get(task.wire["type"])
        try:
            if skill is None:
                raise TaskError("PERMANENT_ERROR", f"This worker has no skill {task.wire['type']!r}.")
            with self._tracing.span(self.id, task):
                return {"status": "success", "data": skill(task.wire.get("params") or {}, task)}
        except Cancelled:
            return {"status": "cancelled"}
        except TaskError as error:
            return failure(error.code, str(error), error.details)
        except Exception as error:  # whatever a skill raises is its own, and must not end the worker
            stack = traceback.format_exc()
            log("a skill failed", task_id=task.id, job_id=task.job_id, type=task.wire["type"], stack=stack)
            # The end says where it happened.
            return failure("TRANSIENT_ERROR", f"{type(error).__name__}: {error}", stack=stack[-STACK_CHARS:])

    def _deliver(self, task, result):
        """Sends the same until it is answered. Meanwhile the task stays among the running, so that it stays ours."""
        body = {"job_id": task.job_id, "task_id": task.id, "worker_id": self.id, **result}
        pause = Pause(longest=30)
        while True:
            try:
                answer = self._call("POST", "/_worker/tasks/result", body) or {}
                log("delivered", task_id=task.id, status=result["status"], answer=answer.get("status"))
                return
            except Refused as refused:
                if refused.status in (400, 413, 422) and body["status"] != "failure":
                    body = {**body, "data": None, **failure("PERMANENT_ERROR", f"The result was refused: {refused}")}
                    continue
                if refused.status in (400, 403, 404, 413, 422):
                    log("a result was refused", task_id=task.id, error=str(refused))
                    return
                time.sleep(pause.next(refused))
            except (OSError, http.client.HTTPException) as error:
                log("a result could not be delivered yet", task_id=task.id, error=str(error))
                time.sleep(pause.next(error))

    def _finish(self, seconds):
        until = time.monotonic() + seconds
        while self._running and time.monotonic() < until:
            time.sleep(0.05)
        with self._lock:
            left = list(self._running.values())
        for task in left:
            # Handed back: another worker gets it at once, and not only when its lease ends. Marked before it is stopped, so
            # that its skill's "cancelled" does not arrive first and end the job.
            task.handed_back = True
            task.stop.set()
            try:
                body = {"job_id": task.job_id, "task_id": task.id, "worker_id": self.id}
                self._call("POST", "/_worker/tasks/result", {
                    **body, **failure("TRANSIENT_ERROR", "The worker is shutting down."),
                })
            except (OSError, http.client.HTTPException, Refused) as error:
                log("a task could not be handed back", task_id=task.id, error=str(error))


class Pause:
    """How long to wait before the next try: longer each time, and never the same for everybody."""

    def __init__(self, first=0.5, longest=60.0):
        self._first = first
        self._longest = longest
        self._failures = 0

    def next(self, error=None):
        wait = min(self._longest, self._first * 2 ** min(self._failures, 20))
        self._failures += 1
        wanted = getattr(error, "retry_after", None)
        if wanted is not None and wanted.replace(".", "", 1).isdigit():
            return float(wanted)
        return wait / 2 + random.random() * wait / 2

    def reset(self):
        self._failures = 0


class Outage:
    """Says once what is wrong and what to do about it, then seldom, and once that it is over."""

    def __init__(self):
        self._lock = threading.Lock()
        self._kind = None
        self._since = self._said = 0.0

    def failed(self, message, error):
        status = getattr(error, "status", None)
        if status == 404:  # not known any more: it registers again
            return
        kind = "refused" if status in (401, 403) else "away" if status is None else "other"
        now = time.monotonic()
        with self._lock:
            if self._kind is None:
                self._since = now
            if self._kind == kind and now - self._said < SAY_AGAIN_SECONDS:
                return
            self._kind, self._said = kind, now
        if kind == "refused":
            log(f"{message}: the orchestrator rejected the token of this worker. Set WORKER_TOKEN to the token that its workers "
                "share, or WORKER_INDIVIDUAL_TOKEN to the one of this worker, and start it again.", error=str(error))
        else:
            log(f"{message}; it is tried again", error=str(error))

    def answered(self, status):
        if status >= 300 and status != 404:
            return
        with self._lock:
            if self._kind is None:
                return
            self._kind = None
            seconds = time.monotonic() - self._since
        log("connected to the orchestrator again", after_seconds=round(seconds, 1))


class OpenTelemetryTracing:
    """Spans by the package opentelemetry, for a program that has set up a provider, such as with opentelemetry-instrument."""

    def span(self, worker_id, task):
        parent = propagate.extract(task.wire.get("tracing_context") or {})
        tracer = trace.get_tracer("impresario-python-worker")
        return tracer.start_as_current_span(
            span_name(task), context=parent, kind=trace.SpanKind.CONSUMER, attributes=span_attributes(worker_id, task))

    def flush(self):
        flush = getattr(trace.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            flush(2000)


class PlainTracing:
    """Spans by the standard library: one for each task that belongs to a recorded trace, sent as OTLP in JSON.

    Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set. What a collector that is away does not take is lost; tasks never wait.
    """

    def __init__(self, waiting_max=1000):
        base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").rstrip("/")
        own = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
        self._url = own or (f"{base}/v1/traces" if base else "")
        self._service = os.environ.get("OTEL_SERVICE_NAME", "impresario-python-worker")
        self._waiting = queue.Queue(waiting_max)
        if self._url:
            threading.Thread(target=self._send_for_ever, daemon=True).start()

    @contextlib.contextmanager
    def span(self, worker_id, task):
        parent = (task.wire.get("tracing_context") or {}).get("traceparent", "").split("-")
        if not self._url or len(parent) < 4 or not int(parent[3], 16) & 1:
            yield
            return
        began, problem = time.time_ns(), None
        try:
            yield
        except BaseException as error:
            problem = f"{type(error).__name__}: {error}"[:1000]
            raise
        finally:
            span = {
                "traceId": parent[1], "spanId": os.urandom(8).hex(), "parentSpanId": parent[2],
                "name": span_name(task), "kind": 5,
                "startTimeUnixNano": str(began), "endTimeUnixNano": str(time.time_ns()),
                "attributes": otlp_attributes(span_attributes(worker_id, task)),
                "status": {"code": 1} if problem is None else {"code": 2, "message": problem},
            }
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(span)

    def flush(self, seconds=2.0):
        until = time.monotonic() + seconds
        while self._waiting.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.02)

    def _send_for_ever(self):
        while True:
            spans = [self._waiting.get()]
            with contextlib.suppress(queue.Empty):
                while len(spans) < 100:
                    spans.append(self._waiting.get_nowait())
            try:
                self._send(spans)
            except (OSError, http.client.HTTPException) as error:
                log("spans were not sent", error=str(error))
            for _ in spans:
                self._waiting.task_done()

    def _send(self, spans):
        url = urllib.parse.urlsplit(self._url)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname, url.port, timeout=REQUEST_SECONDS)
        resource = {"attributes": otlp_attributes({"service.name": self._service})}
        scope_spans = [{"scope": {"name": "impresario-python-worker"}, "spans": spans}]
        body = {"resourceSpans": [{"resource": resource, "scopeSpans": scope_spans}]}
        try:
            connection.request("POST", url.path, json.dumps(body).encode(), {"Content-Type": "application/json"})
            connection.getresponse().read()
        finally:
            connection.close()


def span_name(task):
    return f"Worker:{task.wire['type']}"


def span_attributes(worker_id, task):
    return {
        "job.id": task.job_id, "task.id": task.idempotency_key, "task.type": task.wire["type"],
        "task.attempt": task.attempt, "worker.id": worker_id,
    }


def otlp_attributes(values):
    def value(given):
        return {"intValue": str(given)} if isinstance(given, int) else {"stringValue": str(given)}

    return [{"key": key, "value": value(given)} for key, given in values.items()]


def failure(code, message, details=None, stack=None):
    error = {"code": code, "message": message}
    if details is not None:
        error["details"] = details
    if stack is not None:
        error["stack"] = stack
    return {"status": "failure", "error": error}


def log(message, stack=None, **fields):
    line = json.dumps({"time": time.time(), "message": message, **fields})
    # A stack is for people: its lines stand below, as they are.
    print(line if stack is None else f"{line}\n{stack.rstrip()}", file=sys.stderr, flush=True)


# -- the skills of this example ----------------------------------------------------------------------------------------

worker = Worker(
    os.environ.get("ORCHESTRATOR_URL", "http://localhost:8080"),
    token=os.environ.get("WORKER_INDIVIDUAL_TOKEN") or os.environ.get("WORKER_TOKEN"),
    worker_id=os.environ.get("WORKER_ID"),
    slots=int(os.environ.get("MAX_CONCURRENT_TASKS", "4")),
)


@worker.skill("texts.upper")
def upper(params, _task):
    if not isinstance(params.get("text"), str):
        raise TaskError("INVALID_INPUT_ERROR", "text must be a string", {"field": "text"})
    return {"text": params["text"].upper()}


@worker.skill("texts.count")
def count(params, task):
    """Long work that says how far it is."""
    words = {}
    lines = str(params.get("text", "")).splitlines()
    for number, line in enumerate(lines, start=1):
        for word in line.split():
            words[word] = words.get(word, 0) + 1
        task.progress(number / len(lines), f"line {number} of {len(lines)}")
    return {"words": words}


@worker.skill("texts.flaky")
def flaky(params, task):
    """Fails until it has been tried often enough: the orchestrator tries again by itself."""
    if task.attempt < int(params.get("attempts", 2)):
        raise ConnectionError("the dictionary does not answer")
    return {"attempt": task.attempt}


@worker.skill("texts.read_aloud")
def read_aloud(params, task):
    """Takes its time, and stops at once when it is cancelled."""
    seconds = float(params.get("seconds", 60))
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        task.progress((time.monotonic() - began) / seconds, "reading")
        task.sleep(0.1)
    return {"read": True}


if __name__ == "__main__":
    HEARTBEAT_SECONDS = float(os.environ.get("HEARTBEAT_INTERVAL", HEARTBEAT_SECONDS))
    worker.run(float(os.environ.get("WORKER_SHUTDOWN_TIMEOUT", "30")))
