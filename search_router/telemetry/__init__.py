"""Traces, metrics and structured logs, off by default. Only this package imports OpenTelemetry, and only when a setting wants it.

opening      from the configuration to an observer, and the bounded end
observer     the observer that tells what is switched on
watch        a span around a piece of work
calls        what is seen of a message, a stage, an expert, a call to another system
requests     what is seen of a whole request
words        names of spans, attributes and metrics, and the conventions that they follow
context      the trace context from clients and to other systems
spans        the tracer and its exporter
metrics      the instruments and their exporters
exposition   the metrics as a page in Prometheus' text format
events       JSON lines on standard error
"""
