package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	served "github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/tool"
)

// everyWay runs a test with the SDK's client over both transports.
func everyWay(t *testing.T, r func() *rig, opts func() *mcp.ClientOptions, do func(t *testing.T, r *rig, s *mcp.ClientSession)) {
	t.Helper()
	if opts == nil {
		opts = func() *mcp.ClientOptions { return nil }
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		r := r()
		r.t = t
		do(t, r, r.connectStdio(opts()))
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		r := r()
		r.t = t
		do(t, r, r.connect(r.web(), opts()))
	})
}

func TestListShowsWhatToolsDo(t *testing.T) {
	t.Parallel()
	once := writer("once", echo)
	once.spec.Effect, once.spec.Labels = lathe.Idempotent, []string{lathe.LabelCanExfiltrate}
	typed := reader("typed", returns(`{"n":1}`))
	typed.spec.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	part := reader("part", returns(`{"n":1,"m":2}`)) // what is shown of it is not what its schema says
	part.spec.OutputSchema, part.spec.Allowlist = typed.spec.OutputSchema, []string{"m"}
	scalar := reader("scalar", returns(`1`))
	scalar.spec.OutputSchema = json.RawMessage(`{"type":"integer"}`)
	bare := reader("bare", echo)
	bare.spec.Schema = nil
	untyped := reader("untyped", echo)
	untyped.spec.Schema = json.RawMessage(`{ "properties":{"a":{"type":"string"}}}`)
	hidden := reader("hidden", echo)
	hidden.spec.Hidden = true
	client := reader("clients", echo)
	client.spec.Owner = lathe.OwnerClient
	everyWay(t, func() *rig {
		return newRig(t, nil, nil, reader("reads", echo), writer("writes", echo), once, typed, part, scalar, bare, untyped, hidden, client)
	}, nil, func(t *testing.T, _ *rig, s *mcp.ClientSession) {
		res, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range res.Tools {
			in, _ := json.Marshal(x.InputSchema)
			out, _ := json.Marshal(x.OutputSchema)
			h := x.Annotations
			got = append(got, fmt.Sprintf("%s %t %t %t %t %s %s", x.Name, h.ReadOnlyHint, h.IdempotentHint, h.DestructiveHint != nil && *h.DestructiveHint, h.OpenWorldHint != nil && *h.OpenWorldHint, in, out))
		}
		object, schema := `{"type":"object"}`, `{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`
		want := []string{
			`bare true true false false {"additionalProperties":false,"type":"object"} null`,
			"once false true true true " + object + " null",
			"part true true false false " + object + " null",
			"reads true true false false " + object + " null",
			"scalar true true false false " + object + " null",
			"typed true true false false " + object + " " + schema,
			`untyped true true false false {"properties":{"a":{"type":"string"}},"type":"object"} null`,
			"writes false false true false " + object + " null",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "clients"}); err == nil {
			t.Errorf("a tool of the client was called: %v", r)
		}
	})
}

func TestListHasPages(t *testing.T) {
	t.Parallel()
	var tools []lathe.Tool
	for i := range 25 {
		tools = append(tools, reader(fmt.Sprintf("t%02d", i), echo))
	}
	everyWay(t, func() *rig { return newRig(t, nil, &served.Options{PageSize: 10}, tools...) }, nil, func(t *testing.T, _ *rig, s *mcp.ClientSession) {
		var names []string
		pages, cursor := 0, ""
		for {
			res, err := s.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, x := range res.Tools {
				names = append(names, x.Name)
			}
			if cursor = res.NextCursor; cursor == "" {
				break
			}
		}
		if pages != 3 || len(names) != 25 || !slices.IsSorted(names) {
			t.Errorf("%d pages, %v", pages, names)
		}
	})
}

func TestCallShowsWhatTheToolReturned(t *testing.T) {
	t.Parallel()
	png, wav, note := []byte("png"), []byte("wav"), []byte("a note")
	tests := []struct {
		name       string
		call       body
		structured string
		want       []mcp.Content
		isError    bool
	}{
		{"object", returns(`{"big":12345678901234567890,"s":"<&>"}`), `{"big":12345678901234567890,"s":"<&>"}`, []mcp.Content{&mcp.TextContent{Text: `{"big":12345678901234567890,"s":"<&>"}`}}, false},
		{"text", returns(`"plain \u00e9"`), "", []mcp.Content{&mcp.TextContent{Text: "plain é"}}, false},
		{"list", returns(`[1,2]`), "", []mcp.Content{&mcp.TextContent{Text: "[1,2]"}}, false},
		{"nothing", returns(``), "", []mcp.Content{&mcp.TextContent{Text: "null"}}, false},
		{"drawing", returns(``, lathe.Blob{MediaType: "image/svg+xml", Data: []byte("<svg/>")}), "",
			[]mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "lathe:result/1", MIMEType: "image/svg+xml", Text: "<svg/>"}}}, false},
		{"image alone", returns(``, lathe.Blob{MediaType: "image/png", Data: png}), "", []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: png}}, false},
		{"text and blobs", returns(`"see"`, lathe.Blob{MediaType: "audio/wav", Data: wav}, lathe.Blob{MediaType: "text/plain; charset=utf-8", Name: "test://n", Data: note},
			lathe.Blob{MediaType: "application/pdf", Name: "x.pdf", Data: png}, lathe.Blob{URL: "https://example.com/a.png", MediaType: "image/png"}), "",
			[]mcp.Content{&mcp.TextContent{Text: "see"}, &mcp.AudioContent{MIMEType: "audio/wav", Data: wav},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://n", MIMEType: "text/plain; charset=utf-8", Text: "a note"}},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "lathe:result/3", MIMEType: "application/pdf", Blob: png}},
				&mcp.ResourceLink{URI: "https://example.com/a.png", Name: "result-4", MIMEType: "image/png"}}, false},
		{"failure", func(context.Context, json.RawMessage) (*lathe.Output, error) { return nil, errors.New("canary") },
			`{"ok":false,"error":{"code":"execution_failed","message":"The tool failed. Check the arguments and try once more, or go on without it."}}`, nil, true},
		{"its own error", func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{IsError: true, Data: json.RawMessage(`"no such file"`)}, nil
		}, `{"ok":false,"error":{"code":"execution_failed","message":"The tool failed. Check the arguments and try once more, or go on without it."},"data":"no such file"}`, nil, true},
		{"panic", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic("canary") },
			`{"ok":false,"error":{"code":"execution_failed","message":"The tool failed. Check the arguments and try once more, or go on without it."}}`, nil, true},
		{"no JSON", returns(`{`), `{"ok":false,"error":{"code":"invalid_output","message":"The tool returned something that is not a valid result. Go on without it.","reason":"unexpected_end","offset":1}}`, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			everyWay(t, func() *rig { return newRig(t, nil, nil, reader("it", tt.call)) }, nil, func(t *testing.T, _ *rig, s *mcp.ClientSession) {
				res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "it", Arguments: map[string]any{}})
				if err != nil {
					t.Fatal(err)
				}
				if res.IsError != tt.isError || strings.Contains(text(res), "canary") {
					t.Errorf("is error %t: %s", res.IsError, text(res))
				}
				got := ""
				if res.StructuredContent != nil {
					got = text(res) // the client's own form has lost digits
				}
				if diff := cmp.Diff(tt.structured, got); diff != "" {
					t.Error(diff)
				}
				if tt.want != nil {
					if diff := cmp.Diff(tt.want, res.Content); diff != "" {
						t.Error(diff)
					}
				}
			})
		})
	}
}

// Structured output that a client validates against a schema is complete, or the call is an error.
func TestOutputOfDeclaredFormIsNotCut(t *testing.T) {
	t.Parallel()
	big := returns(`{"s":"` + strings.Repeat("x", 2000) + `"}`)
	typed, free := reader("typed", big), reader("free", big)
	typed.spec.OutputSchema = json.RawMessage(`{"type":"object"}`)
	r := newRig(t, &tool.Options{Policy: allowAll, Settings: lathe.Settings{OversizeOutput: lathe.OversizeTruncate, ResultFormat: lathe.ResultEnvelope},
		Limits: lathe.Limits{MaxOutputBytes: 500}}, nil, typed, free)
	s := r.connectStdio(nil)
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "typed"})
	if err != nil || !res.IsError || res.StructuredContent != nil || !strings.Contains(text(res), "tool_output_too_large") {
		t.Errorf("typed: %v, %+v", err, res)
	}
	if res, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "free"}); err != nil || res.IsError || !strings.Contains(text(res), "output cut") {
		t.Errorf("free: %v, %+v", err, res)
	}
}

// A client whose request has a progress token gets growing progress numbers while the call runs, over both transports.
func TestProgressOfLongCalls(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"stdio", "http"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			seen := make(chan float64, 100)
			r := newRig(t, nil, &served.Options{ProgressEvery: time.Millisecond}, reader("slow", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
				last := 0.0
				for range 3 {
					select {
					case p := <-seen:
						if p <= last {
							return nil, errors.New("progress does not grow")
						}
						last = p
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				return &lathe.Output{Data: json.RawMessage(`{"seen":3}`)}, nil
			}))
			opts := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
				select {
				case seen <- n.Params.Progress:
				default:
				}
			}}
			var s *mcp.ClientSession
			if way == "stdio" {
				s = r.connectStdio(opts)
			} else {
				s = r.connect(r.web(), opts)
			}
			p := &mcp.CallToolParams{Name: "slow"}
			p.SetProgressToken("mine")
			if res, err := s.CallTool(t.Context(), p); err != nil || res.IsError {
				t.Errorf("%v, %s", err, text(res))
			}
		})
	}
}

func TestLogShowsTheFieldsOfTheCall(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	s := newRig(t, nil, nil, reader("echo", echo)).connectStdio(&mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { //nolint:staticcheck // deprecated from 2026-07-28 on, and asked for in both eras
		b, _ := json.Marshal(r.Params.Data)
		got <- string(b)
	}})
	params := &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"word": "canary"}, Meta: mcp.Meta{mcp.MetaKeyLogLevel: "info"}} //nolint:staticcheck // deprecated from 2026-07-28 on, and asked for in both eras
	if _, err := s.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ToolCallProposed", "ToolCallPlanned", "ToolCallExecuted", "ToolCallResult"} {
		if line := <-got; !strings.Contains(line, want) || strings.Contains(line, "canary") {
			t.Errorf("logged %s, want %s", line, want)
		}
	}
}

func TestClientsAreNotifiedOfOtherTools(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"stdio", "http"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil, nil)
			if err := r.set.Replace("test", []lathe.Tool{reader("first", echo)}); err != nil {
				t.Fatal(err)
			}
			notified := make(chan struct{}, 10)
			opts := &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { notified <- struct{}{} }}
			var s *mcp.ClientSession
			if way == "stdio" {
				s = r.connectStdio(opts)
			} else {
				s = r.connect(r.web(), opts)
			}
			names := func() string {
				res, err := s.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				var out []string
				for _, x := range res.Tools {
					out = append(out, x.Name)
				}
				return strings.Join(out, " ")
			}
			if got := names(); got != "first" {
				t.Errorf("at first %q", got)
			}
			for _, step := range []struct {
				tools []lathe.Tool
				want  string
			}{{[]lathe.Tool{reader("first", echo), reader("second", echo)}, "first second"}, {[]lathe.Tool{reader("second", echo)}, "second"}} {
				if err := r.set.Replace("test", step.tools); err != nil {
					t.Fatal(err)
				}
				r.server.Refresh()
				<-notified
				if got := names(); got != step.want {
					t.Errorf("then %q", got)
				}
			}
		})
	}
}

// A call of an unknown tool is answered with the protocol error invalid params, and the sinks get its events.
func TestUnknownToolIsAProtocolError(t *testing.T) {
	t.Parallel()
	everyWay(t, func() *rig { return newRig(t, nil, nil, reader("echo", echo)) }, nil, func(t *testing.T, r *rig, s *mcp.ClientSession) {
		_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "nope"})
		var je *jsonrpc.Error
		if !errors.As(err, &je) || je.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("got %v", err)
		}
		if types := r.log.types(); !slices.Contains(types, "ToolCallResult") {
			t.Errorf("it is not on record: %v", types)
		}
	})
}
