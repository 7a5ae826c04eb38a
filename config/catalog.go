package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// MCP says what MCP clients of this server find besides tools.
type MCP struct {
	Resources map[string]*MCPResource // by name
	Prompts   map[string]*MCPPrompt
}

// An MCPResource is a text, or the files of a folder.
type MCPResource struct {
	URI, Title, Description, MediaType string
	Folder                             string   // as the file writes it
	Files                              []string // patterns; nil: all; empty: none
	Text                               string
	Labels                             []string
	Values                             map[string][]string // of the parts of the uri
	MaxBytes                           int
}

// An MCPPrompt is a message to begin with.
type MCPPrompt struct {
	Title, Description string
	Text               string
	Arguments          map[string]string // what they are, by name
	Required           []string
	Values             map[string][]string
	Resources          []string // by URI, in front of the text
	Labels             []string
}

// keys returns the rows of one resource, bound to r.
func (r *MCPResource) keys() []key {
	return []key{
		{"uri", "", word(&r.URI), "Where clients find it, such as `docs:///`; a part `{name}` stands for any text without a slash. What the names of files are put after ends in a slash. Default: `lathe:///NAME`.", "url"},
		{"title", "", text(&r.Title), "Its name for people.", ""},
		{"description", "", text(&r.Description), "What it is, for people and models.", ""},
		{"folder", "", text(&r.Folder), "Folder whose files are offered, without those that begin with a dot; a relative path starts at the configuration file. No link leads out of it.", "dir path"},
		{"files", "", grant(&r.Files, isName), "Patterns of the files, such as `*.md`; one with a slash fits the whole path. Default: `[\"*\"]`, all. An empty list: none.", "match include"},
		{"text", "", text(&r.Text), "Its text, in place of `folder`. Parts of the uri in it, as `{name}`, are filled in.", "content"},
		{"values", "", table(&r.Values, "part of the uri", "list of texts", isName, newTexts), "What the parts may be completed to; others are read, too.", "complete"},
		{"media_type", "", word(&r.MediaType), "Its media type. Default: what names and first bytes of files say.", "mime_type"},
		{"labels", "", names(&r.Labels), "What it touches, as `policy.labels` says it of tools.", "label"},
		{"max_bytes", "1MiB", size(&r.MaxBytes, 1, 8<<20), "The largest that is read.", "max_file_bytes"},
	}
}

// keys returns the rows of one prompt, bound to p.
func (p *MCPPrompt) keys() []key {
	return []key{
		{"title", "", text(&p.Title), "Its name for people.", ""},
		{"description", "", text(&p.Description), "What it is for.", ""},
		{"text", "", text(&p.Text), "What it says. Arguments in it, as `{name}`, are filled in.", "content message"},
		{"arguments", "", table(&p.Arguments, "name", "what it is", isName, newText), "What the person fills in.", "args parameters"},
		{"required", "", names(&p.Required), "The arguments that must be filled in.", ""},
		{"values", "", table(&p.Values, "argument", "list of texts", isName, newTexts), "What arguments may be completed to; others are taken, too.", "complete"},
		{"resources", "", names(&p.Resources), "Resources that stand before the text, by uri; arguments in it are filled in.", "embed"},
		{"labels", "", names(&p.Labels), "What it touches, as `policy.labels` says it of tools.", "label"},
	}
}

func newTexts(p *[]string) value { return texts(p) }

// checkCatalog looks at what the keys of resources and prompts say together.
func (l *loader) checkCatalog() {
	for _, name := range slices.Sorted(maps.Keys(l.cfg.MCP.Resources)) {
		r, base := l.cfg.MCP.Resources[name], "mcp.resources."+name
		switch {
		case r.Folder == "" && r.Text == "":
			l.at(base+".text", "a resource has a text or a folder")
		case r.Folder != "" && r.Text != "":
			l.at(base+".folder", "a resource has a text or a folder, not both")
		case r.Folder == "" && len(r.Files) > 0:
			l.at(base+".files", "files go with folder")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.cfg.MCP.Prompts)) {
		p, base := l.cfg.MCP.Prompts[name], "mcp.prompts."+name
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

// isOfferName takes the names of resources and prompts.
func isOfferName(s string) error {
	if isToolName(s) != nil || len(s) > 50 || strings.Contains(s, "__") {
		return errors.New("a name has 1 to 50 letters, digits, _ and -, with no __ in it")
	}
	return nil
}
