package mcptool

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
)

const manyTools = `[{"name":"any.thing","inputSchema":{"type":"object"}},{"name":"list_notes"},{"name":"list_tags"},{"name":"list_all_secrets"},{"name":"delete"}]`

// Patterns choose the tools of a server, patterns exclude some of these, and a renamed tool is called by its new name alone,
// while the server is called by its own.
func TestToolsAreChosenExcludedAndRenamed(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "")
	conf.Tools, conf.Exclude = []string{"list_*", "any.thing", "gone"}, []string{"*secret*"}
	conf.Rename = map[string]string{"any.thing": "anything", "list_tags": "box__tags", "gone": "absent"}
	conf.Effects = map[string]lathe.Effect{"any.thing": lathe.ReadOnly}
	toolsFile(t, &conf, manyTools)
	r := newRig(t, nil, conf)
	got := map[string]string{}
	for name, st := range r.states() {
		got[name] = st.Remote + " " + string(st.State)
	}
	if diff := cmp.Diff(map[string]string{
		"anything": "any.thing ready", "box__list_notes": "list_notes ready", "box__tags": "list_tags ready",
		"box__list_all_secrets": "list_all_secrets excluded", "box__delete": "delete excluded", "absent": "gone missing",
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantCode(t, r.call("anything", map[string]any{"do": ""}), "")
	wantCode(t, r.call("box__any_thing", map[string]any{}), lathe.CodeUnknownTool)
	wantCode(t, r.call("box__list_all_secrets", map[string]any{}), lathe.CodeUnknownTool)
	if one, ok := r.set.Lookup("anything"); !ok || one.Spec().Effect != lathe.ReadOnly || one.Spec().Origin != "mcp:box" {
		t.Errorf("anything: got %+v", one)
	}
	// Pins are of the server's names: a new name needs no new acceptance, and acceptance goes by the new name.
	_ = r.group.Close()
	conf.Pin = RequirePin
	conf.Rename["any.thing"] = "other_name"
	r = newRig(t, &Options{Pins: r.pins}, conf)
	if got := r.states()["other_name"].State; got != ToolReady {
		t.Errorf("renamed again: got %s", got)
	}
	_ = r.group.Close()
	r = newRig(t, nil, conf)
	if was, err := r.group.Accept("other_name"); err != nil || len(was) != 1 || was[0].State != ToolBlocked || r.states()["other_name"].State != ToolReady {
		t.Errorf("accepted by its new name: got %+v, %v", was, err)
	}
}

// A tool that is not offered takes no name from one that is; two that are offered under one name are refused.
func TestT6_RenamedToolsTakeNoName(t *testing.T) {
	t.Parallel()
	states := func(change func(*Server)) map[string]ToolState {
		conf := testConf(t, "")
		toolsFile(t, &conf, `[{"name":"a.b"},{"name":"a_b"},{"name":"c"}]`)
		change(&conf)
		r := newRig(t, nil, conf)
		out := map[string]ToolState{}
		for _, st := range r.group.Status()[0].Tools {
			out[st.Remote] = st.State
		}
		if n := strings.Count(strings.Join(slicesOf(out), " "), string(ToolReady)); n != len(r.set.Specs()) {
			t.Errorf("%d tools are ready, and %d are in the set", n, len(r.set.Specs()))
		}
		_ = r.group.Close()
		return out
	}
	for name, one := range map[string]struct {
		change func(*Server)
		want   map[string]ToolState
	}{
		"renamed apart":    {func(s *Server) { s.Rename = map[string]string{"a_b": "b"} }, map[string]ToolState{"a.b": ToolReady, "a_b": ToolReady, "c": ToolReady}},
		"excluded":         {func(s *Server) { s.Exclude = []string{"a_b"} }, map[string]ToolState{"a.b": ToolReady, "a_b": ToolExcluded, "c": ToolReady}},
		"renamed together": {func(s *Server) { s.Rename = map[string]string{"a.b": "box__c", "a_b": "d"} }, map[string]ToolState{"a.b": ToolRefused, "a_b": ToolReady, "c": ToolRefused}},
	} {
		if diff := cmp.Diff(one.want, states(one.change)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	for name, change := range map[string]func(*Server){
		"not 1 to 64":              func(s *Server) { s.Rename = map[string]string{"a": "no name"} },
		"are both renamed":         func(s *Server) { s.Rename = map[string]string{"a": "x", "b": "x"} },
		"a name of the server two": func(s *Server) { s.Rename = map[string]string{"a": "two__a"} },
		"not among the tools":      func(s *Server) { s.Rename, s.Exclude = map[string]string{"a": "x"}, []string{"?"} },
		"an empty name":            func(s *Server) { s.Tools = []string{""} },
	} {
		conf := testConf(t, "")
		change(&conf)
		if err := conf.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func slicesOf(states map[string]ToolState) (out []string) {
	for s := range maps.Values(states) {
		out = append(out, string(s))
	}
	return out
}

// A caller may change its configuration after Start.
func TestAServersConfigurationIsCopied(t *testing.T) {
	t.Parallel()
	conf := Server{Env: map[string]secret.Secret{"a": {}}, Headers: map[string]secret.Secret{"a": {}}, Effects: map[string]lathe.Effect{"a": lathe.Writes},
		Rename: map[string]string{"a": "b"}, Allowlists: map[string][]string{"a": {"f"}}}
	c := conf.withDefaults()
	conf.Allowlists["a"][0] = "g"
	clear(conf.Env)
	clear(conf.Headers)
	clear(conf.Effects)
	clear(conf.Rename)
	clear(conf.Allowlists)
	if len(c.Env) != 1 || len(c.Headers) != 1 || len(c.Effects) != 1 || len(c.Rename) != 1 || len(c.Allowlists) != 1 || c.Allowlists["a"][0] != "f" {
		t.Errorf("the copy has changed: %+v", c)
	}
}
