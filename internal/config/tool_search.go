package config

// ToolSearch configures tool search: whether runs send the definitions of all tools, or only some and the tool tool_search.
type ToolSearch struct {
	// `off`: a run sends the definitions of all its tools. `on`: it sends a few and the tool `tool_search`, with which the
	// model finds the others; their definitions are sent from then on. `auto`: as `on` if the tools are many, by
	// `above_tools` and `above_bytes`. See docs/tool-search.md.
	Mode string `key:"mode" default:"off" of:"off=none,false,never auto on=true,always"`
	// With `auto`: a run with more tools than this searches.
	AboveTools int `key:"above_tools" default:"40" range:"1.." also:"min_tools threshold"`
	// With `auto`: a run whose definitions are larger than this, all together, searches.
	AboveBytes int `key:"above_bytes" default:"40KiB" is:"size" range:"1.."`
	// Tools whose definitions are always sent, by name, or patterns (`*`: any characters, `?`: one).
	Always []string `key:"always" is:"pattern" also:"pinned except never_defer"`
	// Tools that one run may load. `max_tools` and `max_tools_bytes` of `tool_calling` bound all definitions that are sent.
	MaxLoaded int `key:"max_loaded" default:"64" range:"1.."`
	// Maximum number of tools of the server, in place of `tool_calling.max_tools`.
	MaxDeferred int `key:"max_deferred" default:"10000" range:"1.." also:"max_tools"`
	// Maximum size of the definitions of all tools, in place of `tool_calling.max_tools_bytes`.
	MaxDeferredBytes int `key:"max_deferred_bytes" default:"64MiB" is:"size" range:"1.." also:"max_tools_bytes"`
}
