package loop_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/event"
)

// Nothing that a hostile model puts into the places of codes, kinds and names gets into what events,
// logs and metrics carry; but its own name, which is bounded.
func TestHostileModelWritesNothingInEventData(t *testing.T) {
	t.Parallel()
	const canary = "Canary text"
	long := strings.Repeat("x", 129)
	nan, below, inf := math.NaN(), -1.0, math.Inf(1)
	first := ask(lathe.ToolCall{ID: "a", Name: canary, Arguments: canary, Dialect: canary, ParseError: canary},
		lathe.ToolCall{ID: "b", Name: "echo", Arguments: `{}`, Dialect: canary})
	first.before = []lathe.Delta{
		{Kind: lathe.DeltaText, Text: canary},
		{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: 1, Err: &lathe.Error{Code: canary, Op: canary,
			Err: &lathe.UpstreamError{Kind: canary, Message: canary, ProviderCode: canary, RequestID: canary}}}},
		{Kind: lathe.DeltaCallStart, ID: canary, Name: canary},
		{Kind: lathe.DeltaCallArgs, Text: canary},
		{Kind: lathe.DeltaParseError, Code: canary, Text: canary},
		{Kind: lathe.DeltaKind(99), Text: canary},
	}
	first.finish.Reason, first.finish.RawReason, first.finish.Model, first.finish.ResponseID = canary, canary, canary, canary
	first.finish.UpstreamRequestID, first.finish.ProviderCost = canary, &nan
	first.finish.Faults = []lathe.Fault{{Kind: canary, Count: 1}, {Kind: "bad_line", Count: 2}, {Kind: canary + "2", Count: 3}, {Kind: "bad_line", Count: -1}}
	first.finish.Usage = lathe.Usage{InputTokens: -5, OutputTokens: 5, TotalTokens: math.MinInt64}
	second := ask(call("c", "echo", `{"n":1}`))
	second.finish.Model, second.finish.UpstreamRequestID, second.finish.ProviderCost = long, long, &below
	third := ask(call("d", "echo", `{"n":2}`))
	third.finish.ProviderCost = &inf
	last := fails(&lathe.Error{Code: canary, Op: canary, Err: &lathe.UpstreamError{Kind: canary, RequestID: canary}})
	m := &script{turns: []turn{first, second, third, last}, info: lathe.ModelInfo{Provider: canary + "\n", Model: long, Dialect: canary}}
	res, events := collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), user("x"))
	for _, e := range events {
		b, err := e.MarshalData()
		if err != nil {
			t.Fatalf("%s: %v", e.Data.EventType(), err)
		}
		if s := string(b); strings.Contains(s, "Canary") || strings.Contains(s, long) {
			t.Errorf("%s", s)
		}
	}
	if s := fmt.Sprint(res.Trace); strings.Contains(s, "Canary") || strings.Contains(s, long) {
		t.Errorf("trace %s", s)
	}
	if s := all[*event.RunStarted](events)[0]; s.Provider != "unknown" || s.Model != "unknown" || s.Dialect != "native" {
		t.Errorf("started %+v", s)
	}
	calls := all[*event.ModelCallFinished](events)
	if len(calls) != 5 || calls[0].ErrorCode != "internal" || calls[1].FinishReason != lathe.FinishUnknown {
		t.Fatalf("calls %+v", calls)
	}
	if diff := cmp.Diff([]lathe.Fault{{Kind: "other", Count: 4}, {Kind: "bad_line", Count: 2}}, calls[1].Faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if res.Usage.InputTokens != 20 || res.Usage.TotalTokens != 30 || res.Cost != 0 {
		t.Errorf("usage %+v, cost %v", res.Usage, res.Cost)
	}
	for i, e := range all[*event.ToolCallParseError](events) {
		if e.Error != lathe.CodePayloadParseError || e.Dialect != "native" {
			t.Errorf("parse error %d: %+v", i, e)
		}
	}
	if r := all[*event.ToolCallResult](events); r[0].ErrorType != lathe.CodePayloadParseError {
		t.Errorf("result %+v", r[0])
	}
	if end := all[*event.RunFinished](events)[0]; end.Reason != lathe.ReasonUpstreamError || end.ErrorCode != "internal" {
		t.Errorf("end %+v", end)
	}
	checkRun(t, res, events)
}

// What models of this module say of themselves is kept as it is.
func TestWordsOfGoodModelsAreKept(t *testing.T) {
	t.Parallel()
	good := textTurn("hi")
	good.finish.Model, good.finish.UpstreamRequestID, good.finish.ResponseID = "vendor/model:free", strings.Repeat("r", 128), "resp_1"
	good.before = nil
	for _, kind := range producedFaults(t) {
		good.finish.Faults = append(good.finish.Faults, lathe.Fault{Kind: kind, Count: 1})
	}
	info := lathe.ModelInfo{Provider: "Own server", Model: strings.Repeat("m", 128), Dialect: "qwen3-coder", Server: "model.test:80", Wire: lathe.WireMessages}
	_, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{good}, info: info}, nil), user("x"))
	if s := all[*event.RunStarted](events)[0]; s.Provider != info.Provider || s.Model != info.Model || s.Dialect != info.Dialect {
		t.Errorf("started %+v", s)
	}
	if r := all[*event.ModelCallStarted](events)[0].Request; r == nil || r.Server != info.Server || r.Wire != info.Wire || len(r.Messages) != 1 || r.Messages[0].Role != lathe.RoleUser {
		t.Errorf("request %+v", r)
	}
	f := all[*event.ModelCallFinished](events)[0]
	if f.Model != good.finish.Model || f.ResponseID != "resp_1" || f.UpstreamRequestID != good.finish.UpstreamRequestID {
		t.Errorf("finished %+v", f)
	}
	if diff := cmp.Diff(good.finish.Faults, f.Faults); diff != "" {
		t.Errorf("faults that the loop does not know (-produced +told): add them to faultKinds\n%s", diff)
	}
	for i, reason := range []lathe.FinishReason{lathe.FinishStop, lathe.FinishToolCalls, lathe.FinishLength, lathe.FinishContentFilter, lathe.FinishUnknown} {
		_, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{textTurn("x").reason(reason)}}, nil), user("x"))
		if f := all[*event.ModelCallFinished](events)[0]; f.FinishReason != reason {
			t.Errorf("%d: finish reason %q, want %q", i, f.FinishReason, reason)
		}
	}
}

// producedFaults are the kinds that the rooms which make faults name in their source, sorted.
func producedFaults(t *testing.T) []string {
	t.Helper()
	all := dialect.Anomalies{UnknownChannel: 1, ForeignRole: 1, Header: 1, Truncated: 1, Stray: 1,
		ExtraFinal: 1, AnalysisAfterFinal: 1, CommentaryAfterFinal: 1, InterleavedFinal: 1}
	var kinds []string
	for stage := range all.ParseErrors() {
		kinds = append(kinds, "harmony_parse_error."+stage)
	}
	for order := range all.UnexpectedOrder() {
		kinds = append(kinds, "harmony_unexpected_order."+order)
	}
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			kind, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, kind)
		}
	}
	for _, room := range []string{"internal/wire/openai", "provider", "transform", "sim"} {
		files, err := filepath.Glob(filepath.Join("..", room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec: // const FaultX = "x"
					for i, id := range n.Names {
						if strings.HasPrefix(id.Name, "Fault") && i < len(n.Values) {
							add(n.Values[i])
						}
					}
				case *ast.CompositeLit: // lathe.Fault{Kind: "x"}
					if sel, ok := n.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Fault" {
						for _, el := range n.Elts {
							if kv, ok := el.(*ast.KeyValueExpr); ok {
								add(kv.Value)
							}
						}
					}
				}
				return true
			})
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
