package doctor_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/sim"
)

// closing answers with the simulated model and closes each connection, without a word in the header, when the next
// request comes on it.
func closing(t *testing.T, lost func(n int) bool) (base string) {
	t.Helper()
	h := sim.New(nil).Handler()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	var n atomic.Int32
	one := func(conn net.Conn) {
		defer conn.Close()
		r := bufio.NewReader(conn)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if lost != nil && lost(int(n.Add(1))) {
			_, _ = io.Copy(io.Discard, req.Body)
			return
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		resp := w.Result()
		resp.ContentLength = int64(w.Body.Len())
		_ = resp.Write(conn)
		_, _ = http.ReadRequest(r)
	}
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { one(conn) })
		}
	})
	return "http://" + l.Addr().String() + "/v1"
}

// A server that closes connections which it could keep is healthy.
func TestDoctorTakesClosedConnectionsForHealthy(t *testing.T) {
	t.Parallel()
	rep := run(t, doctor.Target{BaseURL: closing(t, nil)})
	if rep.Broken() || rep.Count(doctor.Warning) > 0 {
		t.Errorf("got %+v", rep.Findings)
	}
}

// A probe whose connection was lost is made once more, so that its findings do not depend on chance.
func TestDoctorRepeatsLostProbes(t *testing.T) {
	t.Parallel()
	rep := run(t, doctor.Target{BaseURL: closing(t, func(n int) bool { return n == 5 })})
	if _, ok := rep.Find("connection-lost-once"); !ok || rep.Broken() {
		t.Errorf("got %+v", rep.Findings)
	}
	rep = run(t, doctor.Target{BaseURL: closing(t, func(n int) bool { return n > 4 && n < 7 })})
	if _, ok := rep.Find("connection-lost"); !ok {
		t.Errorf("got %+v", rep.Findings)
	}
}

// completions answers each request for a completion with a stream that ends so.
func completions(text, finish string, tokens int) tripper {
	sim := overSim(func(http.Header, []byte) (int, string) { return 0, "" })
	return func(path string, h http.Header, body []byte) (int, string, string) {
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			return sim(path, h, body)
		}
		return 200, "text/event-stream", fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":null}]}`+"\n\n"+
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":%q}],"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":1}}`+"\n\ndata: [DONE]\n\n", text, finish, tokens)
	}
}

// The doctor distinguishes a model that does not stop from a server that stops an answer.
func TestDoctorDistinguishesRamblingFromTheServersLimit(t *testing.T) {
	t.Parallel()
	if rep := run(t, doctor.Target{Transport: completions("and so on", "length", 1024)}); rep.Broken() {
		t.Errorf("a model that rambles: %v", ids(rep))
	} else if _, ok := rep.Find("rambles"); !ok {
		t.Errorf("a model that rambles: %v", ids(rep))
	}
	if rep := run(t, doctor.Target{Transport: completions("and so on", "length", 100)}); !rep.Broken() {
		t.Errorf("a server that stops at 100 tokens: %v", ids(rep))
	}
}

// An answer that is still coming when the time is over is not a hanging server.
func TestDoctorDoesNotCallASlowAnswerAHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := overSim(func(http.Header, []byte) (int, string) { return 0, "" })
		rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: "http://h/v1", Model: sim.DemoModel, Transport: tripperFunc(func(req *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			if !bytes.Contains(body, []byte(`"tool_choice":"required"`)) {
				req.Body = io.NopCloser(bytes.NewReader(body))
				return h.RoundTrip(req)
			}
			pr, pw := io.Pipe()
			go func() {
				for req.Context().Err() == nil {
					time.Sleep(time.Second)
					_, _ = io.WriteString(pw, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"and "},"finish_reason":null}]}`+"\n\n")
				}
				pw.CloseWithError(req.Context().Err())
			}()
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: pr, Request: req}, nil
		})}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := rep.Find("slow"); !ok || rep.Broken() {
			t.Errorf("found %v", ids(rep))
		}
	})
}

// The name of a model is compared as Ollama compares it, and a wrong one is reported with the known names.
func TestDoctorKnowsTheServersNames(t *testing.T) {
	t.Parallel()
	list := func(names ...string) tripper {
		sim := overSim(func(http.Header, []byte) (int, string) { return 0, "" })
		return func(path string, h http.Header, body []byte) (int, string, string) {
			if strings.HasSuffix(path, "/models") {
				var items []string
				for _, n := range names {
					items = append(items, fmt.Sprintf(`{"id":%q,"object":"model"}`, n))
				}
				return 200, "application/json", `{"object":"list","data":[` + strings.Join(items, ",") + `]}`
			}
			if bytes.Contains(body, []byte(`"model":"nosuch"`)) {
				return 400, "application/json", `{"error":{"code":400,"message":"model 'nosuch' not found","type":"invalid_request_error"}}`
			}
			return sim(path, h, body)
		}
	}
	if rep := run(t, doctor.Target{Transport: list(sim.DemoModel + ":latest")}); slices.Contains(ids(rep), "model-not-listed") {
		t.Errorf("found %v", ids(rep))
	}
	if f, ok := run(t, doctor.Target{Transport: list("qwen3", "gemma")}).Find("model-not-listed"); !ok || f.Detail != "it lists qwen3, gemma" {
		t.Errorf("got %+v", f)
	}
	if f, ok := run(t, doctor.Target{Model: "nosuch", Transport: list("qwen3", "gemma")}).Find("model-unknown"); !ok || f.Detail != "model 'nosuch' not found; it lists qwen3, gemma" {
		t.Errorf("got %+v", f)
	}
}

// A server that loads its model is waited for.
func TestDoctorWaitsForALoadingServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: "http://h/v1", Model: sim.DemoModel, Transport: overLoading(started.Add(100 * time.Second))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := rep.Find("loading"); !ok || rep.Broken() || rep.Count(doctor.Warning) > 0 || time.Since(started) < 100*time.Second {
			t.Errorf("found %v after %v", ids(rep), time.Since(started))
		}
	})
}

func overLoading(until time.Time) tripper {
	sim := overSim(func(http.Header, []byte) (int, string) { return 0, "" })
	return func(path string, h http.Header, body []byte) (int, string, string) {
		if time.Now().Before(until) {
			return 503, "application/json", `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`
		}
		return sim(path, h, body)
	}
}

// A server of plain HTTP under https:// is reported at once.
func TestDoctorNamesAPlainServer(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	_, err := doctor.Run(t.Context(), doctor.Target{BaseURL: strings.Replace(srv.URL, "http:", "https:", 1), Model: "m"}, nil)
	var none *doctor.UnreachableError
	if !errors.As(err, &none) || !none.Mistake || !strings.Contains(err.Error(), "write http://") {
		t.Errorf("got %v", err)
	}
}
