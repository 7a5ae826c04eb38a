package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// described returns a tool that only reads, with a description and one parameter.
func described(name, description string) *fake {
	f := reader(name, echo)
	f.spec.Description = description
	f.spec.Schema = json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"Name of the city"}}}`)
	return f
}

// town are tools that a search tells apart.
func town() []lathe.Tool {
	return []lathe.Tool{
		described("weather_now", "Returns the weather of a place. It needs no key."),
		described("weather_week", "Returns the forecast for a week."),
		described("train_times", "Lists the departures of trains."),
		described("museum_hours", "Returns the opening hours of museums."),
		described("secret_vault", "Opens the vault of the bank."),
	}
}

func searching(t testing.TB, search tool.Search, opts *tool.Options, tools ...lathe.Tool) *tool.Runner {
	t.Helper()
	set, err := tool.NewSetWithSearch(lathe.Limits{}, search, tools...)
	if err != nil {
		t.Fatal(err)
	}
	if opts == nil {
		opts = &tool.Options{Policy: policy.AllowAll()}
	}
	r, err := tool.NewRunner(set, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func deferring(r *tool.Runner, run *lathe.RunInfo, opts tool.RunOptions) *tool.Work {
	opts.Defer = true
	return r.Begin(run, &opts)
}

// An answer is what a search answers.
type answer struct {
	Tools []struct {
		Name, Description, About string
		Parameters               json.RawMessage
	}
	More     []struct{ Name, About string }
	NotFound int `json:"not_found"`
	Note     string
}

func (a *answer) names() (names []string) {
	for i := range a.Tools {
		names = append(names, a.Tools[i].Name)
	}
	return names
}

// searchFor makes one search and returns its answer.
func searchFor(t testing.TB, w *tool.Work, args string) (a answer, text string, rec *recorder) {
	t.Helper()
	res, rec, _ := one(t, w, call(tool.SearchName, args))
	if res.IsError {
		t.Fatalf("%s: %s", args, res.Content)
	}
	if err := json.Unmarshal([]byte(res.Content), &a); err != nil {
		t.Fatalf("%v: %s", err, res.Content)
	}
	return a, res.Content, rec
}

func TestASearchLoadsWhatItFinds(t *testing.T) {
	t.Parallel()
	w := deferring(searching(t, tool.Search{Mode: tool.SearchOn, Always: []string{"museum_*"}}, nil, town()...), nil, tool.RunOptions{})
	if got := specNames(w); got != "museum_hours tool_search" || w.Deferred() != 4 {
		t.Fatalf("sent %q, %d deferred", got, w.Deferred())
	}
	if spec := w.Offered(tool.SearchName); spec.Effect != lathe.ReadOnly || !strings.HasPrefix(spec.Description, "Only some of the tools are listed.") {
		t.Errorf("%+v", spec)
	}
	hash := w.SpecsHash()
	a, _, rec := searchFor(t, w, `{"query":"what is the weather in a city","limit":1}`)
	if got := a.names(); !slices.Equal(got, []string{"weather_now"}) {
		t.Fatalf("found %q", got)
	}
	if f := a.Tools[0]; f.Description != "Returns the weather of a place. It needs no key." || !strings.Contains(string(f.Parameters), "Name of the city") {
		t.Errorf("%+v", f)
	}
	if !slices.ContainsFunc(a.More, func(m struct{ Name, About string }) bool {
		return m.Name == "weather_week" && m.About == "Returns the forecast for a week."
	}) {
		t.Errorf("more: %+v", a.More)
	}
	if got := specNames(w); got != "museum_hours tool_search weather_now" {
		t.Errorf("sent %q", got)
	}
	loaded := find[*event.ToolsLoaded](t, rec)
	if !slices.Equal(loaded.Tools, []string{"weather_now"}) || loaded.Hash != w.SpecsHash() || loaded.Hash == hash || loaded.ToolCallID == "" {
		t.Errorf("%+v", loaded)
	}
	if got := rec.types(); got != "Proposed Planned ToolsLoaded Executed Result" {
		t.Errorf("events %q", got)
	}
	// A search by name, for a tool that is loaded and two that are not.
	a, _, rec = searchFor(t, w, `{"names":["train_times","weather_now","train_times","nothing"]}`)
	if got := a.names(); !slices.Equal(got, []string{"train_times", "weather_now"}) || a.NotFound != 1 || len(a.More) != 0 {
		t.Errorf("%+v", a)
	}
	if got := find[*event.ToolsLoaded](t, rec).Tools; !slices.Equal(got, []string{"train_times"}) {
		t.Errorf("loaded %q", got)
	}
	if got := specNames(w); got != "museum_hours tool_search weather_now train_times" {
		t.Errorf("sent %q", got)
	}
	// A tool that is called without a search is executed and loaded.
	res, rec, _ := one(t, w, call("secret_vault", `{"city":"x"}`))
	if res.IsError || res.Content != `{"city":"x"}` || !slices.Equal(find[*event.ToolsLoaded](t, rec).Tools, []string{"secret_vault"}) {
		t.Errorf("%+v", res)
	}
	if _, rec, _ = one(t, w, call("secret_vault", `{"city":"y"}`)); strings.Contains(rec.types(), "ToolsLoaded") {
		t.Errorf("loaded twice: %s", rec.types())
	}
}

func TestAutoDefersWhereToolsAreMany(t *testing.T) {
	t.Parallel()
	long := described("long", strings.Repeat("long ", 9_000))
	for _, tt := range []struct {
		name   string
		search tool.Search
		limits lathe.Limits
		tools  []lathe.Tool
		defers bool
	}{
		{"40", tool.Search{Mode: tool.SearchAuto}, lathe.Limits{}, numbered(40), false},
		{"41", tool.Search{Mode: tool.SearchAuto}, lathe.Limits{}, numbered(41), true},
		{"a number of one's own", tool.Search{Mode: tool.SearchAuto, AboveTools: 3}, lathe.Limits{}, numbered(4), true},
		{"large definitions", tool.Search{Mode: tool.SearchAuto}, lathe.Limits{}, append(numbered(2), long), true},
		{"a size of one's own", tool.Search{Mode: tool.SearchAuto, AboveBytes: 1 << 20}, lathe.Limits{}, append(numbered(2), long), false},
		{"more than max_tools", tool.Search{Mode: tool.SearchAuto}, lathe.Limits{MaxTools: 5}, numbered(6), true},
		{"more than max_tools_bytes", tool.Search{Mode: tool.SearchAuto}, lathe.Limits{MaxToolsBytes: 1_000}, numbered(30), true},
		{"off", tool.Search{}, lathe.Limits{}, numbered(41), false},
		{"nothing to defer", tool.Search{Mode: tool.SearchOn, Always: []string{"*"}}, lathe.Limits{}, numbered(41), false},
		{"no tools", tool.Search{Mode: tool.SearchOn}, lathe.Limits{}, nil, false},
	} {
		r := searching(t, tt.search, nil, tt.tools...)
		w := deferring(r, nil, tool.RunOptions{Limits: &tt.limits})
		if got := w.Offered(tool.SearchName) != nil; got != tt.defers || got != (w.Deferred() > 0) {
			t.Errorf("%s: defers %v, %d", tt.name, got, w.Deferred())
		}
		if err := w.Check(&tool.RunOptions{}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if all := r.Begin(nil, nil); len(all.Specs()) != len(tt.tools) || all.Offered(tool.SearchName) != nil { // who lists tools
			t.Errorf("%s: a run without Defer lists %d", tt.name, len(all.Specs()))
		}
	}
}

func TestToolsThatAreNotDeferred(t *testing.T) {
	t.Parallel()
	own := reader("own", echo)
	own.spec.Origin = "builtin"
	r := searching(t, tool.Search{Mode: tool.SearchOn, Always: []string{"tool_000?"}}, nil, append(numbered(30), own)...)
	w := deferring(r, nil, tool.RunOptions{
		Settings:    &lathe.Settings{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "tool_0020"}},
		ClientTools: []*lathe.ToolSpec{{Name: "mine"}},
		History: []lathe.Message{{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: "tool_0015"}, lathe.ToolCall{ID: "b", Name: "gone"}}},
			{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "a", Name: "tool_0015"}}}},
	})
	want := "mine own tool_0000 tool_0001 tool_0002 tool_0003 tool_0004 tool_0005 tool_0006 tool_0007 tool_0008 tool_0009 tool_0020 tool_search tool_0015"
	if got := specNames(w); got != want {
		t.Errorf("sent %q", got)
	}
	var history []lathe.Message
	for i := range 30 {
		history = append(history, lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: fmt.Sprint(i), Name: fmt.Sprintf("tool_%04d", i)}}})
	}
	few := searching(t, tool.Search{Mode: tool.SearchOn, MaxLoaded: 2}, nil, numbered(30)...)
	if got := specNames(deferring(few, nil, tool.RunOptions{History: history})); got != "tool_search tool_0028 tool_0029" {
		t.Errorf("of a long history %q is sent", got)
	}
	if got := specNames(deferring(few, nil, tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: tool.SearchName}}})); strings.Count(got, " ") != 30 {
		t.Errorf("beside a client's search %q is sent", got)
	}
}

// hides withholds the tools that it names from the principals, and allows the others.
type hides map[string][]string

func (h hides) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	if slices.Contains(h[run.Principal], spec.Name) {
		return lathe.Verdict{Decision: lathe.Deny, Rule: "hidden"}
	}
	return lathe.Verdict{Decision: lathe.Allow}
}
func (hides) Step(*lathe.StepInfo) lathe.Verdict     { return lathe.Verdict{Decision: lathe.Allow} }
func (h hides) Call(c *lathe.CallInfo) lathe.Verdict { return h.Tool(c.Run, c.Tool) }

// A run whose definitions exceed a limit says which, and why it does not search: for its operator with the shares of the
// origins and what lets it search, for a client without them.
func TestDefinitionsBeyondALimitNameTheCause(t *testing.T) {
	t.Parallel()
	limits := lathe.Limits{MaxTools: 20}
	for _, tt := range []struct {
		name         string
		search       tool.Search
		client       []*lathe.ToolSpec
		limits       lathe.Limits
		limit        string
		text, toUser string
	}{
		{"the policy denies the search", tool.Search{Mode: tool.SearchOn}, nil, limits, "max_tools",
			"30 tools, and tool_calling.max_tools is 20: .*; policy denies tool_search, so that the run cannot search for tools: policy.tools.tool_search: allow lets it, if no rule denies it \\(rule hidden decided\\)$",
			"30 tools, and tool_calling.max_tools is 20; policy denies tool_search, so that the run cannot search for tools"},
		{"the client has a tool of the name", tool.Search{Mode: tool.SearchAuto}, []*lathe.ToolSpec{{Name: tool.SearchName}}, limits, "max_tools",
			"31 tools, and tool_calling.max_tools is 20: .*; the request has a tool of its own with the name tool_search, so that the run cannot search for tools$",
			"31 tools, and tool_calling.max_tools is 20; the request has a tool of its own with the name tool_search, so that the run cannot search for tools"},
		{"all are sent always", tool.Search{Mode: tool.SearchOn, Always: []string{"*"}}, nil, limits, "max_tools",
			"30 tools, and tool_calling.max_tools is 20: .*; tool search never defers built-in tools, those of the request and those that tools.search.always names$",
			"30 tools, and tool_calling.max_tools is 20; tool search never defers built-in tools, those of the request and those that tools.search.always names"},
		{"some are sent always", tool.Search{Mode: tool.SearchOn, Always: []string{"tool_00[012]*"}}, nil, lathe.Limits{MaxToolsBytes: 600}, "max_tools_bytes", "the definitions have [0-9]+ bytes, and tool_calling.max_tools_bytes is 600: .*; tool search never defers", ""},
	} {
		policies := hides{}
		if tt.client == nil && len(tt.search.Always) == 0 {
			policies["bob"] = []string{tool.SearchName}
		}
		r := searching(t, tt.search, &tool.Options{Policy: policies}, numbered(30)...)
		err := r.Check(&lathe.RunInfo{Principal: "bob"}, &tool.RunOptions{ClientTools: tt.client, Limits: &tt.limits, Defer: true})
		var exceeded *tool.DefinitionsError
		if !errors.As(err, &exceeded) || lathe.CodeOf(err) != lathe.CodeTooManyTools || exceeded.Limit != tt.limit {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if !regexp.MustCompile(tt.text).MatchString(exceeded.Error()) {
			t.Errorf("%s: %s", tt.name, exceeded)
		}
		if got := exceeded.ClientText(); tt.toUser != "" && got != tt.toUser {
			t.Errorf("%s: a client reads %s", tt.name, got)
		}
		if err := r.Check(&lathe.RunInfo{Principal: "ann"}, &tool.RunOptions{Limits: &tt.limits, Defer: true}); err != nil && len(tt.search.Always) == 0 {
			t.Errorf("%s: a run that may search: %v", tt.name, err)
		}
	}
}

// A tool that the run may not have is not found: not by its name, by its description or by names, also after searches of other runs.
// The answer is, byte for byte, that for a name without a tool.
func TestASearchFindsNoToolThatIsDenied(t *testing.T) {
	t.Parallel()
	withheld := func(change func(*lathe.ToolSpec)) []lathe.Tool {
		tools := town()
		change(tools[4].Spec())
		return tools
	}
	for _, tt := range []struct {
		name  string
		tools []lathe.Tool
		run   lathe.RunInfo
		allow []string
	}{
		{"the policy denies it", town(), lathe.RunInfo{Principal: "bob"}, nil},
		{"it is another principal's", withheld(func(s *lathe.ToolSpec) { s.Principals = []string{"ann"} }), lathe.RunInfo{Principal: "carl"}, nil},
		{"it is hidden", withheld(func(s *lathe.ToolSpec) { s.Hidden = true }), lathe.RunInfo{Principal: "carl"}, nil},
		{"the run may not use it", town(), lathe.RunInfo{Principal: "carl"}, []string{"weather_now", "weather_week", "train_times", "museum_hours"}},
	} {
		r := searching(t, tool.Search{Mode: tool.SearchOn}, &tool.Options{Policy: hides{"bob": {"secret_vault"}}}, tt.tools...)
		if tt.allow == nil && !tt.tools[4].Spec().Hidden { // the index of a principal who has the tool is made first
			ann := deferring(r, &lathe.RunInfo{Principal: "ann"}, tool.RunOptions{})
			if a, _, _ := searchFor(t, ann, `{"query":"open the vault of the bank"}`); !slices.Contains(a.names(), "secret_vault") {
				t.Fatalf("%s: ann finds %q", tt.name, a.names())
			}
		}
		w := func() *tool.Work { return deferring(r, &tt.run, tool.RunOptions{Allow: tt.allow}) }
		if _, text, _ := searchFor(t, w(), `{"query":"zebra"}`); !strings.Contains(text, `"note":"No tool has a word of the query. Search for other words."`) {
			t.Errorf("%s: nothing is found, and the answer is %s", tt.name, text)
		}
		for _, query := range []string{"secret_vault", "secret vault", "Opens the vault of the bank."} {
			_, text, _ := searchFor(t, w(), fmt.Sprintf(`{"query":%q,"limit":10}`, query))
			if strings.Contains(text, "vault") {
				t.Errorf("%s: %q finds %s", tt.name, query, text)
			}
		}
		_, denied, rec := searchFor(t, w(), `{"names":["secret_vault"]}`)
		_, unknown, _ := searchFor(t, w(), `{"names":["secret_vaulu"]}`)
		if denied != unknown || denied != `{"tools":[],"more":[],"not_found":1}` || strings.Contains(rec.types(), "ToolsLoaded") {
			t.Errorf("%s: %s, and of an unknown name %s; events %s", tt.name, denied, unknown, rec.types())
		}
	}
}

// A policy that denies the search, or asks about it, turns deferral off, and the run says so.
func TestNothingIsDeferredIfTheSearchIsNotAllowed(t *testing.T) {
	t.Parallel()
	r := searching(t, tool.Search{Mode: tool.SearchOn}, &tool.Options{Policy: hides{"": {tool.SearchName}}}, town()...)
	w := deferring(r, nil, tool.RunOptions{})
	if got := specNames(w); got != "museum_hours secret_vault train_times weather_now weather_week" {
		t.Errorf("sent %q", got)
	}
	if got := w.Withheld(); len(got) != 1 || got[0] != (event.WithheldTool{Tool: tool.SearchName, Reason: event.WithheldPolicy, Rule: "hidden"}) {
		t.Errorf("withheld %+v", got)
	}
	res, _, _ := one(t, w, call(tool.SearchName, `{"query":"x"}`))
	if res.Code != lathe.CodeUnknownTool {
		t.Errorf("the search answers %s", res.Content)
	}
}

func TestASearchHasLimits(t *testing.T) {
	t.Parallel()
	w := deferring(searching(t, tool.Search{Mode: tool.SearchOn, MaxLoaded: 3}, nil, numbered(30)...), nil, tool.RunOptions{})
	a, _, _ := searchFor(t, w, `{"names":["tool_0001","tool_0002","tool_0003","tool_0004"]}`)
	if got := a.names(); len(got) != 3 || len(a.More) != 1 || a.More[0].Name != "tool_0004" || a.Note == "" {
		t.Errorf("%+v", a)
	}
	again, _, _ := searchFor(t, w, `{"names":["tool_0001","tool_0002","tool_0003","tool_0004"]}`)
	if !slices.Equal(again.names(), a.names()) || again.Note != a.Note {
		t.Errorf("the same search answers %+v", again)
	}
	res, rec, _ := one(t, w, call("tool_0009", `{}`))
	if res.IsError || strings.Contains(rec.types(), "ToolsLoaded") || len(w.Specs()) != 4 {
		t.Errorf("beyond the limit: %+v, %s, %d sent", res, rec.types(), len(w.Specs()))
	}
	// The limits on definitions hold for what is loaded, too.
	for _, limits := range []lathe.Limits{{MaxTools: 3}, {MaxToolsBytes: 2_000}} {
		w := deferring(searching(t, tool.Search{Mode: tool.SearchOn}, nil, numbered(100)...), nil, tool.RunOptions{Limits: &limits})
		for i := range 3 {
			searchFor(t, w, fmt.Sprintf(`{"names":["tool_00%d1","tool_00%d2","tool_00%d3","tool_00%d4","tool_00%d5","tool_00%d6"]}`, i, i, i, i, i, i))
		}
		if err := w.Check(&tool.RunOptions{}); err != nil || len(w.Specs()) < 3 {
			t.Errorf("%+v: %d sent, %v", limits, len(w.Specs()), err)
		}
	}
	// Definitions that do not fit into an output are left out of it, and the tools are loaded all the same.
	large := make([]lathe.Tool, 10)
	for i := range large {
		large[i] = described(fmt.Sprintf("large_%d", i), "Is large. "+strings.Repeat("word ", 2_000))
	}
	w = deferring(searching(t, tool.Search{Mode: tool.SearchOn}, nil, large...), nil, tool.RunOptions{})
	a, text, _ := searchFor(t, w, `{"query":"large word","limit":10}`)
	if len(a.Tools) != 10 || len(text) > 65_536 || a.Tools[0].Parameters == nil || a.Tools[9].About != "Is large." || len(w.Specs()) != 11 {
		t.Errorf("%d tools in %d bytes, %d sent", len(a.Tools), len(text), len(w.Specs()))
	}
	for _, most := range []int{150, 300, 1_000, 20_000} {
		w = deferring(searching(t, tool.Search{Mode: tool.SearchOn}, nil, large...), nil, tool.RunOptions{Limits: &lathe.Limits{MaxOutputBytes: most}})
		a, text, _ = searchFor(t, w, `{"query":"large word","limit":10,"names":["none"]}`)
		if len(text) > most || len(w.Specs()) != 1+len(a.Tools) {
			t.Errorf("%d bytes where %d are allowed; %d sent for %d tools", len(text), most, len(w.Specs()), len(a.Tools))
		}
	}
}

// A model that searches for nonsense gets refusals, and the run keeps its limits.
func TestASearchTakesNoNonsense(t *testing.T) {
	t.Parallel()
	r := searching(t, tool.Search{Mode: tool.SearchOn}, nil, town()...)
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	many, err := json.Marshal(map[string]any{"names": names})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{``, `{}`, `null`, `[]`, `{"query":""}`, `{"query":"  "}`, `{"names":[]}`, `{"query":null}`, `{"query":7}`, `{"limit":5}`,
		`{"query":"x","limit":1000000000}`, `{"query":"x","limit":1e9}`, `{"query":"x","limit":0}`, `{"query":"x","limit":-1}`, `{"query":"x","limit":1.5}`,
		`{"query":"x","extra":1}`, `{"names":"weather_now"}`, `{"names":[{"name":"weather_now"}]}`, `{"query":"` + strings.Repeat("x", 1_001) + `"}`,
		string(many), `{"query":"` + strings.Repeat("x", 1<<20) + `"}`, `{"query":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`} {
		w := deferring(r, nil, tool.RunOptions{})
		res, rec, _ := one(t, w, call(tool.SearchName, args))
		if !res.IsError || len(res.Content) > 20_000 || strings.Contains(rec.types(), "ToolsLoaded") {
			t.Errorf("%.60s: %.200s", args, res.Content)
		}
	}
	for _, args := range []string{`{"query":"weather","limit":5.0}`, `{"query":"天気 ☃ \u0000 weather"}`, `{"names":["../../etc","weather_now","WEATHER_NOW","` + strings.Repeat("ä", 64) + `"]}`} {
		a, _, _ := searchFor(t, deferring(r, nil, tool.RunOptions{}), args)
		if !slices.Contains(a.names(), "weather_now") {
			t.Errorf("%s: %+v", args, a)
		}
	}
	// The same search again and again ends the run as every repeated call does.
	w := deferring(r, nil, tool.RunOptions{})
	for i := range 3 {
		_, _, out := one(t, w, call(tool.SearchName, `{"query":"nothing at all"}`))
		if ended := out.Reason == lathe.ReasonToolLoop && out.Limit == "max_repeated_calls"; ended != (i == 2) {
			t.Errorf("repetition %d: %q", i+1, out.Reason)
		}
	}
}

// Calls of a turn run side by side if they only read; searches and calls that load a definition take their place in call order.
func TestSearchesAmongCallsThatRunSideBySide(t *testing.T) {
	t.Parallel()
	r := searching(t, tool.Search{Mode: tool.SearchOn, Always: []string{"tool_000?"}}, nil, numbered(40)...)
	for range 20 {
		w := deferring(r, nil, tool.RunOptions{Settings: &lathe.Settings{MaxParallel: 8}})
		calls := []tool.Call{call("tool_0001", `{"n":1}`), call(tool.SearchName, `{"names":["tool_0031"]}`), call("tool_0020", `{"n":2}`), call("tool_0031", `{"n":3}`),
			call("tool_0002", `{"n":4}`), call(tool.SearchName, `{"names":["tool_0020","tool_0011"]}`), call("tool_0012", `{"n":5}`)}
		rec := &recorder{}
		w.Execute(t.Context(), 1, calls, rec.emit)
		var loaded []string
		for _, d := range rec.events {
			if l, ok := d.(*event.ToolsLoaded); ok {
				loaded = append(loaded, l.Tools...)
			}
		}
		if !slices.Equal(loaded, []string{"tool_0031", "tool_0020", "tool_0011", "tool_0012"}) {
			t.Fatalf("loaded %q", loaded)
		}
	}
}

// A run keeps the definitions that it has sent, in their order, when the set changes.
func TestDefinitionsStayWhenTheSetChanges(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSetWithSearch(lathe.Limits{}, tool.Search{Mode: tool.SearchOn, Always: []string{"train_times"}}, town()...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	w := deferring(r, nil, tool.RunOptions{})
	searchFor(t, w, `{"names":["weather_week","museum_hours"]}`)
	const order = "tool_search train_times weather_week museum_hours"
	search := w.Offered(tool.SearchName)
	later := described("boat_times", "Lists the departures of boats.")
	changed := described("weather_week", "Returns the forecast for ten days.")
	if err := set.Replace("test", []lathe.Tool{town()[2], changed, later}); err != nil {
		t.Fatal(err)
	}
	if !w.Refresh() || specNames(w) != order || w.Offered(tool.SearchName) != search {
		t.Fatalf("sent %q", specNames(w))
	}
	if got := w.Offered("weather_week").Description; got != "Returns the forecast for ten days." {
		t.Errorf("the changed definition is %q", got)
	}
	res, _, _ := one(t, w, call("museum_hours", `{}`))
	if res.Code != lathe.CodeUnavailable {
		t.Errorf("a tool that has left answers %s", res.Content)
	}
	if res, _, _ = one(t, w, call("weather_now", `{}`)); res.Code != lathe.CodeUnknownTool {
		t.Errorf("a tool that was not sent and has left answers %s", res.Content)
	}
	if a, _, _ := searchFor(t, w, `{"query":"departures of boats"}`); !slices.Contains(a.names(), "boat_times") {
		t.Errorf("%+v", a)
	}
	if got := specNames(w); got != order+" boat_times" {
		t.Errorf("sent %q", got)
	}
}

// A loaded tool whose schema changes during a run keeps its place among the definitions. Its calls are checked against the new
// schema, which a search shows, too.
func TestTheSchemaOfALoadedToolChanges(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSetWithSearch(lathe.Limits{}, tool.Search{Mode: tool.SearchOn}, town()...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	w := deferring(r, nil, tool.RunOptions{})
	searchFor(t, w, `{"names":["weather_week","train_times"]}`)
	if res, _, _ := one(t, w, call("weather_week", `{"city":"Oslo"}`)); res.IsError {
		t.Fatalf("before the change: %s", res.Content)
	}
	before, hash := specNames(w), w.SpecsHash()
	tools := town()
	tools[1].Spec().Schema = json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}},"required":["place"],"additionalProperties":false}`)
	if err := set.Replace("test", tools); err != nil {
		t.Fatal(err)
	}
	if !w.Refresh() || specNames(w) != before || w.SpecsHash() == hash {
		t.Fatalf("sent %q after %q, the same definitions: %v", specNames(w), before, w.SpecsHash() == hash)
	}
	if res, _, _ := one(t, w, call("weather_week", `{"city":"Oslo"}`)); res.Code != lathe.CodeInvalidArguments {
		t.Errorf("arguments of the former schema: %s", res.Content)
	}
	if res, _, _ := one(t, w, call("weather_week", `{"place":"Oslo"}`)); res.IsError {
		t.Errorf("arguments of the new schema: %s", res.Content)
	}
	a, _, rec := searchFor(t, w, `{"names":["weather_week"]}`)
	if len(a.Tools) != 1 || !strings.Contains(string(a.Tools[0].Parameters), `"place"`) || strings.Contains(rec.types(), "ToolsLoaded") {
		t.Errorf("%+v; events %s", a, rec.types())
	}
}

// The names of a search are names, and no patterns, as those of the setting always are.
func TestASearchTakesNoPatternsForNames(t *testing.T) {
	t.Parallel()
	w := deferring(searching(t, tool.Search{Mode: tool.SearchOn}, nil, town()...), nil, tool.RunOptions{})
	a, text, rec := searchFor(t, w, `{"names":["*","weather_*","weather_???","[a-z]*"]}`)
	if len(a.Tools) != 0 || len(a.More) != 0 || a.NotFound != 4 || strings.Contains(rec.types(), "ToolsLoaded") || specNames(w) != tool.SearchName {
		t.Errorf("%s; events %s; sent %q", text, rec.types(), specNames(w))
	}
}

// Runs of different principals at once share the index of equal lists, and nothing else.
func TestSearchesOfRunsAtOnce(t *testing.T) {
	t.Parallel()
	r := searching(t, tool.Search{Mode: tool.SearchOn}, &tool.Options{Policy: hides{"bob": {"secret_vault"}}}, append(town(), numbered(200)...)...)
	done := make(chan string)
	for i := range 16 {
		go func() {
			principal := []string{"ann", "bob"}[i%2]
			w := deferring(r, &lathe.RunInfo{Principal: principal}, tool.RunOptions{})
			out := w.Execute(context.Background(), 1, []tool.Call{call(tool.SearchName, `{"query":"open the vault of the bank"}`)}, func(event.Data) {})
			text := out.Messages[0].Parts[0].(lathe.ToolResult).Content
			if found := strings.Contains(text, "secret_vault"); found != (principal == "ann") {
				done <- principal + " gets " + text
				return
			}
			done <- ""
		}()
	}
	for range 16 {
		if problem := <-done; problem != "" {
			t.Error(problem)
		}
	}
}

// An agent that a run starts may have what the run may call, and not only what it was sent.
func TestScopeHasDeferredTools(t *testing.T) {
	t.Parallel()
	var scope *tool.Scope
	agent := reader("agent", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		scope = tool.ScopeFrom(ctx)
		return &lathe.Output{Data: json.RawMessage(`1`)}, nil
	})
	agent.starts = true
	w := deferring(searching(t, tool.Search{Mode: tool.SearchOn}, nil, append(town(), agent)...), nil, tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "mine"}}})
	one(t, w, call("agent", `{}`))
	var names []string
	for _, s := range scope.Tools {
		names = append(names, s.Name)
	}
	if want := []string{"agent", "museum_hours", "secret_vault", "train_times", "weather_now", "weather_week"}; !slices.Equal(names, want) {
		t.Errorf("scope %q", names)
	}
}

// The list of the set, with its index, is kept from run to run, however many conversations begin with definitions of their own.
func TestConversationsShareTheListOfTheSet(t *testing.T) {
	t.Parallel()
	r := searching(t, tool.Search{Mode: tool.SearchOn}, nil, numbered(60)...)
	var first *lathe.ToolSpec
	for i := range 60 {
		w := deferring(r, nil, tool.RunOptions{History: []lathe.Message{{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "a", Name: fmt.Sprintf("tool_%04d", i)}}}}})
		if got := specNames(w); got != fmt.Sprintf("tool_search tool_%04d", i) {
			t.Fatalf("sent %q", got)
		}
		if first == nil {
			first = w.Offered(tool.SearchName)
		}
		if w.Offered(tool.SearchName) != first { // it is made once for a list
			t.Fatalf("the list was made again for run %d", i)
		}
	}
}
