package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/app"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// serverState returns the state of a tool of the set: ready, or that of its server.
func serverState(running *app.Servers, sp *lathe.ToolSpec) string {
	for _, st := range running.Status() {
		if sp.Origin == "mcp:"+st.Server && st.State != mcptool.StateReady {
			return string(st.State)
		}
	}
	return string(mcptool.ToolReady)
}

// listOthers lists the tools of servers that are not offered, and the servers that have none.
func listOthers(running *app.Servers, w io.Writer, enc *json.Encoder, asJSON bool) error {
	for _, st := range running.Status() {
		rows := []mcptool.ToolStatus{}
		for _, t := range st.Tools {
			if t.State != mcptool.ToolReady {
				rows = append(rows, t)
			}
		}
		if len(st.Tools) == 0 {
			rows = append(rows, mcptool.ToolStatus{Name: st.Server + "__*", State: mcptool.ToolState(st.State), Reason: text.FirstLine(st.LastError)})
		}
		for _, t := range rows {
			reason := printable(t.Reason)
			if len(t.Changed) > 0 {
				reason += " (" + strings.Join(t.Changed, ", ") + ")"
			}
			if asJSON {
				if err := enc.Encode(toolRow{Name: t.Name, Description: t.Description, Origin: "mcp:" + st.Server, State: string(t.State), Reason: reason}); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(w, "%s\t-\t-\tmcp:%s\t%s\t%s\n", t.Name, st.Server, t.State, reason)
		}
	}
	return nil
}
