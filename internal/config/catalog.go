package config

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe/internal/text"
)

// MCP configures what the gateway offers to MCP clients besides tools.
type MCP struct {
	// What MCP clients of this gateway may read; policy knows it as the tool `resource__NAME`. See docs/mcp-serve.md.
	Resources map[string]*MCPResource `key:"resources" names:"offer" per:"resource name"`
	// Prompts that people choose in MCP clients; policy knows them as the tools `prompt__NAME`.
	Prompts map[string]*MCPPrompt `key:"prompts" names:"offer" per:"prompt name"`
}

// An MCPResource offers a text, or the files of a folder, to MCP clients.
type MCPResource struct {
	// Where clients find it, such as `docs:///`; a part `{name}` stands for any text without a slash. What the names
	// of files are put after ends in a slash. Default: `lathe:///NAME`.
	URI string `key:"uri" is:"word" also:"url"`
	// Its name for people.
	Title string `key:"title"`
	// What it is, for people and models.
	Description string `key:"description"`
	// Folder whose files are offered, without those that begin with a dot; a relative path starts at the
	// configuration file. No link leads out of it.
	Folder string `key:"folder" also:"dir path"`
	// Patterns of the files, such as `*.md`; one with a slash fits the whole path. Default: `["*"]`, all. An empty
	// list: none.
	Files []string `key:"files" unset:"all" also:"match include"` // patterns; nil: all; empty: none
	// Its text, in place of `folder`. Parts of the uri in it, as `{name}`, are filled in.
	Text string `key:"text" also:"content"`
	// What the parts may be completed to; others are read, too.
	Values map[string][]string `key:"values" per:"part of the uri to list of texts" is:"text" also:"complete"`
	// Its media type. Default: what names and first bytes of files say.
	MediaType string `key:"media_type" is:"word" also:"mime_type"`
	// What it touches, as `policy.labels` says it of tools.
	Labels []string `key:"labels" also:"label"`
	// The largest that is read.
	MaxBytes int `key:"max_bytes" default:"1MiB" is:"size" range:"1..8MiB" also:"max_file_bytes"`
}

// An MCPPrompt offers MCP clients a message with which a user can begin.
type MCPPrompt struct {
	// Its name for people.
	Title string `key:"title"`
	// What it is for.
	Description string `key:"description"`
	// What it says. Arguments in it, as `{name}`, are filled in.
	Text string `key:"text" also:"content message"`
	// What the person fills in.
	Arguments map[string]string `key:"arguments" per:"name to what it is" also:"args parameters"`
	// The arguments that must be filled in.
	Required []string `key:"required"`
	// What arguments may be completed to; others are taken, too.
	Values map[string][]string `key:"values" per:"argument to list of texts" is:"text" also:"complete"`
	// Resources that stand before the text, by uri; arguments in it are filled in.
	Resources []string `key:"resources" also:"embed"`
	// What it touches, as `policy.labels` says it of tools.
	Labels []string `key:"labels" also:"label"`
}

// checkCatalog checks the settings of resources and prompts that depend on each other.
func (l *loader) checkCatalog() {
	for name, r := range text.ByName(l.cfg.MCP.Resources) {
		base := "mcp.resources." + name
		switch {
		case r.Folder == "" && r.Text == "":
			l.at(base+".text", "a resource has a text or a folder")
		case r.Folder != "" && r.Text != "":
			l.at(base+".folder", "a resource has a text or a folder, not both")
		case r.Folder == "" && len(r.Files) > 0:
			l.at(base+".files", "files go with folder")
		}
	}
	for name, p := range text.ByName(l.cfg.MCP.Prompts) {
		base := "mcp.prompts." + name
		if p.Text == "" {
			l.at(base+".text", "a prompt has a text")
		}
		for _, argument := range append(slices.Clone(p.Required), slices.Sorted(maps.Keys(p.Values))...) {
			if _, ok := p.Arguments[argument]; !ok {
				l.at(base+".arguments", quote(argument)+" is not among the arguments of this prompt")
			}
		}
	}
}
