package loop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

func TestRunLabelsAreBounded(t *testing.T) {
	t.Parallel()
	many := func(n int) map[string]string {
		labels := map[string]string{}
		for i := range n {
			labels[fmt.Sprint("label", i)] = "v"
		}
		return labels
	}
	name := func(n int) map[string]string { return map[string]string{strings.Repeat("n", n): "v"} }
	value := func(n int) map[string]string { return map[string]string{"n": strings.Repeat("v", n)} }
	for what, tc := range map[string]struct {
		labels map[string]string
		want   string // of the error, "" where the run goes on
	}{
		"none":                {nil, ""},
		"one less":            {many(loop.MaxLabels - 1), ""},
		"as many as may be":   {many(loop.MaxLabels), ""},
		"one more":            {many(loop.MaxLabels + 1), "33 labels, where 32 are allowed"},
		"no name":             {map[string]string{"": "v"}, "a label has no name"},
		"a short name":        {name(loop.MaxLabelNameBytes - 1), ""},
		"a long name":         {name(loop.MaxLabelNameBytes), ""},
		"a longer name":       {name(loop.MaxLabelNameBytes + 1), "the name of a label has 65 bytes"},
		"no value":            {value(0), ""},
		"a short value":       {value(loop.MaxLabelValueBytes - 1), ""},
		"a long value":        {value(loop.MaxLabelValueBytes), ""},
		"a longer value":      {value(loop.MaxLabelValueBytes + 1), `the label "n" has 257 bytes`},
		"a graph":             {map[string]string{"graph_run_id": "g", "graph_name": "n", "graph_version": "1"}, ""},
		"a graph, no run":     {map[string]string{"graph_name": "n"}, ""},
		"a run of no graph":   {map[string]string{"graph_run_id": "g", "graph_version": "1"}, "needs the label graph_name"},
		"a run, no version":   {map[string]string{"graph_run_id": "g", "graph_name": "n"}, "needs the label graph_version"},
		"a run, an empty one": {map[string]string{"graph_run_id": "g", "graph_name": "n", "graph_version": ""}, "needs the label graph_version"},
	} {
		m := &script{turns: []turn{textTurn("ok")}}
		in := user("x")
		in.Run.Labels = tc.labels
		res, events := collect(t, t.Context(), newLoop(t, m, nil), in)
		checkRun(t, res, events)
		if tc.want == "" {
			if res.Reason != lathe.ReasonAnswered {
				t.Errorf("%s: %s, %v", what, res.Reason, res.Err)
			}
			continue
		}
		if res.Reason != lathe.ReasonInternal || lathe.CodeOf(res.Err) != lathe.CodeInvalidRequest || !strings.Contains(res.Err.Error(), tc.want) ||
			len(m.requests()) != 0 || types(events) != "RunStarted RunFinished" {
			t.Errorf("%s: %s, %v, %s", what, res.Reason, res.Err, types(events))
		}
	}
}

func TestRunFromNothingIsABadRequest(t *testing.T) {
	t.Parallel()
	for what, in := range map[string]*loop.Input{"nil": nil, "zero": {}, "no messages": {Messages: []lathe.Message{}}} {
		m := &script{turns: []turn{textTurn("ok")}}
		l := newLoop(t, m, nil, echo("echo"))
		res, events := collect(t, t.Context(), l, in)
		if res.Reason != lathe.ReasonInternal || !strings.Contains(fmt.Sprint(res.Err), "there are no messages") || types(events) != "RunStarted RunFinished" {
			t.Errorf("%s: %s, %v, %s", what, res.Reason, res.Err, types(events))
		}
		if end := all[*event.RunFinished](events)[0]; end.ErrorCode != "invalid_request" || end.Turns != 0 {
			t.Errorf("%s: %+v", what, end)
		}
		if _, err := l.Do(t.Context(), in); lathe.CodeOf(err) != lathe.CodeInvalidRequest || len(m.requests()) != 0 {
			t.Errorf("%s: %v, %d requests", what, err, len(m.requests()))
		}
	}
}
