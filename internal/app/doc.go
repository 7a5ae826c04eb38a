// Package app makes a running server, or one session, from a configuration: models, tools, policy, approvals, store, engine, telemetry,
// HTTP API and MCP. The command lathe adds flags and a terminal, and the public package app exports a small part of it.
//
//	cfg, err := app.LoadConfig("lathe.yaml", nil)
//	a, err := app.New(cfg, &app.Options{Tools: []lathe.Tool{weather}})
//	srv := a.HTTPServer(a.Handler())
//	…
//	a.Shutdown(ctx, srv)
//	err = a.Close()
//
// [New] is for servers. [OpenSession] is for one model and its tools without a server. The functions that make single parts ([NewModel],
// [StartTools], [NewRunner], [NewLoop]) are for programs that combine them differently.
//
// The package prints nothing, reads no flags and has no global state. It reads environment variables only for ${NAME} and LATHE_ settings
// of the configuration, for OTEL_ variables, and to pass PATH, HOME and LANG to MCP servers; every options type with an Environ field
// replaces the environment of the process.
//
// An active configuration does not change: [App.Reload] makes a new revision of models, tools and policy, and closes the previous one when
// no request and no run uses it.
package app
