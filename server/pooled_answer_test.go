package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
)

// echoing is a transport whose answers have the question's text.
func echoing(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(body), `"content":"`)
	text, _, _ := strings.Cut(rest, `"`)
	answer := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + text +
		`"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)), Request: r}, nil
}

// A late writer fails its write, and reads the body afterwards, as the writer of a connection may.
type late struct {
	*httptest.ResponseRecorder
	got []byte
}

func (l *late) Write(b []byte) (int, error) {
	l.got = b
	return 0, errors.New("the stream is closed")
}

// Buffers of answers are used again: each client gets its own answer, also beside clients whose connection fails while it is written.
func TestWholeAnswersShareNoBuffer(t *testing.T) {
	t.Parallel()
	for _, tools := range []bool{false, true} {
		t.Run(fmt.Sprint("tools ", tools), func(t *testing.T) {
			t.Parallel()
			g := benchGateway(t, &provider.Options{BaseURL: "http://127.0.0.1:1/v1", Transport: transportFunc(echoing)}, tools, true)
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					var failed []*late
					for k := range 30 {
						text := strings.Repeat(fmt.Sprintf("word%d.%d ", i, k), 1+k*20)
						r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/chat/completions", strings.NewReader(ask("m", text, "")))
						r.Header.Set("Content-Type", "application/json")
						if k%3 == 0 {
							w := &late{ResponseRecorder: httptest.NewRecorder()}
							g.ServeHTTP(w, r)
							failed = append(failed, w)
							continue
						}
						w := httptest.NewRecorder()
						g.ServeHTTP(w, r)
						if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"content":"`+strings.TrimSpace(text)) {
							t.Errorf("%d: %.200s, want %.40s", w.Code, w.Body, text)
						}
					}
					for k, w := range failed {
						if text := fmt.Sprintf(`"content":"word%d.%d `, i, k*3); !strings.Contains(string(w.got), text) {
							t.Errorf("the body of a failed write became %.200s", w.got)
						}
					}
				})
			}
			all.Wait()
			if !reflect.DeepEqual(server.OptionsOfNone(), server.NewOptionsOfNone()) {
				t.Error("a request has changed the options that others share")
			}
		})
	}
}
