package app

import (
	"cmp"
	"errors"
	"os"
	"slices"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/text"
)

// A Catalog is the configured resources and prompts for MCP clients, with the open folders of the resources.
type Catalog struct {
	mcp.Catalog
	roots []*os.Root
}

// Close closes the folders.
func (c *Catalog) Close() {
	for _, r := range c.roots {
		_ = r.Close() // the folder was only read
	}
}

// Names returns the names by which policy.tools refers to the resources and prompts.
func (c *Catalog) Names() (out []string) {
	for _, r := range c.Resources {
		out = append(out, "resource__"+r.Name)
	}
	for _, p := range c.Prompts {
		out = append(out, "prompt__"+p.Name)
	}
	return out
}

// buildCatalog returns the valid resources and prompts, and the problems of the others.
func buildCatalog(cfg *config.Config) (*Catalog, []config.Problem) {
	c := &Catalog{}
	var bad []config.Problem
	trial := mcp.New(nil, nil)
	defer trial.Close()
	// replace makes next the catalog unless its last entry, which is that of key, is not valid.
	replace := func(key string, next mcp.Catalog) {
		if err := trial.Offer(&next); err != nil {
			bad = append(bad, problem(key, "%s", offerCause(err)))
			return
		}
		c.Catalog = next
	}
	for name, from := range text.ByName(cfg.MCP.Resources) {
		uri := "lathe:///" + name
		if from.Folder != "" {
			uri += "/"
		}
		r := mcp.Resource{Name: name, URI: cmp.Or(from.URI, uri), Title: from.Title, Description: from.Description,
			MediaType: from.MediaType, Labels: from.Labels, Values: from.Values, Text: from.Text, MaxBytes: from.MaxBytes}
		if from.Folder != "" {
			root, err := os.OpenRoot(besideConfig(cfg, from.Folder))
			if err != nil {
				bad = append(bad, problem("mcp.resources."+name+".folder", "%s", err))
				continue
			}
			c.roots = append(c.roots, root)
			r.Files = root.FS()
			if len(from.Files) > 0 {
				r.Match = from.Files
			}
		}
		replace("mcp.resources."+name, mcp.Catalog{Resources: append(c.Resources, r)})
	}
	for name, from := range text.ByName(cfg.MCP.Prompts) {
		p := mcp.Prompt{Name: name, Title: from.Title, Description: from.Description, Labels: from.Labels}
		for argument, description := range text.ByName(from.Arguments) {
			p.Arguments = append(p.Arguments, mcp.Argument{Name: argument, Description: description,
				Required: slices.Contains(from.Required, argument), Values: from.Values[argument]})
		}
		for _, uri := range from.Resources {
			p.Messages = append(p.Messages, mcp.PromptMessage{Resource: uri})
		}
		p.Messages = append(p.Messages, mcp.PromptMessage{Text: from.Text})
		replace("mcp.prompts."+name, mcp.Catalog{Resources: c.Resources, Prompts: append(c.Prompts, p)})
	}
	return c, bad
}

// offerCause returns the text of the error without the name of the resource, which the key of the problem contains.
func offerCause(err error) string {
	err = Cause(err)
	if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
		err = many.Unwrap()[0]
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return err.Error()
}

// OpenCatalog returns the resources and prompts of the configuration. The caller must call Close.
func OpenCatalog(cfg *config.Config) (*Catalog, error) {
	c, bad := buildCatalog(cfg)
	if len(bad) > 0 {
		c.Close()
		return nil, configError(config.Problems(bad))
	}
	return c, nil
}
