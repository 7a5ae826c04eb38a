-- The span that a call belongs to, by W3C's Trace Context.
ALTER TABLE call ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';
ALTER TABLE call ADD COLUMN tracestate TEXT NOT NULL DEFAULT '';
