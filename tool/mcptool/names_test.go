package mcptool

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A name or a pattern of the configuration that no tool of the server has is shown with its settings and what it may stand for.
func TestNamesThatTheServerDoesNotHaveAreShown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Server)
		want   string
	}{
		"none": {func(*Server) {}, ""},
		"effects": {func(s *Server) {
			s.Effects = map[string]lathe.Effect{"read_text_fiel": lathe.ReadOnly, "read_text_file": lathe.ReadOnly}
		}, "fs__read_text_fiel: the server has no such tool (effects), did you mean read_text_file?"},
		"allowlists too": {func(s *Server) {
			s.Effects = map[string]lathe.Effect{"writr": lathe.Writes}
			s.Allowlists = map[string][]string{"writr": {"*"}}
		}, "fs__writr: the server has no such tool (effects, allowlists), did you mean write?"},
		"exclude":   {func(s *Server) { s.Exclude = []string{"wrte"} }, "fs__wrte: the server has no such tool (exclude), did you mean write?"},
		"tools":     {func(s *Server) { s.Tools = []string{"write", "nothing_like_it"} }, "fs__nothing_like_it: the server has no such tool (tools)"},
		"a pattern": {func(s *Server) { s.Tools = []string{"read_*", "lsit_*"} }, "fs__lsit_*: no tool of the server has a name of this pattern (tools)"},
		"rename":    {func(s *Server) { s.Rename = map[string]string{"rite": "w"} }, "w: the server has no such tool (rename), did you mean write?"},
		"all":       {func(s *Server) { s.Tools = []string{"*"} }, ""},
		"case":      {func(s *Server) { s.Effects = map[string]lathe.Effect{"Write": lathe.Writes} }, "fs__Write: the server has no such tool (effects), did you mean write?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := httpConf("http://mcp.example/")
			conf.Name = "fs"
			conf.Client = &http.Client{Transport: lister(map[string]string{"-": `"tools":[{"name":"read_text_file"},{"name":"write"}]`}, false)}
			tt.change(&conf)
			r := newRig(t, nil, conf)
			var got []string
			states := r.states()
			for _, name := range slices.Sorted(maps.Keys(states)) {
				if st := states[name]; st.State == ToolMissing {
					got = append(got, st.Name+": "+st.Reason)
				}
			}
			if text := strings.Join(got, "; "); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// A pattern that cannot be matched here, in the schema of the arguments or of the output, does not cost the tool: its server checks it.
func TestPatternsOfOtherLanguagesAreLeftToTheServer(t *testing.T) {
	t.Parallel()
	conf := httpConf("http://mcp.example/")
	conf.Client = &http.Client{Transport: lister(map[string]string{"-": `"tools":[
		{"name":"python","inputSchema":{"type":"object","properties":{"id":{"type":"string","pattern":"^(?P<id>[a-z]+)$"}}}},
		{"name":"output","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"w":{"pattern":"\\Aw\\Z"}}}},
		{"name":"nulls","inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":null}},
		{"name":"script","inputSchema":{"type":"object","properties":{"q":{"type":"string","pattern":"^[\\u4e00-\\u9fa5]+$"}}}}]`}, false)}
	r := newRig(t, nil, conf)
	want := map[string]string{"web__python": "inputSchema.properties.id.pattern: ", "web__output": "outputSchema.properties.w.pattern: ",
		"web__nulls": "inputSchema.required: it is null", "web__script": ""}
	specs := r.set.Specs()
	if len(specs) != len(want) {
		t.Errorf("%d tools, want %d: %+v", len(specs), len(want), r.group.Status()[0].Tools)
	}
	for _, sp := range specs {
		if got := strings.Join(sp.UncheckedParts, "; "); !strings.HasPrefix(got, want[sp.Name]) || (got == "") != (want[sp.Name] == "") {
			t.Errorf("%s: %q, want %q", sp.Name, got, want[sp.Name])
		}
	}
	wantCode(t, r.call("web__script", map[string]string{"q": "abc"}), lathe.CodeInvalidArguments)
}
