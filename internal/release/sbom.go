package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"strings"
)

// Types of a CycloneDX 1.6 document. They have only the members that sbomOf writes.
type bom struct {
	Schema       string         `json:"$schema"`
	Format       string         `json:"bomFormat"`
	Spec         string         `json:"specVersion"`
	Serial       string         `json:"serialNumber"`
	Version      int            `json:"version"`
	Metadata     bomMetadata    `json:"metadata"`
	Components   []component    `json:"components"`
	Dependencies []dependencies `json:"dependencies"`
}

type bomMetadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Purl       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependencies struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

// sbomOf returns the SBOM of a binary: the modules that Go recorded in it, and the standard library. Go does not record which module
// requires which: the SBOM lists all of them as dependencies of the program.
func sbomOf(binary, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	content, err := hashOf(binary)
	if err != nil {
		return nil, err
	}
	program := library("application", info.Main.Path, version, "")
	program.Hashes = []hash{{"SHA-256", content}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := bom{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: bomMetadata{program}, Components: []component{library("library", "std", strings.TrimPrefix(info.GoVersion, "go"), "")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("the module %s is replaced", m.Path)
		}
		b.Components = append(b.Components, library("library", m.Path, m.Version, m.Sum))
	}
	all := dependencies{Ref: program.Ref}
	for i := range b.Components {
		all.On = append(all.On, b.Components[i].Ref)
	}
	b.Dependencies = []dependencies{all}
	id := sha256.Sum256([]byte(content + version)) // a UUID of version 8, for custom formats
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	b.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
	text, err := json.MarshalIndent(&b, "", "  ")
	return append(text, '\n'), err
}

func library(kind, path, version, sum string) component {
	purl := "pkg:golang/" + path + "@" + version
	c := component{Type: kind, Ref: purl, Name: path, Version: version, Purl: purl}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}
