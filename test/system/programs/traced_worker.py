"""The example worker in a program that has set up OpenTelemetry: its API is the real one, its provider only writes down what it is told."""

import contextlib
import json
import os
import runpy
import sys

from opentelemetry import trace


def say(**fields):
    print(json.dumps(fields), file=sys.stderr, flush=True)


class WrittenSpan(trace.NonRecordingSpan):
    def __init__(self, name, parent, kind, attributes):
        context = trace.SpanContext(
            trace_id=parent.trace_id,
            span_id=int.from_bytes(os.urandom(8), "big"),
            is_remote=False,
            trace_flags=parent.trace_flags,
        )
        super().__init__(context)
        self._told = {"span": name, "kind": kind.name, "attributes": dict(attributes or {}), "status": "UNSET"}
        self._told["traceparent"] = f"00-{parent.trace_id:032x}-{parent.span_id:016x}-{parent.trace_flags:02x}"

    def is_recording(self):
        return True

    def set_status(self, status, description=None):
        self._told["status"] = status.status_code.name

    def record_exception(self, exception, *_, **__):
        self._told["exception"] = type(exception).__name__

    def end(self, end_time=None):
        say(**self._told)


class WritingTracer(trace.Tracer):
    def start_span(self, name, context=None, kind=trace.SpanKind.INTERNAL, attributes=None, **_):
        return WrittenSpan(name, trace.get_current_span(context).get_span_context(), kind, attributes)

    @contextlib.contextmanager
    def start_as_current_span(self, name, context=None, kind=trace.SpanKind.INTERNAL, attributes=None, **_):
        with trace.use_span(self.start_span(name, context, kind, attributes), end_on_exit=True) as span:
            yield span


class WritingProvider(trace.TracerProvider):
    def get_tracer(self, *_, **__):
        return WritingTracer()

    def force_flush(self, timeout_millis=0):
        say(flushed=True)
        return True


trace.set_tracer_provider(WritingProvider())
runpy.run_path(sys.argv[1], run_name="__main__")
