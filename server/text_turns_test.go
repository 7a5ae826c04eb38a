package server_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// computes is a model that calls a tool of the server for each question, in words before it, and then answers "Done."
func computes() *fake {
	return &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		asked := 0
		for i := range req.Messages {
			if req.Messages[i].Role == lathe.RoleUser {
				asked++
			}
		}
		if last := &req.Messages[len(req.Messages)-1]; last.Role == lathe.RoleUser {
			return says(lathe.Text{Text: "I compute."}, calls(fmt.Sprint("q", asked), "calculator", `{"expression":"7 + 35"}`))
		}
		return says(lathe.Text{Text: "Done."})
	}}
}

// lastSent returns the conversation of the last request that the model got.
func lastSent(model *fake) string {
	all := model.all()
	return transcript(all[len(all)-1].Messages)
}

// round is how the model gets the answer to a question that computes answered first.
func round(id string) string {
	return strings.Join([]string{`assistant "I compute." calculator:` + id, `tool =` + id, `assistant "Done."`}, "\n")
}

// The client of each wire sends an answer back as text alone: chat completions have nothing else, and some clients of the other
// wires drop what they do not display. The next request brings the model the calls and results of this server behind it, so that
// the conversation begins as the model had it.
func TestTextAnswerBringsBackTheCallsBehindIt(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	forms := map[string]func(text string) []lathe.Message{
		"as it came": func(text string) []lathe.Message { return []lathe.Message{lathe.Assistant(text)} },
		"trimmed": func(text string) []lathe.Message {
			return []lathe.Message{lathe.Assistant(" " + strings.Join(strings.Fields(text), " "))}
		},
		"in two pieces": func(text string) []lathe.Message {
			return []lathe.Message{lathe.Assistant(text[:4]), lathe.Assistant(text[4:])}
		},
	}
	for form, pieces := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			onWires(t, func(t *testing.T, c *wireClient, stream bool) {
				model := computes()
				f := serve(t, &setting{model: model})
				history := []lathe.Message{lathe.User("one?")}
				for question := range 3 {
					a := c.ask(f, stream, nil, history...)
					if a.err != nil || words(&a.message) != "Icompute.Done." {
						t.Fatalf("%v: %s", a.err, a.body)
					}
					if a.header.Get("X-Lathe-Lost-Joins") != "" {
						t.Error("turns were lost")
					}
					history = append(append(history, pieces(a.message.Text())...), lathe.User([]string{"two?", "three?", "four?"}[question]))
				}
				want := strings.Join([]string{`user "one?"`, round("q1"), `user "two?"`, round("q2"), `user "three?"`, `assistant "I compute." calculator:q3`, `tool =q3`}, "\n")
				if got := lastSent(model); got != want {
					t.Errorf("the model was sent\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// The turns of a text are found for the same key, end user, model and conversation, and for a limited time. Otherwise, and if the
// client has changed the text, the conversation stays as the client has it, without an error.
func TestCallsBehindATextAreBound(t *testing.T) {
	t.Parallel()
	const text = "I compute.\n\nDone."
	for name, c := range map[string]struct {
		key, user, model, first, text, system string
		later                                 time.Duration
		nothing, found                        bool
	}{
		"the same":                         {found: true},
		"the same, without a store":        {nothing: true, found: true},
		"other instructions":               {system: "It is noon.", found: true},
		"other white space":                {text: " I compute. Done.\n", found: true},
		"another key":                      {key: "b"},
		"another end user":                 {user: "v"},
		"another model":                    {model: "sim/y"},
		"another conversation":             {first: "hello"},
		"an edited text":                   {text: "I compute.\n\nDone!"},
		"less text":                        {text: "I compute."},
		"too late and there is no store":   {later: 2 * time.Hour, nothing: true},
		"late, and a store keeps the turn": {later: 2 * time.Hour, found: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, now := computes(), newHandClock()
			f := serve(t, &setting{model: model, now: now.now, nothing: c.nothing, opts: func(o *server.Options) {
				o.Setup.Keys = []server.Key{key("a"), key("b")}
				if c.nothing {
					o.Index = nil
				}
			}})
			first := f.complete(`{"model":"sim/x","user":"u","messages":[{"role":"user","content":"hi"}]}`)
			if got := first.Choices[0].Message.Content; got != text {
				t.Fatalf("the answer is %q", got)
			}
			now.add(c.later)
			system := ""
			if c.system != "" {
				system = `{"role":"system","content":` + quote(c.system) + `},`
			}
			second := f.complete(`{"model":"`+cmp.Or(c.model, "sim/x")+`","user":"`+cmp.Or(c.user, "u")+`","messages":[`+system+`{"role":"user","content":`+quote(cmp.Or(c.first, "hi"))+
				`},{"role":"assistant","content":`+quote(cmp.Or(c.text, text))+`},{"role":"user","content":"more"}]}`, "Authorization", "Bearer "+text2(c.key))
			if got := second.Choices[0].Message.Content; got != text {
				t.Errorf("the answer is %q", got)
			}
			if got := lastSent(model); strings.Contains(got, "=q1") != c.found || !c.found && !strings.Contains(got, fmt.Sprintf("assistant %q\n", cmp.Or(c.text, text))) {
				t.Errorf("found %v, want %v: %s", !c.found, c.found, got)
			}
		})
	}
}

// text2 is the secret of a key; "": of a.
func text2(name string) string { return text(cmp.Or(name, "a")) }

// A later process on the same store, and another one beside the first, read the turns behind a text from the log of the run. A
// text that a client hands over results before, and one of a run without calls, are looked up once.
func TestCallsBehindATextAreInTheStore(t *testing.T) {
	t.Parallel()
	for how, stream := range bothWays {
		for _, who := range []string{"a", "b"} {
			t.Run(how+" "+who, func(t *testing.T) {
				t.Parallel()
				kept := &countedRequests{Memory: store.NewMemory(nil)}
				keys := func(o *server.Options) { o.Setup.Keys = []server.Key{key("a"), key("b")} }
				first := serve(t, &setting{model: mixed(), store: kept, opts: keys})
				more := fmt.Sprintf(`,"user":"u","tools":[%s],"stream":%v`, weatherTool, stream)
				m, _ := first.answer(`{"model":"sim/x","messages":[{"role":"user","content":"hi"}]`+more+`}`, stream)
				conversation := again(m, "rain")
				if m, _ = first.answer(`{"model":"sim/x","messages":[`+conversation+`]`+more+`}`, stream); m.Content != "It is done." {
					t.Fatalf("got %+v", m)
				}
				conversation += `,{"role":"assistant","content":"It is done."},{"role":"user","content":"Go on."}`
				first.gateway.Drain(t.Context()) // what it records is in the store
				computing := computes()
				second := serve(t, &setting{model: computing, store: kept, opts: keys})
				m, _ = second.answer(`{"model":"sim/x","messages":[`+conversation+`]`+more+`}`, stream)
				conversation += `,{"role":"assistant","content":` + quote(m.Content) + `},{"role":"user","content":"And again."}`

				second.gateway.Drain(t.Context())
				model := computes()
				third := serve(t, &setting{model: model, store: kept, opts: keys})
				third.key = text(who)
				kept.found.Store(0)
				third.answer(`{"model":"sim/x","messages":[`+conversation+`]`+more+`}`, stream)
				got := model.all()[0]
				if found := strings.Contains(transcript(got.Messages), round("q2")); found != (who == "a") {
					t.Errorf("found %v: the model was sent\n%s", found, transcript(got.Messages))
				}
				looked := kept.found.Load()
				third.answer(`{"model":"sim/x","messages":[`+conversation+`,{"role":"user","content":"Please."}]`+more+`}`, stream)
				if n := kept.found.Load() - looked; looked == 0 || n != 0 {
					t.Errorf("%d lookups, then %d, want some and none", looked, n)
				}
			})
		}
	}
}

// A countedRequests is a store that counts the lookups of requests.
type countedRequests struct {
	*store.Memory
	found atomic.Int64
}

func (s *countedRequests) FindRequest(ctx context.Context, digest store.RequestDigest) (store.RequestRecord, error) {
	s.found.Add(1)
	return s.Memory.FindRequest(ctx, digest)
}
