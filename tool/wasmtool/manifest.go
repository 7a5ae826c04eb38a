package wasmtool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/yamljson"
)

// A Manifest describes a module as a tool: its definition, limits and grants. Its file is YAML or JSON of at most 256 KiB; unknown fields
// are errors. Name, Description and Allowlist are required.
type Manifest struct {
	Name         string
	Description  string
	Schema       json.RawMessage // nil: no arguments
	OutputSchema json.RawMessage // nil: outputs are not checked
	Allowlist    []string        // the fields of the output that the model may see, as [lathe.ToolSpec].Allowlist; "*": all
	Effect       lathe.Effect    // undeclared: as Writes
	Export       string          // name of the exported function; "": "tool"
	SHA256       string          // SHA-256 of the module in lower-case hexadecimal; "": any module
	Limits       Limits
	Grants       Grants
}

// Limits of a module and its calls. A limit of 0 has the default that its comment names. A module beyond ModuleBytes is refused when it is
// loaded. A module beyond Functions, FunctionBytes, TableElements or, by its declaration, MemoryPages is refused when it is compiled. A
// call beyond OutputBytes ends with tool_output_too_large, beyond Timeout with timeout, and beyond HostCalls, StdoutBytes, FileBytes,
// OpenFiles or NewFiles with execution_failed.
type Limits struct {
	Timeout       time.Duration // 0: tool_timeout of the runner
	Concurrency   int           // concurrent calls; 0: 8. A further call waits until its deadline
	OutputBytes   int           // per call; 0: 64 KiB
	ModuleBytes   int           // 0: 16 MiB
	Functions     int           // of the module; 0: 50,000
	FunctionBytes int           // of the code of each function; 0: 1 MiB
	MemoryPages   int           // of 64 KiB each, for one instance; 0: 1,024, at most 65,535
	TableElements int           // 0: 100,000
	HostCalls     int           // per call; 0: 1,000,000
	StdoutBytes   int           // per call; 0: 64 KiB. The output is discarded
	FileBytes     int           // read and written per call; 0: 64 MiB
	OpenFiles     int           // per call; 0: 64
	NewFiles      int           // created per call; 0: 1,000
}

// Grants are the resources of the host that a module may use. The zero value grants none.
type Grants struct {
	Clock  bool // false: the clock is fake and advances only when it is read
	Random bool // false: each call gets the same sequence of bytes
	Files  []FileGrant
}

// A FileGrant lets a module read a folder of the host.
type FileGrant struct {
	Path  string // folder of the host, relative to that of the manifest and within it
	Guest string // absolute path at which the module sees it, such as /data
	Write bool   // the module may also write to it
}

// A document is the YAML form of a manifest.
type document struct {
	Name         string         `yaml:"name"`
	Description  string         `yaml:"description"`
	Schema       yaml.Node      `yaml:"schema"`
	OutputSchema yaml.Node      `yaml:"output_schema"`
	Allowlist    []string       `yaml:"allowlist"`
	Effect       string         `yaml:"effect"`
	Export       string         `yaml:"export"`
	SHA256       string         `yaml:"sha256"`
	Limits       documentLimits `yaml:"limits"`
	Grants       struct {
		Clock  bool `yaml:"clock"`
		Random bool `yaml:"random"`
		Files  []struct {
			Path  string `yaml:"path"`
			Guest string `yaml:"guest"`
			Write bool   `yaml:"write"`
		} `yaml:"files"`
	} `yaml:"grants"`
}

// documentLimits is the YAML form of Limits. A limit that is not set is 0.
type documentLimits struct {
	Timeout       string `yaml:"timeout"`
	Concurrency   count  `yaml:"concurrency"`
	OutputBytes   count  `yaml:"output_bytes"`
	ModuleBytes   count  `yaml:"module_bytes"`
	Functions     count  `yaml:"functions"`
	FunctionBytes count  `yaml:"function_bytes"`
	MemoryPages   count  `yaml:"memory_pages"`
	TableElements count  `yaml:"table_elements"`
	HostCalls     count  `yaml:"host_calls"`
	StdoutBytes   count  `yaml:"stdout_bytes"`
	FileBytes     count  `yaml:"file_bytes"`
	OpenFiles     count  `yaml:"open_files"`
	NewFiles      count  `yaml:"new_files"`
}

// maxManifest is the maximum size of a manifest, in bytes, and maxCount the maximum of each number in it.
const (
	maxManifest = 256 << 10
	maxCount    = 1 << 30
)

// defaultConcurrency is the default of limits.concurrency. Each concurrent call may use the memory of one instance.
const defaultConcurrency = 8

// A count is a limit that is set: at least 1.
type count int

// UnmarshalYAML returns an error unless the value is a whole number from 1 to maxCount.
func (c *count) UnmarshalYAML(n *yaml.Node) error {
	var v int
	if err := n.Decode(&v); err != nil || v < 1 || v > maxCount {
		return fmt.Errorf("line %d: a limit is a whole number from 1 to %d", n.Line, maxCount)
	}
	*c = count(v)
	return nil
}

var (
	digest   = lazy.Regexp(`^[0-9a-f]{64}$`)
	effects  = map[string]lathe.Effect{"": lathe.EffectUndeclared, "read_only": lathe.ReadOnly, "idempotent": lathe.Idempotent, "writes": lathe.Writes}
	guestDir = lazy.Regexp(`^/[A-Za-z0-9_./-]*$`)
)

// parseManifest parses a manifest. It does not check the schema and the allowlist: [tool.Set.Add] does.
func parseManifest(text []byte) (*Manifest, error) {
	if len(text) > maxManifest {
		return nil, fmt.Errorf("the manifest is larger than %d bytes", maxManifest)
	}
	var d document
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the manifest is empty")
		}
		return nil, problem(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document in the manifest")
	}
	m := &Manifest{Name: d.Name, Description: d.Description, Allowlist: d.Allowlist, Export: cmp.Or(d.Export, "tool"), SHA256: d.SHA256}
	effect, known := effects[d.Effect]
	m.Effect = effect
	var err error
	switch {
	case m.Name == "":
		return nil, errors.New("name: it is missing")
	case m.Description == "":
		return nil, errors.New("description: it is missing: the model goes by it")
	case len(m.Allowlist) == 0:
		return nil, errors.New(`allowlist: it is missing: name the fields of the output that the model may see ("*" for all)`)
	case !known:
		return nil, errors.New("effect: want read_only, idempotent or writes")
	case m.SHA256 != "" && !digest().MatchString(m.SHA256):
		return nil, errors.New("sha256: want 64 digits of lower-case hex")
	}
	if m.Schema, err = schemaJSON(&d.Schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if m.OutputSchema, err = schemaJSON(&d.OutputSchema); err != nil {
		return nil, fmt.Errorf("output_schema: %w", err)
	}
	if m.Limits, err = d.Limits.read(); err != nil {
		return nil, err
	}
	m.Grants.Clock, m.Grants.Random = d.Grants.Clock, d.Grants.Random
	for i, f := range d.Grants.Files {
		switch {
		case !filepath.IsLocal(f.Path):
			return nil, fmt.Errorf("grants.files[%d].path: want a folder below that of the manifest", i)
		case !guestDir().MatchString(f.Guest):
			return nil, fmt.Errorf("grants.files[%d].guest: want a path such as /data", i)
		}
		m.Grants.Files = append(m.Grants.Files, FileGrant(f))
	}
	return m, nil
}

// read returns the limits, with the defaults of those that this package applies itself.
func (l *documentLimits) read() (Limits, error) {
	out := Limits{Concurrency: cmp.Or(int(l.Concurrency), defaultConcurrency), OutputBytes: cmp.Or(int(l.OutputBytes), 64<<10),
		ModuleBytes: cmp.Or(int(l.ModuleBytes), 16<<20), Functions: int(l.Functions), FunctionBytes: int(l.FunctionBytes),
		MemoryPages: int(l.MemoryPages), TableElements: int(l.TableElements), HostCalls: int(l.HostCalls), StdoutBytes: int(l.StdoutBytes),
		FileBytes: int(l.FileBytes), OpenFiles: int(l.OpenFiles), NewFiles: int(l.NewFiles)}
	if l.Timeout != "" {
		var err error
		if out.Timeout, err = time.ParseDuration(l.Timeout); err != nil || out.Timeout <= 0 {
			return out, errors.New("limits.timeout: want a duration such as 500ms or 10s")
		}
	}
	if out.MemoryPages > 65_535 {
		return out, errors.New("limits.memory_pages: at most 65535")
	}
	return out, nil
}

var unknownField = lazy.Regexp(`field (\S+) not found in type \S+`)

// problem returns the error of the parser in one line, without names of Go types.
func problem(err error) error {
	var e *yaml.TypeError
	if !errors.As(err, &e) {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	text := unknownField().ReplaceAllString(strings.Join(e.Errors, "; "), "there is no field $1")
	return errors.New(strings.ReplaceAll(text, " into wasmtool.", " into "))
}

// schemaJSON returns a schema as JSON, with its members in the order of the document, or nil if none exists.
func schemaJSON(n *yaml.Node) (json.RawMessage, error) {
	if n.IsZero() {
		return nil, nil
	}
	b, line, err := yamljson.Append(nil, n, 64)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	if b[0] != '{' {
		return nil, errors.New("want an object")
	}
	return b, nil
}
