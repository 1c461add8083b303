"""Spans of this process, sent to the receiver that OTLP_RECEIVER names, each when it ends."""

import os
import urllib.request

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult


class Sent(SpanExporter):
    def export(self, spans):
        request = urllib.request.Request(
            os.environ["OTLP_RECEIVER"] + "/v1/traces",
            data=encode_spans(spans).SerializeToString(),
            headers={"content-type": "application/x-protobuf"},
        )
        urllib.request.urlopen(request, timeout=10).close()
        return SpanExportResult.SUCCESS


def begin(name):
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(SimpleSpanProcessor(Sent()))
    trace.set_tracer_provider(provider)
