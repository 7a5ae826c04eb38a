package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// scripted answers MCP messages in memory, so that a test can use the clock of testing/synctest.
type scripted func(req *http.Request, m *testMessage) (result string, err error)

var errBroken = errors.New("broken off")

func (s scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody, Request: req}
	if req.Method != http.MethodPost {
		return resp, nil
	}
	m := &testMessage{}
	b, _ := io.ReadAll(req.Body)
	_ = json.Unmarshal(b, m)
	if len(m.ID) == 0 {
		resp.StatusCode = http.StatusAccepted
		return resp, nil
	}
	result, err := s(req, m)
	if err != nil {
		return nil, err
	}
	resp.StatusCode = http.StatusOK
	resp.Header.Set("Content-Type", "application/json")
	resp.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, result)))
	return resp, nil
}

const (
	unknownMethod = `"error":{"code":-32601,"message":"no"}`
	initialized   = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
	listed        = `"result":{"tools":[{"name":"do","inputSchema":{"type":"object"}}]}`
)

// behaviour answers each method; the methods of hang are never answered, and those of breaks break the connection.
func behaviour(hang, breaks string) scripted {
	return func(req *http.Request, m *testMessage) (string, error) {
		if slices.Contains(strings.Fields(hang), m.Method) {
			<-req.Context().Done()
			return "", req.Context().Err()
		}
		if slices.Contains(strings.Fields(breaks), m.Method) {
			return "", errBroken
		}
		switch m.Method {
		case "initialize":
			return initialized, nil
		case "tools/list":
			return listed, nil
		}
		return unknownMethod, nil
	}
}

// start_timeout is one bound for everything that precedes the first call: a server that answers nothing, or not all of it, does not hold
// a start longer, and one that does not know the newer beginning is asked in the older way within it.
func TestStartTimeoutIsOneBound(t *testing.T) {
	t.Parallel()
	const bound = 4 * time.Second
	for name, tt := range map[string]struct {
		hang, breaks string
		took         time.Duration
		ready        bool
		problem      Problem
	}{
		"answers all":                    {"", "", 0, true, ""},
		"nothing":                        {"server/discover initialize tools/list", "", bound, false, ProblemTimeout},
		"ignores the newer beginning":    {"server/discover", "", bound / 2, true, ""},
		"does not list":                  {"tools/list", "", bound, false, ProblemTimeout},
		"ignores both, late":             {"initialize", "", bound, false, ProblemTimeout},
		"neither the newer nor the list": {"server/discover tools/list", "", bound, false, ProblemTimeout},
		"breaks at the older":            {"server/discover", "initialize", bound / 2, false, ProblemEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pins := NewPins(filepath.Join(t.TempDir(), "pins.json"))
			synctest.Test(t, func(t *testing.T) {
				set, err := tool.NewSet()
				if err != nil {
					t.Fatal(err)
				}
				conf := Server{Name: "web", URL: "http://mcp.example/", Client: &http.Client{Transport: behaviour(tt.hang, tt.breaks)},
					Allowlist: []string{"*"}, StartTimeout: bound, Effects: map[string]lathe.Effect{"do": lathe.ReadOnly}, KeepAlive: -1}
				began := time.Now()
				group, err := Start(t.Context(), []Server{conf}, &Options{Pins: pins, OnChange: set.Replace})
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(began)
				st := group.Status()[0]
				if (st.State == StateReady) != tt.ready || st.Problem != tt.problem {
					t.Errorf("got %+v", st)
				}
				if took < tt.took || took > tt.took+time.Second || took > bound {
					t.Errorf("Start took %v, want %v", took, tt.took)
				}
				if tt.problem == ProblemTimeout && !strings.Contains(st.LastError, "start_timeout (4s)") {
					t.Errorf("the error does not name the setting: %s", st.LastError)
				}
				if err := group.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A server whose first answer is slow is asked in the older way at once when it is connected again.
func TestSilenceAtTheNewerBeginningIsRemembered(t *testing.T) {
	t.Parallel()
	pins := NewPins(filepath.Join(t.TempDir(), "pins.json"))
	synctest.Test(t, func(t *testing.T) {
		set, err := tool.NewSet()
		if err != nil {
			t.Fatal(err)
		}
		conf := Server{Name: "web", URL: "http://mcp.example/", Client: &http.Client{Transport: behaviour("server/discover", "")},
			Allowlist: []string{"*"}, KeepAlive: -1}
		group, err := Start(t.Context(), []Server{conf}, &Options{Pins: pins, OnChange: set.Replace})
		if err != nil {
			t.Fatal(err)
		}
		defer group.Close()
		began := time.Now()
		if err := group.Reconnect("web"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := group.Status()[0]; st.State != StateReady || st.Starts != 2 || time.Since(began) != 0 {
			t.Errorf("after %v: %+v", time.Since(began), st)
		}
	})
}
