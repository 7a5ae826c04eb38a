package app

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
	"github.com/lathe-run/lathe/preset"
	"github.com/lathe-run/lathe/transform"
)

// A patchSource is a patch and its name in the configuration.
type patchSource struct {
	name  string
	patch *preset.Patch
}

// checkServer checks the keys of a model entry that describe what its server accepts. It calls note for each problem.
func checkServer(m *config.Model, note func(key string, err error)) {
	if key, err := destination.Check(m.Destination, m.Accepts); err != nil {
		note(key, err)
	}
	for _, name := range m.Pass {
		if openai.Reads(name) {
			note("pass", fmt.Errorf("%.64q is a member that Lathe reads itself, in this or in another spelling", name))
		}
	}
}

// expandModel merges the profile, the presets and the keys of a model entry.
func expandModel(m *config.Model, isSet func(string) bool) config.Expansion {
	var out config.Expansion
	note := func(key string, err error) {
		out.Problems = append(out.Problems, problem(key, "%s", strings.TrimPrefix(Cause(err).Error(), key+": ")))
	}
	var sources []patchSource
	if m.Profile != "" {
		if p, err := preset.For(m.Profile, cmp.Or(m.Model, m.Name)); err != nil {
			note("profile", err)
		} else {
			sources = append(sources, patchSource{"profile " + m.Profile, p})
		}
	}
	for _, name := range m.Presets {
		if p, err := preset.Named(name); err != nil {
			note("presets", err)
		} else {
			sources = append(sources, patchSource{"preset " + name, p})
		}
	}
	sources = append(sources, patchSource{"models." + m.Name, ownPatch(m, isSet, note)})
	if len(out.Problems) > 0 {
		return out
	}
	var patches []*preset.Patch
	for _, s := range sources {
		patches = append(patches, s.patch)
	}
	merged := preset.Merge(patches...)
	for _, e := range merged.Entries() {
		set := config.Expanded{Key: e.Key, Value: e.Value, Run: e.Run, Whole: e.Key == "request_overrides"}
		for _, s := range sources { // the last one wins
			if s.patch.Sets(e.Key) {
				set.From = s.name
			}
		}
		if kind, ok := strings.CutSuffix(e.Key, "_transforms"); ok {
			set.Key, set.Whole = "transforms."+kind, true
		}
		out.Set = append(out.Set, set)
	}
	out.Set = append(out.Set, listPrice(m, isSet, merged)...)
	return out
}

// ownPatch returns the patch with the keys of a model entry itself. It calls note for those that are not valid.
func ownPatch(m *config.Model, isSet func(string) bool, note func(key string, err error)) *preset.Patch {
	own := &preset.Patch{RequestOverrides: m.RequestOverrides}
	if err := preset.CheckOverrides(m.RequestOverrides); err != nil {
		note("request_overrides", err)
		own.RequestOverrides = nil
	}
	checkServer(m, note)
	for _, kind := range transform.Kinds() {
		key := "transforms." + string(kind)
		if !isSet(key) {
			continue
		}
		names := []string{}
		for _, name := range (*transform.List)(&m.Transforms).Of(kind) {
			right, err := transform.Check(kind, name)
			if err != nil {
				note(key, err)
				continue
			}
			names = append(names, right)
		}
		setTransforms(own, kind, names)
	}
	return own
}

// listPrice returns the vendor's list price and longest answer of a model, if the model's server is that of the vendor. If the
// configuration sets any part of the price, the list price is not used. merged has the settings of profile and presets.
func listPrice(m *config.Model, isSet func(string) bool, merged *preset.Patch) (out []config.Expanded) {
	if m.Provider == "sim" {
		return nil
	}
	base := m.BaseURL.Reveal()
	if base == "" && merged.BaseURL != nil {
		base = *merged.BaseURL
	}
	if base == "" {
		base = upstreams.Of(m.Wire).Vendor().BaseURL
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil // the check of the address reports it
	}
	list, ok := price.FindListPrice(u.Hostname(), cmp.Or(m.Model, m.Name))
	if !ok {
		return nil
	}
	from := "list price read on " + list.Read
	prices := []config.Expanded{
		{Key: "price.input", Value: list.Price.Input.String(), From: from}, {Key: "price.cached_input", Value: list.Price.CachedInput.String(), From: from},
		{Key: "price.cache_write", Value: list.Price.CacheWrite.String(), From: from}, {Key: "price.output", Value: list.Price.Output.String(), From: from}}
	if !slices.ContainsFunc(prices, func(e config.Expanded) bool { return isSet(e.Key) }) {
		out = prices
	}
	if list.MaxOutput > 0 {
		out = append(out, config.Expanded{Key: "output_limit", Value: strconv.FormatInt(list.MaxOutput, 10), From: "limit read on " + list.Read})
	}
	return out
}

func setTransforms(p *preset.Patch, kind transform.Kind, names []string) {
	switch kind {
	case transform.Message:
		p.MessageTransforms = names
	case transform.Tool:
		p.ToolTransforms = names
	case transform.Response:
		p.ResponseTransforms = names
	case transform.ToolCall:
		p.ToolCallTransforms = names
	default:
		p.ToolResultTransforms = names
	}
}

// withTransforms adds the transforms of a model entry to a model.
func withTransforms(cfg *config.Config, m *config.Model, model lathe.Model) (lathe.Model, error) {
	chain, err := transform.New(transform.List(m.Transforms),
		&transform.Options{MaxPayloadBytes: cfg.Limits().MaxPayloadBytes, ShowUnreadableCalls: cfg.ToolCalling.ShowUnreadableCalls})
	if err != nil {
		return nil, invalidConfig("model %s: %w", m.Name, Cause(err))
	}
	return transform.Wrap(model, chain), nil
}

// Overrides returns the members that request_overrides adds to the requests to a model.
func Overrides(m *config.Model) []lathe.Member {
	return (&preset.Patch{RequestOverrides: m.RequestOverrides}).Overrides()
}
