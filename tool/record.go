package tool

import (
	"cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// plan publishes that the call was proposed and planned: from here on it will be answered. A call that was planned before
// it was parked is not planned again.
func plan(c *call) {
	w := c.w
	c.args = c.scratch.bytesOf(c.Arguments)
	if c.Parked != nil {
		return
	}
	k := c.kept
	var space [64]byte
	text, own := hashedText(c)
	sum, flat := digest.AppendArgsPreview(space[:0], text, w.r.hash, w.r.opts.HashKey)
	if own && !flat && w.settings.Repair != lathe.RepairOff && len(text) <= w.limits.MaxToolArgsBytes {
		if object, _, ok := rawjson.RepairObject(trim(text)); ok {
			sum, _ = digest.AppendArgsPreview(space[:0], object, w.r.hash, w.r.opts.HashKey)
		}
	}
	c.checked = flat && own && w.limits.MaxJSONDepth >= digest.FlatDepth && w.limits.MaxJSONKeys >= digest.FlatKeys
	hash := c.scratch.keep(sum)
	if c.ParseError == "" {
		dialect := c.Dialect
		if dialect == "" {
			dialect = "native"
		}
		k.proposed = event.ToolCallProposed{ToolCallID: c.ID, ToolName: c.tool, Seq: c.seq, Dialect: dialect, DeprecatedSyntax: c.Deprecated,
			Recovered: c.Recovered, Client: c.foreign, ArgsBytes: len(c.Arguments), ArgsPreviewHash: hash, RawName: cmp.Or(c.Written, c.Name), RawArgs: c.Arguments}
		c.emit(&k.proposed)
	}
	k.planned = event.ToolCallPlanned{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, ArgsPreviewHash: hash}
	if c.entry != nil {
		k.planned.ArgsSchemaVersion = c.entry.spec.SchemaVersion
	}
	c.emit(&k.planned)
}

// hashedText returns the text that args_preview_hash is made of: the object that the call is executed with, so that equal
// calls have equal hashes. Blank text and null count as {}, and what repair mends does not count
// where it is on. own reports whether it is the argument text as it stands.
func hashedText(c *call) (text []byte, own bool) {
	w := c.w
	if len(c.args) > 0 && c.args[0] == '{' {
		return c.args, true
	}
	if blank(c.Arguments) {
		return []byte("{}"), false
	}
	if w.settings.Repair != lathe.RepairOff && len(c.args) <= w.limits.MaxToolArgsBytes {
		if object, _, ok := rawjson.RepairObject(trim(c.args)); ok {
			return object, false
		}
	}
	return c.args, true
}

// maxCause bounds the cause of a failure in events, in bytes.
const maxCause = 200

// record is stage 14. It publishes the result, before the model gets it.
func record(c *call) {
	if c.code == "" {
		c.code = c.toolCode // the tool's own error: every stage proceeded
	}
	withdrawApproval(c)
	if c.w.secrets.store != nil && len(c.detail) > 0 {
		c.detail = c.w.secrets.hide(c, c.detail)
	}
	c.content = answer(c)
	k := c.kept
	if c.ran || c.source == fromCache {
		k.executed = event.ToolCallExecuted{ToolCallID: c.ID, ToolName: c.tool, Seq: c.seq, Success: c.code == "",
			LatencyMS: c.latency.Milliseconds(), OutputTruncated: c.truncated, OutputSizeBytes: c.size, Cached: c.source == fromCache, Attempts: c.attempts}
		if c.rc != 0 {
			rc := c.rc
			k.executed.RC = &rc
		}
		if child := c.child; child != nil {
			usage := child.Usage
			k.executed.ChildRunID, k.executed.ChildUsage, k.executed.ChildCost = child.RunID, &usage, child.Cost
		}
		c.emit(&k.executed)
	}
	k.result = event.ToolCallResult{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, Status: "ok", LatencyMS: c.latency.Milliseconds(),
		Client: c.foreign, Repaired: c.repair != "", Repair: c.repair, PolicyRule: c.verdict.Rule, Limit: c.limitKey, Result: c.content, Blobs: c.blobs}
	if c.code != "" {
		k.result.Status, k.result.ErrorType, k.result.Message, k.result.Cause = "error", c.code, textOf(c.code), text.Cut(c.cause, maxCause)
	}
	if c.judged {
		k.result.PolicyDecision = c.verdict.Decision.String()
	}
	c.emit(&k.result)
}
