"""The client `python.py`, with its spans sent, and with baggage that must stay behind."""

import pathlib
import runpy

from opentelemetry import baggage, context

import tracing

tracing.begin("client")
context.attach(baggage.set_baggage("planted", "mk-baggage-4d1"))
runpy.run_path(str(pathlib.Path(__file__).parents[1] / "clients" / "python.py"), run_name="__main__")
