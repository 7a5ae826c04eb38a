package server_test

import (
	"strings"
	"testing"
)

const twoTools = "What is 7 + 35, and what time is it in Tokyo?"

func TestChatRunsServerToolsUnseen(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	whole := f.complete(ask("sim/demo", twoTools, ""))
	m := whole.Choices[0].Message
	if !strings.Contains(m.Content, "42") || len(m.ToolCalls) > 0 || *whole.Choices[0].FinishReason != "stop" {
		t.Errorf("got %+v, want an answer and no calls", whole)
	}
	if whole.Lathe == nil || whole.Lathe.Reason != "answered" || len(whole.Lathe.ToolCalls) != 2 || !whole.Lathe.ToolCalls[0].Executed || whole.Lathe.RunID == "" {
		t.Errorf("report %+v", whole.Lathe)
	}
	s := f.streamed(ask("sim/demo", twoTools, `,"stream":true,"stream_options":{"include_usage":true}`))
	if s.Content != m.Content || s.finish != "stop" || !s.done || len(s.ToolCalls) > 0 {
		t.Errorf("streamed %+v, want what is not streamed: %q", s, m.Content)
	}
	if s.usages != 1 || s.usage != whole.Usage.Total || s.usage == 0 {
		t.Errorf("usage %d in %d chunks, want %d in one", s.usage, s.usages, whole.Usage.Total)
	}
	if s.report == nil || len(s.report.ToolCalls) != 2 {
		t.Errorf("the last chunk has no report: %v", s.frames)
	}
}
