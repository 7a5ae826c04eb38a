package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe/tool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// visitor answers every link in one way.
type visitor struct {
	refuse string
	mu     sync.Mutex
	links  []tool.Link
}

func (p *visitor) Can(q tool.Question) bool { return q.Link != nil }

func (p *visitor) Ask(_ context.Context, qs map[string]tool.Question) (map[string]tool.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]tool.Answer{}
	for key, q := range qs {
		if q.Link == nil {
			return nil, tool.ErrCannotAsk
		}
		p.links = append(p.links, *q.Link)
		out[key] = tool.Answer{Refused: p.refuse}
	}
	return out, nil
}

func (p *visitor) seen() []tool.Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links
}

const payURL = "https://pay.example.com/1?x=%41"

// paying is a server whose tool wants an address visited, in the way of its era.
func paying(t *testing.T, stateless bool) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "paying", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "pay", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		link := &mcp.ElicitParams{Mode: "url", Message: "Pay \u202efirst.", URL: payURL, ElicitationID: "e1"}
		say := func(text string) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
		}
		if !stateless {
			got, err := req.Session.Elicit(ctx, link)
			if err != nil {
				return say("no link"), nil
			}
			return say(got.Action), nil
		}
		if r, ok := req.Params.InputResponses["pay"].(*mcp.ElicitResult); ok {
			return say(r.Action), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"pay": link}}, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(server.Close)
	return server.URL
}

// A person is shown what a server wants visited, where the configuration says so.
func TestLinksAreShownToAPerson(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		mode     Elicitation
		person   *visitor
		old, new string
		shown    bool
	}{
		{"accepted", ElicitAskURLs, &visitor{}, "accept", "accept", true},
		{"declined", ElicitAskURLs, &visitor{refuse: "decline"}, "decline", "decline", true},
		{"cancelled", ElicitAskURLs, &visitor{refuse: "cancel"}, "cancel", "cancel", true},
		{"forms alone", ElicitAsk, &visitor{}, "no link", "cannot be answered", false},
		{"defaults", ElicitDefaults, &visitor{}, "no link", "cannot be answered", false},
		{"refused", ElicitRefuse, &visitor{}, "no link", "given none", false},
	} {
		for _, stateless := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stateless %v", tc.name, stateless), func(t *testing.T) {
				t.Parallel()
				conf := httpConf(paying(t, stateless))
				conf.Elicitation = tc.mode
				r := newRig(t, nil, conf)
				defer r.group.Close()
				person := &visitor{refuse: tc.person.refuse}
				got := r.callCtx(tool.WithAsker(t.Context(), person), "web__pay", map[string]int{})
				want := tc.old
				if stateless {
					want = tc.new
				}
				if !strings.Contains(got.Content, want) {
					t.Errorf("got %s, want %s", got.Content, want)
				}
				links := person.seen()
				if (len(links) > 0) != tc.shown || tc.shown && (links[0].URL != payURL || links[0].Message != "the MCP server web asks: Pay first." || links[0].Before) {
					t.Errorf("shown %+v", links)
				}
			})
		}
	}
}

// A server that wants an address visited before a call gets the call again when a person has been there.
func TestCallsWaitForAnOpenedURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, data string
		mode       Elicitation
		person     tool.Asker
		calls      int
		want       string
	}{
		{"visited", `{"elicitations":[{"mode":"url","url":"` + payURL + `","message":"Pay.","elicitationId":"a"}]}`, ElicitAskURLs, &visitor{}, 2, "paid"},
		{"not visited", `{"elicitations":[{"mode":"url","url":"` + payURL + `","message":"Pay.","elicitationId":"a"}]}`, ElicitAskURLs, &visitor{refuse: "decline"}, 1, "visit pay.example.com first, and the person does not"},
		{"no user", `{"elicitations":[{"mode":"url","url":"` + payURL + `","message":"Pay.","elicitationId":"a"}]}`, ElicitAskURLs, nil, 1, "no user can be asked"},
		{"not allowed", `{"elicitations":[{"mode":"url","url":"` + payURL + `","message":"Pay.","elicitationId":"a"}]}`, ElicitAsk, &visitor{}, 1, "elicitation is ask-urls"},
		{"a form", `{"elicitations":[{"mode":"form","message":"?","requestedSchema":{}}]}`, ElicitAskURLs, &visitor{}, 1, "cannot be shown"},
		{"another address", `{"elicitations":[{"mode":"url","url":"javascript:alert(1)"}]}`, ElicitAskURLs, &visitor{}, 1, "cannot be shown"},
		{"nothing", `{"elicitations":[]}`, ElicitAskURLs, &visitor{}, 1, "names none"},
		{"no object", `[1]`, ElicitAskURLs, &visitor{}, 1, "names none"},
		{"many", `{"elicitations":[` + strings.Repeat(`{"mode":"url","url":"`+payURL+`"},`, maxInputs) + `{"mode":"url","url":"` + payURL + `"}]}`, ElicitAskURLs, &visitor{}, 1, "cannot be shown"},
		{"again and again", `{"elicitations":[{"mode":"url","url":"https://again.example.com"}]}`, ElicitAskURLs, &visitor{}, maxRounds, "gave no result: do not repeat the call"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			raw := &rpcServer{call: func(w http.ResponseWriter, id string) {
				w.Header().Set("Content-Type", "application/json")
				if calls.Add(1) > 1 && !strings.Contains(tc.data, "again") {
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"paid"}]}}`, id)
					return
				}
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"visit first","data":%s}}`, id, mcp.CodeURLElicitationRequired, tc.data)
			}}
			server := httptest.NewServer(raw)
			defer server.Close()
			conf := httpConf(server.URL)
			conf.Elicitation = tc.mode
			r := newRig(t, nil, conf)
			defer r.group.Close()
			ctx := t.Context()
			if tc.person != nil {
				ctx = tool.WithAsker(ctx, tc.person)
			}
			got := r.callCtx(ctx, "web__do", map[string]int{})
			if !strings.Contains(got.Content, tc.want) || got.IsError != (tc.want != "paid") || int(calls.Load()) != tc.calls {
				t.Errorf("%d calls; got %+v", calls.Load(), got)
			}
			if strings.Contains(got.Content, "/1?x") {
				t.Errorf("a model sees the address: %s", got.Content)
			}
			if p, ok := tc.person.(*visitor); ok && tc.want == "paid" && (len(p.seen()) != 1 || !p.seen()[0].Before) {
				t.Errorf("shown %+v", p.seen())
			}
		})
	}
}

func TestLinksAreInPlainForm(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		payURL: true, "https://xn--bcher-kva.example/": true, "http://localhost:8080/a": true, "http://127.0.0.1/": true, "http://[::1]/": true,
		"http://pay.example.com/": false, "https://pay.example.com@evil.example/": false, "https://b\u00fccher.example/": false,
		"https://google.com%E2%88%95login.evil.com/": false, "https://%D0%B0pple.com/": false, "https://exam%E2%80%8Bple.com/": false,
		"https://a.example\"<b>.example/": false, "https://[fe80::1%25a.example]/": false, "https://a.example:8443/%E2%88%95": true, "https://": false, "": false,
		"javascript:alert(1)": false, "file:///etc/passwd": false, "https:pay.example.com": false, "https://a.example/\n": false, "https://a.example\\@b.example/": false,
		"https://a.example/ b": false, "https://a.example/" + strings.Repeat("x", maxLinkBytes): false, "data:text/html,x": false,
	} {
		if err := checkLink(address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// While a user visits a URL that the server asked for, the idle timeout of calls is suspended: until the server reports the
// URL as complete, or maxLinkTime has passed.
func TestAnOpenURLMayTakeLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newTap(func() {})
		x.visiting("a")
		x.visiting("a") // the same
		x.visiting("b")
		x.visiting("")
		for i := range 2 * maxOpenLinks {
			x.visiting(fmt.Sprint("more ", i))
		}
		if len(x.links) != maxOpenLinks {
			t.Errorf("%d open URLs", len(x.links))
		}
		for i := range 2 * maxOpenLinks {
			x.received(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"more %d"}}`, i))
		}
		for _, odd := range []string{`{"elicitationId":"c"}`, `{}`, `[]`, `{"elicitationId":7}`} {
			x.received([]byte(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":` + odd + `}`))
		}
		if !x.isIdleSuspended() || len(x.links) != 2 {
			t.Fatalf("%d open URLs", len(x.links))
		}
		x.received([]byte(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"a"}}`))
		if !x.isIdleSuspended() {
			t.Error("the other is still away")
		}
		time.Sleep(maxLinkTime + time.Second)
		synctest.Wait()
		if x.isIdleSuspended() || len(x.links) != 0 {
			t.Error("an open URL has no end")
		}
	})
}
