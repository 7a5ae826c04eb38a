package tool

import (
	"cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// plan publishes that the call was proposed and planned: from then on it will get a result. It does nothing for a call that was planned
// before it was parked.
func plan(c *call) {
	w := c.w
	c.args = []byte(c.Arguments)
	if c.Parked != nil {
		return
	}
	hash := digest.ArgsPreview(hashedText(c), w.r.hash, w.r.opts.HashKey)
	if c.ParseError == "" {
		c.emit(&event.ToolCallProposed{ToolCallID: c.ID, ToolName: c.tool, Seq: c.seq, Dialect: cmp.Or(c.Dialect, "native"), DeprecatedSyntax: c.Deprecated,
			Recovered: c.Recovered, Client: c.foreign, ArgsBytes: len(c.Arguments), ArgsPreviewHash: hash, RawName: cmp.Or(c.Written, c.Name), RawArgs: c.Arguments})
	}
	planned := &event.ToolCallPlanned{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, ArgsPreviewHash: hash}
	if c.entry != nil {
		planned.ArgsSchemaVersion = c.entry.spec.SchemaVersion
	}
	c.emit(planned)
}

// hashedText returns the text for args_preview_hash: the object with which the call is executed, so that equal calls have equal hashes.
// Blank text and null count as {}. If repair is on, it is the repaired text.
func hashedText(c *call) []byte {
	if blank(c.Arguments) {
		return []byte("{}")
	}
	if w := c.w; w.settings.Repair != lathe.RepairOff && len(c.args) <= w.limits.MaxToolArgsBytes {
		if object, _, ok := rawjson.RepairObject(trim(c.args)); ok {
			return object
		}
	}
	return c.args
}

// maxCause is the maximum length of the cause of a failure in events, in bytes.
const maxCause = 200

// record is stage 14. It publishes the result before the model receives it.
func record(c *call) {
	if c.code == "" {
		c.code = c.toolCode // the output is an error of the tool itself
	}
	withdrawApproval(c)
	if c.w.secrets.store != nil && len(c.detail) > 0 {
		c.detail = c.w.secrets.hide(c, c.detail)
	}
	c.content = answer(c)
	if c.ran || c.source == fromCache {
		executed := &event.ToolCallExecuted{ToolCallID: c.ID, ToolName: c.tool, Seq: c.seq, Success: c.code == "",
			LatencyMS: c.latency.Milliseconds(), OutputTruncated: c.truncated, OutputSizeBytes: c.size, Cached: c.source == fromCache, Attempts: c.attempts}
		if c.rc != 0 {
			executed.RC = new(c.rc)
		}
		if child := c.child; child != nil {
			executed.ChildRunID, executed.ChildUsage, executed.ChildCost = child.RunID, new(child.Usage), child.Cost
		}
		c.emit(executed)
	}
	result := &event.ToolCallResult{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, Status: "ok", LatencyMS: c.latency.Milliseconds(),
		Client: c.foreign, Repaired: c.repair != "", Repair: c.repair, PolicyRule: c.verdict.Rule, Limit: c.limitKey, Result: c.content, Blobs: c.blobs}
	if c.code != "" {
		result.Status, result.ErrorType, result.Message, result.Cause = "error", c.code, texts[c.code], text.Cut(c.cause, maxCause)
	}
	if c.judged {
		result.PolicyDecision = c.verdict.Decision.String()
	}
	c.emit(result)
}
