package server

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// panickingEncoder writes each text, and panics at the text "bad" and at raw bytes.
type panickingEncoder struct{}

func (panickingEncoder) Header(http.Header) {}

func (panickingEncoder) AppendEvent(dst []byte, e *event.Event) []byte {
	d, ok := e.Data.(*event.TextDelta)
	if !ok {
		return dst
	}
	dst = append(dst, d.Text...)
	if d.Text == "bad" {
		panic("the encoder failed")
	}
	return dst
}

func (panickingEncoder) AppendEnd(dst []byte, _ *event.Result, p *problem) []byte {
	if p == nil {
		return append(dst, "|done"...)
	}
	return append(append(dst, '|'), p.Code...)
}

func (panickingEncoder) AppendRaw([]byte, *lathe.Raw) []byte { panic("the encoder failed") }

// textModel streams texts. If the request is relayed, it passes raw bytes on instead.
type textModel struct {
	texts []string
	ended chan error // gets the error of the context at the end of each call
}

func (textModel) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Model: "m", Wire: lathe.WireOpenAIChat}
}

func (m textModel) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		defer func() { m.ended <- ctx.Err() }()
		if req.Relay != nil {
			req.Relay.Take(&lathe.Raw{Bytes: []byte("raw")})
		}
		for _, text := range m.texts {
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: text}, nil) {
				return
			}
		}
		<-ctx.Done() // the stream ends the run
		yield(lathe.Delta{}, ctx.Err())
	}
}

// If an encoder panics, the client gets what was encoded before and an internal error, nothing blocks, and the run ends.
func TestPanicOfAnEncoderEndsTheStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		texts  []string
		relay  *lathe.Relay
		status int
		want   string
	}{
		"event":       {[]string{"one ", "two ", "bad", "three"}, nil, http.StatusOK, "one two |internal_error"},
		"first event": {[]string{"bad", "one"}, nil, http.StatusInternalServerError, `"internal_error"`},
		"raw bytes":   {nil, &lathe.Relay{Wire: lathe.WireOpenAIChat, Stream: true}, http.StatusInternalServerError, `"internal_error"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eng, err := engine.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			co, err := newCore(&Options{Engine: eng})
			if err != nil {
				t.Fatal(err)
			}
			m := textModel{tt.texts, make(chan error, 1)}
			set, err := tool.NewSet()
			if err != nil {
				t.Fatal(err)
			}
			runner, err := tool.NewRunner(set, nil)
			if err != nil {
				t.Fatal(err)
			}
			l, err := loop.New(m, runner, nil)
			if err != nil {
				t.Fatal(err)
			}
			ex := &runStarter{&runViews{co}}
			c := &caller{access: access{anyone, &setup{}}}
			rec := httptest.NewRecorder()
			w := &recorder{ResponseWriter: rec, caller: c, now: co.opts.Now}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", nil)
			j := &job{loop: l, in: runinput.With(&loop.Input{Messages: []lathe.Message{lathe.User("hi")}}, runinput.Extra{Relay: tt.relay})}
			if lost := ex.stream(w, r, c, j, panickingEncoder{}); lost {
				t.Error("the run was lost to another")
			}
			if got := rec.Body.String(); rec.Code != tt.status || tt.status == http.StatusOK && got != tt.want || !strings.Contains(got, tt.want) || c.code != "internal_error" {
				t.Errorf("%d %q with code %q, want %d %q", rec.Code, got, c.code, tt.status, tt.want)
			}
			if err := <-m.ended; tt.relay == nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the run ended with %v, want that it was cancelled", err)
			}
		})
	}
}
