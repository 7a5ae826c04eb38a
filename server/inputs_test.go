package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
)

// An input is a case of testdata/inputs: a request of a client of one wire to a model of another, what the model's server gets, and what
// the client gets for the server's answer. Paths name members and indexes, with dots between them.
type input struct {
	Name   string
	Client string // one of wireClients
	Model  struct {
		Wire         lathe.Wire
		Server, Name string // kind of server, "" if it is not known; default name: m
	}
	Tool    json.RawMessage // the schema of a tool of this server, f; null: the server has none
	Request map[string]json.RawMessage

	Sent    map[string]json.RawMessage // values in the request to the model's server; null: there is no such member
	Lacks   []string                   // texts that are not in it
	Dropped []string                   // paths in the client's report of what was not sent as it was

	Answer struct { // of the model's server; default: the text ok
		Status int
		Header map[string]string
		Body   json.RawMessage
	}
	Status int // default 200
	Header map[string]string
	Got    map[string]json.RawMessage // values in the answer that is not streamed
}

// Each case of testdata/inputs gets the same answer streamed and whole.
func TestWholeAndStreamedAnswersAgreeForEachInput(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "inputs", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []*input
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range cases {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				whole, streamed := c.send(t, false), c.send(t, true)
				if whole.status == http.StatusOK && answerSum(whole) != answerSum(streamed) {
					t.Errorf("the answer that is not streamed is\n%s\nand the streamed one\n%s", answerSum(whole), answerSum(streamed))
				}
			})
		}
	}
}

// answerSum returns what an answer says.
func answerSum(a *wireAnswer) string {
	s := string(a.reason) + " " + strconv.Quote(a.message.Text())
	for _, call := range a.message.Calls() {
		s += " " + call.Name + call.Arguments
	}
	return s
}

// send sends the request of the case and checks what the model's server and the client get.
func (c *input) send(t *testing.T, stream bool) *wireAnswer {
	t.Helper()
	up := &inputServer{t: t, input: c}
	model, err := provider.New(c.Model.Wire, cmp.Or(c.Model.Name, "m"), &provider.Options{BaseURL: "http://models.example", Server: provider.Server{Kind: c.Model.Server}, Transport: up, Entry: "entry", Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	k := key("inputs")
	k.Tools, k.VendorObjects = []string{}, []string{"*"}
	s := &setting{model: model, opts: func(o *server.Options) { o.Setup.Keys = []server.Key{k} }}
	if c.Tool != nil {
		k.Tools = []string{"f"}
		s.tools = []lathe.Tool{&schemaTool{lathe.ToolSpec{Name: "f", Schema: c.Tool, Allowlist: []string{"*"}}}}
	}
	body := maps.Clone(c.Request)
	if c.Client != "gemini" {
		body["model"], body["stream"] = json.RawMessage(`"sim/demo"`), json.RawMessage(strconv.FormatBool(stream))
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	a := wireClients[c.Client].send(t.Context(), serve(t, s), stream, string(raw))
	if a.status != cmp.Or(c.Status, http.StatusOK) {
		t.Fatalf("status %d: %s\nsent %s", a.status, a.body, up.sent)
	}
	up.check(a, stream)
	return a
}

// An inputServer is the model's server of one request.
type inputServer struct {
	t *testing.T
	*input
	sent string
}

func (up *inputServer) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	up.sent = string(b)
	status, header, answer := http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(up.Answer.Body)
	if up.Answer.Status != 0 {
		status = up.Answer.Status
	}
	for name, value := range up.Answer.Header {
		header.Set(name, value)
	}
	if answer == nil {
		req, err := servedWires[up.Model.Wire].ParseRequest(b)
		if err != nil {
			up.t.Errorf("the model's server cannot read the request: %v\n%s", err, b)
			return nil, err
		}
		answer = wire.AppendAnswer(nil, servedWires[up.Model.Wire], &wire.Answer{AnswerHead: wire.AnswerHead{ID: "1", Model: "m", Created: 1, Request: req},
			Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("ok")}})
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(answer)), Request: r}, nil
}

func (up *inputServer) check(a *wireAnswer, stream bool) {
	up.t.Helper()
	var sent any
	if up.sent != "" {
		if err := json.Unmarshal([]byte(up.sent), &sent); err != nil {
			up.t.Fatalf("%v: %s", err, up.sent)
		}
	}
	compare(up.t, "sent", sent, up.Sent, up.sent)
	for _, text := range up.Lacks {
		if strings.Contains(up.sent, text) {
			up.t.Errorf("%s is sent: %s", text, up.sent)
		}
	}
	for _, path := range up.Dropped {
		if !strings.Contains(a.body, strconv.Quote(path)) {
			up.t.Errorf("%s is not listed: %s\nsent %s", path, a.body, up.sent)
		}
	}
	for name, value := range up.input.Header {
		if got := a.header.Get(name); got != value {
			up.t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if len(up.Got) > 0 && !stream {
		var got any
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			up.t.Fatalf("%v: %s", err, a.body)
		}
		compare(up.t, "answered", got, up.Got, a.body)
	}
}

// compare compares the values at the paths.
func compare(t *testing.T, what string, v any, want map[string]json.RawMessage, all string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		var w any
		if err := json.Unmarshal(want[path], &w); err != nil {
			t.Fatal(err)
		}
		got := v
		for step := range strings.SplitSeq(path, ".") {
			if i, err := strconv.Atoi(step); err == nil {
				got = in(got, i)
			} else {
				got = in(got, step)
			}
		}
		if !reflect.DeepEqual(got, w) {
			b, _ := json.Marshal(got)
			t.Errorf("%s: %s is %s, want %s\n%s", what, path, b, want[path], all)
		}
	}
}
