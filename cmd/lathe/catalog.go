package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/mcpserve"
)

// catalog is what MCP clients find besides tools, with the folders that it keeps open.
type catalog struct {
	mcpserve.Catalog
	roots []*os.Root
}

func (c *catalog) close() {
	for _, r := range c.roots {
		_ = r.Close() // it was only read
	}
}

// names are those under which policy knows resources and prompts.
func (c *catalog) names() (out []string) {
	for i := range c.Resources {
		out = append(out, "resource__"+c.Resources[i].Name)
	}
	for i := range c.Prompts {
		out = append(out, "prompt__"+c.Prompts[i].Name)
	}
	return out
}

// buildCatalog makes what the configuration offers. dir is the folder of the configuration file.
func buildCatalog(cfg *config.Config, dir string) (*catalog, []config.Problem) {
	c := &catalog{}
	var bad []config.Problem
	trial := mcpserve.New(nil, nil)
	defer trial.Close()
	for _, name := range slices.Sorted(maps.Keys(cfg.MCP.Resources)) {
		from := cfg.MCP.Resources[name]
		r := mcpserve.Resource{Name: name, URI: cmp.Or(from.URI, defaultURI(name, from)), Title: from.Title, Description: from.Description,
			MediaType: from.MediaType, Labels: from.Labels, Values: from.Values, Text: from.Text, MaxBytes: from.MaxBytes}
		if from.Folder != "" {
			folder := from.Folder
			if !filepath.IsAbs(folder) {
				folder = filepath.Join(dir, folder)
			}
			root, err := os.OpenRoot(folder)
			if err != nil {
				bad = append(bad, config.Problem{Key: "mcp.resources." + name + ".folder", Message: err.Error()})
				continue
			}
			c.roots = append(c.roots, root)
			r.Files = root.FS()
			if len(from.Files) > 0 {
				r.Match = from.Files
			}
		}
		c.Resources = append(c.Resources, r)
		if err := trial.Offer(&c.Catalog); err != nil {
			bad = append(bad, config.Problem{Key: "mcp.resources." + name, Message: offerCause(err)})
			c.Resources = c.Resources[:len(c.Resources)-1]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.MCP.Prompts)) {
		from := cfg.MCP.Prompts[name]
		p := mcpserve.Prompt{Name: name, Title: from.Title, Description: from.Description, Labels: from.Labels}
		for _, argument := range slices.Sorted(maps.Keys(from.Arguments)) {
			p.Arguments = append(p.Arguments, mcpserve.Argument{Name: argument, Description: from.Arguments[argument],
				Required: slices.Contains(from.Required, argument), Values: from.Values[argument]})
		}
		for _, uri := range from.Resources {
			p.Messages = append(p.Messages, mcpserve.PromptMessage{Resource: uri})
		}
		p.Messages = append(p.Messages, mcpserve.PromptMessage{Text: from.Text})
		c.Prompts = append(c.Prompts, p)
		if err := trial.Offer(&c.Catalog); err != nil {
			bad = append(bad, config.Problem{Key: "mcp.prompts." + name, Message: offerCause(err)})
			c.Prompts = c.Prompts[:len(c.Prompts)-1]
		}
	}
	return c, bad
}

func defaultURI(name string, r *config.MCPResource) string {
	if r.Folder != "" {
		return "lathe:///" + name + "/"
	}
	return "lathe:///" + name
}

// offerCause is what is wrong, without the name that the key says already.
func offerCause(err error) string {
	if e := (*lathe.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
		err = many.Unwrap()[0]
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return err.Error()
}

// configDir is the folder of the configuration file.
func configDir(path string) string { return filepath.Dir(configFile(path)) }

// openCatalog is buildCatalog of a configuration that was checked.
func openCatalog(cfg *config.Config, configPath string) (*catalog, error) {
	c, bad := buildCatalog(cfg, configDir(configPath))
	if len(bad) > 0 {
		c.close()
		return nil, &exitError{exitConfig, config.Problems(bad)}
	}
	return c, nil
}

// serveCatalog has a server offer it.
func serveCatalog(s *mcpserve.Server, c *catalog) error {
	if err := s.Offer(&c.Catalog); err != nil {
		return &exitError{exitConfig, fmt.Errorf("mcp: %w", causeOf(err))}
	}
	return nil
}
