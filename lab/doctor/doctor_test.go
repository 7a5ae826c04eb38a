package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/sim"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A tripper answers requests without a network. Its body is what the server was sent.
type tripper func(path string, header http.Header, body []byte) (status int, contentType, answer string)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	status, contentType, answer := f(req.URL.Path, req.Header, body)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
}

// overSim passes on to the simulated model what change does not answer with a status of its own.
func overSim(change func(header http.Header, body []byte) (status int, message string)) tripper {
	h := sim.New(nil).Handler()
	return func(path string, header http.Header, body []byte) (int, string, string) {
		if strings.HasSuffix(path, "/completions") {
			if status, message := change(header, body); status != 0 {
				return status, "application/json", fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, message)
			}
		}
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		if len(body) == 0 {
			req.Method = http.MethodGet
		}
		h.ServeHTTP(w, req)
		return w.Code, w.Header().Get("Content-Type"), w.Body.String()
	}
}

func run(t *testing.T, target doctor.Target) *doctor.Report {
	t.Helper()
	if target.BaseURL == "" {
		target.BaseURL = "http://server.invalid/v1"
	}
	if target.Model == "" {
		target.Model = sim.DemoModel
	}
	rep, err := doctor.Run(t.Context(), target, &doctor.Options{Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// What servers refuse is found by trying, and the profile holds what mends it.
func TestDoctorFindsWhatAServerWants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, finding, setting string
		refuse                 func(body string) string // the message; "" takes the request
	}{
		{"short ids", "id-refused", "transforms.tool_call=tool_call_ids_nine_alphanumeric", func(body string) string {
			return when(strings.Contains(body, "call_lathe_doctor_0001"), "Tool call id was wrong, must be a-z, A-Z, 0-9, with a length of 9.")
		}},
		{"reasoning in the history", "reasoning-wanted", "reasoning_field=reasoning_content", func(body string) string {
			return when(strings.Contains(body, `"role":"tool"`) && !strings.Contains(body, "reasoning_content"), "missing field")
		}},
		{"signatures", "signature-wanted", "transforms.message=assistant_tool_calls_extra_content_skip_validator_if_missing", func(body string) string {
			return when(strings.Contains(body, `"role":"tool"`) && !strings.Contains(body, "thought_signature"), "Function call is missing a thought_signature.")
		}},
		{"no blank text", "content-null-wanted", "transforms.message=assistant_tool_calls_content_null_if_blank", func(body string) string {
			return when(strings.Contains(body, `"content":"\n"`), "content must not be blank")
		}},
		{"no developer", "developer-refused", "accepts.developer=no", func(body string) string {
			return when(strings.Contains(body, `"role":"developer"`), "unknown variant `developer`, expected one of `system`, `user`")
		}},
		{"one system message", "late-system-refused", "accepts.system=one", func(body string) string {
			return when(strings.Contains(body, `{"role":"system","content":"Be exact."}`), "System message must be at the beginning.")
		}},
		{"no format beside tools", "format-beside-tools", "accepts.format=alone", func(body string) string {
			return when(strings.Contains(body, `"response_format"`), "Function calling with a response mime type 'application/json' is unsupported")
		}},
		{"no user after a tool", "strict-roles", "accepts.turns=alternate", func(body string) string {
			return when(strings.Contains(body, lathe.DefaultFixEmptyFinalText), "roles must alternate")
		}},
		{"another name of the limit", "max-tokens-refused", "max_completion_tokens=true", func(body string) string {
			return when(strings.Contains(body, `"max_tokens"`), "Unsupported parameter: use 'max_completion_tokens' instead.")
		}},
		{"no stream options", "usage-refused", "include_usage=false", func(body string) string {
			return when(strings.Contains(body, "stream_options"), "Extra inputs are not permitted: stream_options")
		}},
		{"no parallel_tool_calls", "parallel-refused", "", func(body string) string {
			return when(strings.Contains(body, "parallel_tool_calls"), "unknown field")
		}},
		{"no required", "choice-required-refused", "", func(body string) string {
			return when(strings.Contains(body, `"tool_choice":"required"`), "only auto is supported")
		}},
		{"no tools", "status-400-tools", "supports_tools=false", func(body string) string {
			return when(strings.Contains(body, `"tools"`), "registry.ollama.ai/library/gemma does not support tools")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rep := run(t, doctor.Target{Transport: overSim(func(_ http.Header, body []byte) (int, string) {
				if m := c.refuse(string(body)); m != "" {
					return http.StatusBadRequest, m
				}
				return 0, ""
			})})
			got := ids(rep)
			if want := []string{c.finding, "max-tokens-ignored"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) && c.finding != "status-400-tools" {
				t.Errorf("found %v, want %v", got, want)
			}
			var settings []string
			for _, s := range rep.Profile.Mends() {
				settings = append(settings, s.Key+"="+s.Value)
			}
			if c.setting == "" && len(settings) > 0 || c.setting != "" && !slices.Contains(settings, c.setting) {
				t.Errorf("settings %v, want %s", settings, c.setting)
			}
		})
	}
}

func when(ok bool, message string) string {
	if ok {
		return message
	}
	return ""
}

// Tools that are refused under a status of failures are refused all the same.
func TestDoctorReadsRefusalsUnder500(t *testing.T) {
	t.Parallel()
	rep := run(t, doctor.Target{Transport: overSim(func(_ http.Header, body []byte) (int, string) {
		if strings.Contains(string(body), `"tools"`) {
			return http.StatusInternalServerError, "tools param requires --jinja flag"
		}
		return 0, ""
	})})
	if got, want := ids(rep), []string{"status-400-tools"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// A server that answers chats and hangs on tools is not waited for again and again.
func TestDoctorDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := overSim(func(http.Header, []byte) (int, string) { return 0, "" })
		started := time.Now()
		rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: "http://h/v1", Model: sim.DemoModel, Transport: tripperFunc(func(req *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			if bytes.Contains(body, []byte(`"tools"`)) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
			return h.RoundTrip(req)
		})}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := rep.Find("hang"); !ok || len(f.Probes) != 3 {
			t.Errorf("found %v", ids(rep))
		}
		if took := time.Since(started); took != 3*time.Minute {
			t.Errorf("took %s", took)
		}
	})
}

type tripperFunc func(*http.Request) (*http.Response, error)

func (f tripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A mistake that is answered with 500 is no failure of the server.
func TestDoctorDistinguishesMistakesFromFailures(t *testing.T) {
	t.Parallel()
	rep := run(t, doctor.Target{Transport: overSim(func(_ http.Header, body []byte) (int, string) {
		if !json.Valid(body) {
			return http.StatusInternalServerError, "parse error"
		}
		return 0, ""
	})})
	if _, ok := rep.Find("error-status"); !ok || rep.Broken() {
		t.Errorf("found %v", ids(rep))
	}
}

// A server that lets no history pass is said to be one.
func TestDoctorReportsWhenNothingHelps(t *testing.T) {
	t.Parallel()
	rep := run(t, doctor.Target{Transport: overSim(func(_ http.Header, body []byte) (int, string) {
		if strings.Contains(string(body), `"role":"tool"`) {
			return http.StatusUnprocessableEntity, "no"
		}
		return 0, ""
	})})
	for _, id := range []string{"history-refused", "result-refused"} {
		if f, ok := rep.Find(id); !ok || f.Severity != doctor.Broken || f.Detail != "HTTP 422: no" {
			t.Errorf("%s: %+v", id, f)
		}
	}
}

// The key goes to the server and nowhere else, whatever the server says.
func TestDoctorKeepsKeys(t *testing.T) {
	t.Parallel()
	const key, other = "canary-key-0123456789", "canary-header-0123456789"
	sent, wrong := 0, 0
	rep := run(t, doctor.Target{Key: secret.New(key), Headers: map[string]secret.Secret{"Api-Key": secret.New(other)},
		Transport: overSim(func(h http.Header, body []byte) (int, string) {
			switch {
			case h.Get("Authorization") == "Bearer "+key && h.Get("Api-Key") == other:
				sent++
			case strings.Contains(h.Get("Authorization"), "lathe-doctor"):
				wrong++
				return http.StatusUnauthorized, "Incorrect API key " + h.Get("Authorization")
			}
			if strings.Contains(string(body), "parallel_tool_calls") {
				return http.StatusBadRequest, "you sent " + key + " and " + other
			}
			return 0, ""
		})})
	b, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	if all := string(b) + string(rep.Profile.YAML()) + fmt.Sprintf("%+v", rep); strings.Contains(all, "canary") {
		t.Errorf("a key is told: %s", all)
	}
	if sent == 0 || wrong != 1 {
		t.Errorf("the key was sent %d times, a wrong one %d times", sent, wrong)
	}
	if f, ok := rep.Find("parallel-refused"); !ok || !strings.Contains(f.Detail, secret.Redacted) {
		t.Errorf("the server's words are missing: %+v", f)
	}
	if _, ok := rep.Find("key-unchecked"); ok {
		t.Error("a wrong key was refused, and the report says that it is not checked")
	}
}

func TestDoctorNoticesUncheckedKeys(t *testing.T) {
	t.Parallel()
	rep := run(t, doctor.Target{Key: secret.New("x"), Transport: sim.New(nil).Transport()})
	if _, ok := rep.Find("key-unchecked"); !ok {
		t.Errorf("found %v", ids(rep))
	}
}

func TestDoctorCannotReachADeadPort(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: "http://" + addr + "/secret-path?x=secret", Model: "m"}, nil)
	var none *doctor.UnreachableError
	if rep != nil || !errors.As(err, &none) || lathe.CodeOf(err) != lathe.CodeUpstream {
		t.Fatalf("got %v, %v", rep, err)
	}
	if none.Host != "http://"+addr || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error says %q", err)
	}
}

func TestDoctorRefusesWhatIsNoTarget(t *testing.T) {
	t.Parallel()
	for _, target := range []doctor.Target{
		{BaseURL: "", Model: "m"}, {BaseURL: "ftp://h", Model: "m"}, {BaseURL: "http://", Model: "m"},
		{BaseURL: "http://user:canary@h", Model: "m"}, {BaseURL: "http://h"}, {BaseURL: "http://h:canary", Model: "m"},
	} {
		rep, err := doctor.Run(t.Context(), target, nil)
		if rep != nil || lathe.CodeOf(err) != lathe.CodeInvalidConfig || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v: got %v", target.BaseURL, err)
		}
	}
}

func TestDoctorStopsWhenItIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	rep, err := doctor.Run(ctx, doctor.Target{BaseURL: "http://h/v1", Model: sim.DemoModel, Transport: sim.New(nil).Transport()},
		&doctor.Options{Progress: func(probe string, _, _ int) {
			if probe == "call" {
				cancel()
			}
		}})
	if rep != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", rep, err)
	}
}

// A quick examination makes the first probes, and reports their number.
func TestDoctorQuick(t *testing.T) {
	t.Parallel()
	var made []string
	rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: "http://h/v1", Model: sim.DemoModel, Transport: sim.New(nil).Transport()},
		&doctor.Options{Quick: true, Progress: func(probe string, n, of int) { made = append(made, fmt.Sprintf("%s %d/%d", probe, n, of)) }})
	want := "models 1/5 chat 2/5 stream 3/5 call 4/5 call-stream 5/5"
	if err != nil || rep.Broken() || strings.Join(made, " ") != want {
		t.Errorf("%v, %v; want %s", made, err, want)
	}
}

// The dialect that is found is the one that the model writes.
func TestDoctorReadsEveryDialect(t *testing.T) {
	t.Parallel()
	for _, name := range dialect.Names() {
		if name == "auto" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rep := run(t, doctor.Target{Model: "sim/demo+" + name, Transport: sim.New(nil).Transport()})
			f, ok := rep.Find("calls-in-text")
			if !ok || rep.Broken() {
				t.Fatalf("found %v", ids(rep))
			}
			for _, p := range rep.Probes {
				if saw := slices.Contains(f.Probes, p.Name); saw != (p.Outcome == doctor.Warning) || p.Name == "call" && !saw {
					t.Errorf("%s is %s; calls were seen in %v", p.Name, p.Outcome, f.Probes)
				}
			}
			for _, s := range rep.Profile.Mends() {
				if s.Key == "dialect" {
					t.Logf("read as %s", s.Value)
					return
				}
			}
			t.Error("no dialect is set")
		})
	}
}

// The doctor distinguishes a server that parses some calls from one that parses none.
func TestDoctorReportsLeakedCalls(t *testing.T) {
	t.Parallel()
	native, leaks := sim.New(nil).Transport(), sim.New(nil).Transport()
	rep := run(t, doctor.Target{Transport: tripperFunc(func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		to := native
		if bytes.Contains(body, []byte("Lima")) {
			to, body = leaks, bytes.Replace(body, []byte(`"sim/demo"`), []byte(`"sim/demo+hermes"`), 1)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		return to.RoundTrip(req)
	})})
	f, ok := rep.Find("leaked-calls")
	if !ok || !slices.Equal(f.Probes, []string{"parallel", "parallel-off"}) || rep.Broken() {
		t.Errorf("found %v, %v", ids(rep), f.Probes)
	}
	if got, want := rep.Profile.Mends(), []doctor.Setting{{Key: "recover_leaked_calls", Value: "true", For: "leaked-calls"}}; !slices.Equal(got, want) {
		t.Errorf("settings %v, want %v", got, want)
	}
}

// What one stream shows is found wherever it stands. The cases are those that the simulated model has not.
func TestDoctorReadsStreams(t *testing.T) {
	t.Parallel()
	const head, tail = `data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}` + "\n\n",
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}` + "\n\ndata: [DONE]\n\n"
	text := func(s string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":` + s + `}}]}` + "\n\n"
	}
	settings := map[string]doctor.Setting{ // that mend what was found
		"think-open":    {Key: "thinking", Value: "starts_open"},
		"bare-calls":    {Key: "bare_calls", Value: "true"},
		"args-blank":    {Key: "transforms.tool_call", Value: "assistant_tool_calls_arguments_blank_to_empty_object"},
		"line-too-long": {Key: "max_line_bytes", Value: "2049KiB"},
	}
	for _, c := range []struct{ finding, body string }{
		{"empty-line", head + "data:\n\n" + text(`"a"`) + tail},
		{"after-done", head + text(`"a"`) + tail + text(`"b"`)},
		{"duplicate-member", head + text(`"a","content":"b"`) + tail},
		{"invalid-utf8", head + text("\"a\xff\"") + tail},
		{"think-tags", head + text(`"<think>hm</think>one"`) + tail},
		{"think-open", head + text(`"hm</think>one"`) + tail},
		{"bare-calls", head + text(`"{\"name\": \"ping\", \"arguments\": {}}"`) + tail},
		{"finish-unknown", head + text(`"a"`) + strings.Replace(tail, `"stop"`, `"eos"`, 1)},
		{"finish-missing", head + text(`"a"`) + "data: [DONE]\n\n"},
		{"usage-missing", head + text(`"a"`) + strings.Replace(tail, `"usage"`, `"usages"`, 1)},
		{"role-missing", text(`"a"`) + tail},
		{"chat-blank", head + tail},
		{"index-invalid", head + `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":"0","id":"c1","type":"function","function":{"name":"ping","arguments":"{}"}}]}}]}` + "\n\n" + tail},
		{"tool-calls-object", head + `data: {"choices":[{"index":0,"delta":{"tool_calls":{"index":0,"id":"c1","type":"function","function":{"name":"ping","arguments":"{}"}}}}]}` + "\n\n" + tail},
		{"args-blank", head + `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"ping","arguments":""}}]}}]}` + "\n\n" + tail},
		{"id-long", head + `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"` + strings.Repeat("c", 50) + `","type":"function","function":{"name":"ping","arguments":"{}"}}]}}]}` + "\n\n" + tail},
		{"length-unsaid", head + `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"save_note","arguments":"{\"title\":"}}]}}]}` + "\n\n" + strings.Replace(tail, "stop", "tool_calls", 1)},
		{"line-too-long", head + ":" + strings.Repeat(" ", 1<<20) + "\n\n" + text(`"a"`) + tail},
		{"not-a-completion", "data: [1]\n\ndata: [DONE]\n\n"},
	} {
		t.Run(c.finding, func(t *testing.T) {
			t.Parallel()
			rep := run(t, doctor.Target{Model: "m", Transport: tripper(func(path string, _ http.Header, body []byte) (int, string, string) {
				if !bytes.Contains(body, []byte(`"stream":true`)) {
					return 200, "application/json", `{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`
				}
				if c.finding == "length-unsaid" && !bytes.Contains(body, []byte(`"max_tokens":16`)) {
					return 200, "text/event-stream", head + text(`"a"`) + tail
				}
				return 200, "text/event-stream; charset=utf-8", c.body
			})})
			if _, ok := rep.Find(c.finding); !ok {
				t.Errorf("found %v", ids(rep))
			}
			if s, ok := settings[c.finding]; ok {
				s.For = c.finding
				if got := rep.Profile.Mends(); !slices.Contains(got, s) {
					t.Errorf("settings %+v, want %+v", got, s)
				}
			}
		})
	}
}

// Each finding has an id of its own and words, and says them as sentences.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range doctor.Catalogue() {
		if seen[f.ID] || f.ID == "" || f.Group == "" || !strings.HasSuffix(f.Seen, ".") || !strings.HasSuffix(f.Then, ".") {
			t.Errorf("not a row: %+v", f)
		}
		seen[f.ID] = true
		if !slices.Contains([]doctor.Severity{doctor.Note, doctor.Warning, doctor.Broken}, f.Severity) {
			t.Errorf("%s is %s", f.ID, f.Severity)
		}
	}
}

// No answer, however made, makes the doctor fail.
func FuzzRun(f *testing.F) {
	f.Add(200, "text/event-stream", []byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0}]}}]}\n\ndata: [DONE]\n\n"))
	f.Add(200, "application/json", []byte(`{"choices":[{"message":{"tool_calls":{"function":{"arguments":{"a":1,"a":`))
	f.Add(200, "application/json", []byte(`{"data":[1,"",{"id":null}],"choices":[null]}`))
	f.Add(503, "text/html", []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: "http://h", Model: "m", Transport: tripper(func(string, http.Header, []byte) (int, string, string) {
			return 100 + (status&0xffff)%500, contentType, string(body)
		})}, &doctor.Options{Wait: time.Nanosecond, MaxWait: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(rep); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleRun() {
	rep, err := doctor.Run(context.Background(), doctor.Target{BaseURL: "http://sim.invalid/v1", Model: "sim/fault-id-late",
		Transport: sim.New(nil).Transport()}, nil)
	if err != nil {
		panic(err)
	}
	if f, ok := rep.Find("id-late"); ok {
		fmt.Println(f.Severity, f.Seen)
		fmt.Println(f.Then)
	}
	// Output:
	// note The id comes after the first piece of its call.
	// Lathe joins the pieces all the same; nothing to set.
}

// A list that did not come is not called good.
func TestDoctorDoesNotPraiseAListThatDidNotCome(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"no key": http.StatusUnauthorized, "not allowed": http.StatusForbidden} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			t.Cleanup(srv.Close)
			rep := run(t, doctor.Target{BaseURL: srv.URL + "/v1"})
			if p := rep.Probes[0]; p.Name != "models" || p.Outcome != doctor.Skipped || p.Why == "" {
				t.Errorf("%+v", p)
			}
		})
	}
}
