package mcptool

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	aTool    = `{"name":"a","description":"A.","inputSchema":{"type":"object"}}`
	aAgain   = `{"inputSchema":{"type":"object"},"description":"A.","name":"a"}`
	aAnother = `{"name":"a","description":"Another.","inputSchema":{"type":"object"}}`
	bTool    = `{"name":"b","description":"B.","inputSchema":{"type":"object"}}`
)

// lister is a server whose list of tools has pages: by cursor, where "-" is the page of a request without one.
func lister(pages map[string]string, isNew bool) scripted {
	return func(_ *http.Request, m *testMessage) (string, error) {
		switch m.Method {
		case "server/discover":
			if isNew {
				return `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`, nil
			}
		case "initialize":
			return initialized, nil
		case "tools/list":
			var p struct{ Cursor *string }
			_ = json.Unmarshal(m.Params, &p)
			cursor := "-"
			if p.Cursor != nil {
				cursor = *p.Cursor
			}
			page, ok := pages[cursor]
			if !ok {
				return fmt.Sprintf(`"error":{"code":-32602,"message":"no such cursor %q"}`, cursor), nil
			}
			return `"result":{` + page + `,"resultType":"complete","ttlMs":60000,"cacheScope":"private"}`, nil
		}
		return unknownMethod, nil
	}
}

// An empty cursor is a cursor from 2026-07-28 on, and a definition that is listed twice is one tool if nothing in it differs.
func TestEmptyCursorNamesAPageAndEqualDefinitionsAreOneTool(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pages map[string]string
		isNew bool
		want  string // the offered tools, and those that are refused with their reason
	}{
		"one page":                         {map[string]string{"-": `"tools":[` + aTool + `]`}, true, "a"},
		"a cursor":                         {map[string]string{"-": `"tools":[` + aTool + `],"nextCursor":"x"`, "x": `"tools":[` + bTool + `]`}, true, "a b"},
		"the empty cursor":                 {map[string]string{"-": `"tools":[` + aTool + `],"nextCursor":""`, "": `"tools":[` + bTool + `]`}, true, "a b"},
		"the empty cursor, older protocol": {map[string]string{"-": `"tools":[` + aTool + `],"nextCursor":""`}, false, "a"},
		"the empty cursor as the end":      {map[string]string{"-": `"tools":[` + aTool + `],"nextCursor":""`, "": `"tools":[` + aTool + `],"nextCursor":""`}, true, "a"},
		"null":                             {map[string]string{"-": `"tools":[` + aTool + `],"nextCursor":null`}, true, "a"},
		"listed twice":                     {map[string]string{"-": `"tools":[` + aTool + `,` + aAgain + `,` + bTool + `]`}, false, "a b"},
		"listed on two pages":              {map[string]string{"-": `"tools":[` + aTool + `],"nextCursor":"x"`, "x": `"tools":[` + aAgain + `,` + bTool + `]`}, false, "a b"},
		"two tools of one name":            {map[string]string{"-": `"tools":[` + aTool + `,` + aAnother + `,` + bTool + `]`}, false, "b; a: the server has two tools of that name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := httpConf("http://mcp.example/")
			conf.Client = &http.Client{Transport: lister(tt.pages, tt.isNew)}
			r := newRig(t, nil, conf)
			var ready, refused []string
			states := r.states()
			for _, name := range slices.Sorted(maps.Keys(states)) {
				switch st := states[name]; st.State {
				case ToolReady:
					ready = append(ready, st.Remote)
				default:
					refused = append(refused, "; "+st.Remote+": "+st.Reason)
				}
			}
			if got := strings.Join(ready, " ") + strings.Join(refused, ""); got != tt.want {
				t.Errorf("got %q, want %q; %+v", got, tt.want, r.group.Status()[0])
			}
		})
	}
}
