"""A receiver of OTLP over HTTP and over gRPC, made of the published protobufs. Says its addresses, then tells what it was
sent: GET /told at that of HTTP. Its arguments are the files of a certificate and of its key, for gRPC over TLS."""

import concurrent.futures
import http.server
import json
import pathlib
import sys
import threading

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

LOCK = threading.Lock()
SPANS, METRICS, RESOURCES, HEADERS = [], {}, [], []


def plain(attributes):
    told = {}
    for attribute in attributes:
        assert attribute.key not in told, f"{attribute.key} twice"
        value = attribute.value
        told[attribute.key] = getattr(value, value.WhichOneof("value"))
    return told


def traces(sent):
    for of_resource in sent.resource_spans:
        resource = plain(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield {
                    "service": resource["service.name"],
                    "scope": of_scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "state": span.trace_state,
                    "name": span.name,
                    "kind": trace_pb2.Span.SpanKind.Name(span.kind),
                    "status": trace_pb2.Status.StatusCode.Name(span.status.code),
                    "message": span.status.message,
                    "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
                    "attributes": plain(span.attributes),
                    "events": [event.name for event in span.events],
                }


def metrics(sent):
    for of_resource in sent.resource_metrics:
        RESOURCES.append(plain(of_resource.resource.attributes))
        for of_scope in of_resource.scope_metrics:
            for metric in of_scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                yield metric.name, {
                    "unit": metric.unit,
                    "about": metric.description,
                    "kind": kind,
                    "monotonic": getattr(data, "is_monotonic", None),
                    "points": [
                        {
                            "attributes": plain(point.attributes),
                            "count": getattr(point, "count", None),
                            "bounds": list(getattr(point, "explicit_bounds", [])),
                        }
                        for point in data.data_points
                    ],
                }
    assert metrics_pb2.AggregationTemporality.Name(2) == "AGGREGATION_TEMPORALITY_CUMULATIVE"


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.headers["content-type"] == "application/x-protobuf", self.headers
        with LOCK:
            HEADERS.append({name.lower(): value for name, value in self.headers.items()})
            if self.path == "/v1/traces":
                SPANS.extend(traces(trace_service_pb2.ExportTraceServiceRequest.FromString(body)))
            elif self.path == "/v1/metrics":
                METRICS.update(metrics(metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)))
            else:
                return self.answer(404, b"")
        # An empty message of either kind: everything was taken.
        self.answer(200, b"")

    def do_GET(self):
        with LOCK:
            told = {"spans": SPANS, "metrics": METRICS, "resources": RESOURCES, "headers": HEADERS}
            self.answer(200, json.dumps(told).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def Export(self, sent, context):
        with LOCK:
            HEADERS.append(dict(context.invocation_metadata()))
            SPANS.extend(traces(sent))
        return trace_service_pb2.ExportTraceServiceResponse()


class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def Export(self, sent, context):
        with LOCK:
            HEADERS.append(dict(context.invocation_metadata()))
            METRICS.update(metrics(sent))
        return metrics_service_pb2.ExportMetricsServiceResponse()


called = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(), called)
metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Metrics(), called)
certificate, key = (pathlib.Path(file).read_bytes() for file in sys.argv[1:])
secure_port = called.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
plain_port = called.add_insecure_port("127.0.0.1:0")
called.start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
addresses = {
    "http": f"http://127.0.0.1:{server.server_port}",
    "grpc": f"http://127.0.0.1:{plain_port}",
    "grpcs": f"https://localhost:{secure_port}",
}
print(json.dumps(addresses), flush=True)
server.serve_forever()
