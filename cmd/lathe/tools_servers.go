package main

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool/mcptool"
)

// serverState returns the state of a tool of the set: ready, or the state of its server.
func serverState(running *app.Servers, sp *lathe.ToolSpec) string {
	for _, st := range running.Status() {
		if sp.Origin == "mcp:"+st.Server && st.State != mcptool.StateReady {
			return string(st.State)
		}
	}
	return string(mcptool.ToolReady)
}

// others returns rows for the tools of servers that are not offered, and for servers without tools.
func others(running *app.Servers) (out []toolRow) {
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
			out = append(out, toolRow{Name: t.Name, Description: t.Description, Origin: "mcp:" + st.Server, State: string(t.State), Reason: reasonText(&t)})
		}
	}
	return out
}

// reasonText returns why a tool is not ready, with the changed parts of its definition.
func reasonText(t *mcptool.ToolStatus) string {
	reason := printable(t.Reason)
	if len(t.Changed) > 0 {
		reason += " (" + strings.Join(t.Changed, ", ") + ")"
	}
	return reason
}
