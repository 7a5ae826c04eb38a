package tool

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// plan gives the call its place in the run: from here on it is going to be answered. A call that
// was planned before it was parked is not planned again.
func (w *Work) plan(c *call) {
	c.args = c.lane.bytesOf(c.Arguments)
	if c.Parked != nil {
		return
	}
	f := c.facts
	var space [64]byte
	text, own := w.hashed(c)
	sum, flat := digest.AppendArgsPreview(space[:0], text, w.r.hash, w.r.opts.HashKey)
	c.checked = flat && own && w.limits.MaxJSONDepth >= digest.FlatDepth && w.limits.MaxJSONKeys >= digest.FlatKeys
	hash := c.lane.keep(sum)
	if c.ParseError == "" {
		dialect := c.Dialect
		if dialect == "" {
			dialect = "native"
		}
		f.proposed = lathe.ToolCallProposed{ToolCallID: c.ID, ToolName: c.tool, Seq: c.seq, Dialect: dialect, DeprecatedSyntax: c.Deprecated,
			Recovered: c.Recovered, Client: c.foreign, ArgsBytes: len(c.Arguments), ArgsPreviewHash: hash, RawName: c.Name, RawArgs: c.Arguments}
		c.emit(&f.proposed)
	}
	f.planned = lathe.ToolCallPlanned{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, ArgsPreviewHash: hash}
	if c.entry != nil {
		f.planned.ArgsSchemaVersion = c.entry.spec.SchemaVersion
	}
	c.emit(&f.planned)
}

// hashed returns the text that args_preview_hash is made of: the object that the call is executed with, so that equal
// calls have equal hashes. Blank text and null count as {}, and a fence or a string around an object does not count
// where repair takes it off. own reports whether it is the argument text as it stands.
func (w *Work) hashed(c *call) (text []byte, own bool) {
	if len(c.args) > 0 && c.args[0] == '{' {
		return c.args, true
	}
	if blank(c.Arguments) {
		return []byte("{}"), false
	}
	if w.settings.Repair != lathe.RepairOff && len(c.args) <= w.limits.MaxToolArgsBytes {
		if inner, ok := rawjson.UnwrapObject(trim(c.args)); ok {
			return inner, false
		}
	}
	return c.args, true
}

// maxCause bounds the cause of a failure in events, in bytes.
const maxCause = 200

// record is stage 14: the result is told to those who keep it before the model is.
func (w *Work) record(c *call) {
	if c.code == "" {
		c.code = c.toolCode // the tool's own error, now that all else went well
	}
	w.withdraw(c)
	if w.r.vault != nil && len(c.detail) > 0 {
		c.detail = w.hide(c, c.detail)
	}
	c.content = w.answer(c)
	f := c.facts
	if c.ran || c.cached {
		f.executed = lathe.ToolCallExecuted{ToolCallID: c.ID, ToolName: c.tool, Seq: c.seq, Success: c.code == "",
			LatencyMS: c.latency.Milliseconds(), OutputTruncated: c.truncated, OutputSizeBytes: c.size, Cached: c.cached, Attempts: c.attempts}
		if c.rc != 0 {
			rc := c.rc
			f.executed.RC = &rc
		}
		if child := c.child; child != nil {
			usage := child.Usage
			f.executed.ChildRunID, f.executed.ChildUsage, f.executed.ChildCost = child.RunID, &usage, child.Cost
		}
		c.emit(&f.executed)
	}
	f.result = lathe.ToolCallResult{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, Status: "ok", LatencyMS: c.latency.Milliseconds(),
		Client: c.foreign, Repaired: c.repair, PolicyRule: c.verdict.Rule, Limit: c.limitKey, Result: c.content, Blobs: c.blobs}
	if c.code != "" {
		f.result.Status, f.result.ErrorType, f.result.Message, f.result.Cause = "error", c.code, textOf(c.code), clip(c.cause, maxCause)
	}
	if c.judged {
		f.result.PolicyDecision = c.verdict.Decision.String()
	}
	c.emit(&f.result)
}
