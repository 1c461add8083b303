"""Reads Prometheus text on its standard input as Prometheus' own client does; tells in JSON what it found, and which names,
units and kinds the MCP conventions want."""

import json
import sys

from opentelemetry.semconv._incubating.metrics import mcp_metrics
from prometheus_client.parser import text_string_to_metric_families


class Meter:
    """Takes down what the conventions ask a meter for."""

    def __init__(self):
        self.asked = {}

    def create_histogram(self, name, description, unit):
        self.asked[name] = {"kind": "histogram", "unit": unit, "about": description}


text = sys.stdin.read()
families = {}
for family in text_string_to_metric_families(text):
    assert family.name not in families, f"{family.name} twice"
    samples = {}
    for sample in family.samples:
        key = (sample.name, tuple(sorted(sample.labels.items())))
        assert key not in samples, f"{key} twice"
        samples[key] = sample.value
    if family.type == "histogram":
        for (name, labels), value in samples.items():
            if name.endswith("_count"):
                inf = (family.name + "_bucket", tuple(sorted((*labels, ("le", "+Inf")))))
                assert samples[inf] == value, f"{name} {labels}: the last bucket holds all"
    families[family.name] = {
        "kind": family.type,
        "about": family.documentation,
        "samples": [
            {"name": name, "labels": dict(labels), "value": value} for (name, labels), value in samples.items()
        ],
    }

meter = Meter()
for made in vars(mcp_metrics).values():
    if callable(made) and made.__name__.startswith("create_mcp_"):
        made(meter)
json.dump({"families": families, "conventions": meter.asked}, sys.stdout)
