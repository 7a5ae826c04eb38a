package mcptool

import (
	"strings"
	"testing"
)

func TestGroupOffersTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, testConf(t, ""))
	if got := r.call("box__echo", map[string]string{"text": "hello"}); got.Content != "hello" || got.IsError {
		t.Errorf("got %+v, want hello", got)
	}
	st := r.group.Status()[0]
	if st.State != StateReady || st.Protocol != "2025-06-18" || st.Software != "test 1" || st.PID == 0 || st.Transport != "stdio" {
		t.Errorf("got %+v", st)
	}
	if got := strings.Join(st.Capabilities, " "); got != "acme/x resources tools" || st.Instructions != "Say it \\u200btwice." {
		t.Errorf("it declares %s and says %q", got, st.Instructions)
	}
	var names []string
	for _, sp := range r.set.Specs() {
		names = append(names, sp.Name+" "+sp.Effect.String()+" "+sp.Origin)
	}
	if got, want := strings.Join(names, ", "), "box__any_thing writes mcp:box, box__echo writes mcp:box"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
