package tool_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// Reports of a tool are events while the tool executes, at most one every 100 ms, the newest first if the reader is late.
func TestProgressIsAnEventWhileTheToolExecutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		works := reader("works", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			for i := range 3 {
				tool.ReportProgress(ctx, float64(i+1), 3, "step\xff"+strings.Repeat("x", 600))
				tool.ReportProgress(ctx, 99, 3, "too soon")
				time.Sleep(time.Second)
			}
			tool.ReportProgress(ctx, math.NaN(), 3, "no number")
			return &lathe.Output{Data: json.RawMessage(`"ok"`)}, nil
		})
		w := open(t, nil, works)
		var got []event.ToolCallProgress
		w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "a", Name: "works", Arguments: "{}"}}}, func(d event.Data) {
			if p, ok := d.(*event.ToolCallProgress); ok {
				got = append(got, *p)
			}
		})
		if len(got) != 3 {
			t.Fatalf("got %d reports, want 3: %+v", len(got), got)
		}
		for i, p := range got {
			if p.ToolCallID != "a" || p.Tool != "works" || p.Done != float64(i+1) || p.Total != 3 || len(p.Message) != 500 || !strings.HasPrefix(p.Message, "step\uFFFDx") {
				t.Errorf("report %d is %+v", i, p)
			}
		}
		tool.ReportProgress(t.Context(), 1, 2, "outside of a call") // has no effect
	})
}

// A report that is cut within a secret has no part of the secret.
func TestProgressIsCutBehindItsSecrets(t *testing.T) {
	t.Parallel()
	works := reader("works", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		tool.ReportProgress(ctx, 1, 3, strings.Repeat("x", 490)+canary)
		return &lathe.Output{Data: json.RawMessage(`"ok"`)}, nil
	})
	var got []string
	open(t, keeping(), works).Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "a", Name: "works", Arguments: "{}"}}}, func(d event.Data) {
		if p, ok := d.(*event.ToolCallProgress); ok {
			got = append(got, p.Message)
		}
	})
	if len(got) != 1 || len(got[0]) != 500 || strings.Contains(got[0], canary[:6]) {
		t.Errorf("reports %q", got)
	}
}
