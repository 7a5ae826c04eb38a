package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/private"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxPinsBytes is the maximum size of the pins file, in bytes.
const maxPinsBytes = 16 << 20

// Pins are the tool definitions that operators have accepted, stored as hashes in a file of mode 0600. The file is read at each use and
// replaced atomically, so several processes may share it. If it cannot be read, or other users may write to it, no definition counts as
// accepted.
type Pins struct {
	file private.File
	mu   sync.Mutex
}

// NewPins returns the pins in the file at path. It does not read the file. A missing file contains no pins and is created by the first
// accept.
func NewPins(path string) *Pins {
	return &Pins{file: private.File{Path: path, Max: maxPinsBytes, Open: true}}
}

// Path returns the path of the file.
func (p *Pins) Path() string { return p.file.Path }

var errNoPins = errors.New("there is no file of pins")

// maxPinnedDefinition is the maximum size of a definition that is stored with its pin, in bytes.
const maxPinnedDefinition = 16 << 10

// pinFile is the stored form.
type pinFile struct {
	Version int                        `json:"version"`
	Servers map[string]map[string]*pin `json:"servers"` // by server, then by the server's name of the tool
}

type pin struct {
	SHA256   string    `json:"sha256"` // of the definition in RFC 8785 form
	Parts    parts     `json:"parts"`
	Accepted time.Time `json:"accepted"`
	By       string    `json:"by"` // first_use or person
	// Definition is the accepted definition in RFC 8785 form. It is absent above maxPinnedDefinition, and in pins of versions that did not
	// store it.
	Definition json.RawMessage `json:"definition,omitempty"`
}

const pinVersion = 1

func (p *Pins) read() (*pinFile, error) {
	empty := &pinFile{Version: pinVersion, Servers: map[string]map[string]*pin{}}
	b, err := p.file.Read()
	if err != nil || b == nil {
		return empty, err
	}
	if err := rawjson.Check(b, rawjson.Limits{}); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", p.file.Path, err)
	}
	file := &pinFile{}
	if err := json.Unmarshal(b, file); err != nil || file.Version != pinVersion {
		return nil, fmt.Errorf("%s is damaged, or of another version", p.file.Path)
	}
	for _, tools := range file.Servers {
		for name, one := range tools {
			if one == nil || len(one.SHA256) != 64 {
				return nil, fmt.Errorf("%s is damaged: the pin of %.80q", p.file.Path, name)
			}
		}
	}
	if file.Servers == nil {
		file.Servers = empty.Servers
	}
	return file, nil
}

// change reads the file, changes it and replaces it, under a lock for all processes.
func (p *Pins) change(fn func(*pinFile) (changed bool)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	unlock, err := p.file.Lock("")
	if err != nil {
		return err
	}
	defer unlock()
	file, err := p.read()
	if err != nil || !fn(file) {
		return err
	}
	return p.write(file)
}

func (p *Pins) write(file *pinFile) error {
	b, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	return p.file.Replace(append(b, '\n'))
}

// set pins the definitions.
func (f *pinFile) set(server string, defs []*definition, by string, now time.Time) {
	if f.Servers[server] == nil {
		f.Servers[server] = map[string]*pin{}
	}
	for _, d := range defs {
		f.Servers[server][d.name] = d.pin(by, now)
	}
}

// A verdict is the result of the comparison of a definition with its pin.
type verdict struct {
	ok      bool
	reason  string   // the reason if ok is false
	changed []string // names of the changed parts
	// accepted is the definition of the pin, or nil if it is not known, and at the time when it was accepted.
	accepted json.RawMessage
	at       time.Time
}

// judge compares the definitions of a server with their pins, by the server's names. In mode TrustFirstUse it pins all definitions of a
// server without any pin.
func (p *Pins) judge(server string, mode PinMode, defs []*definition, now time.Time) map[string]verdict {
	out := make(map[string]verdict, len(defs))
	pinned, err := p.loadPins(server, mode, defs, now)
	for _, d := range defs {
		if err != nil {
			out[d.name] = verdict{reason: err.Error()}
		} else {
			out[d.name] = pinned[d.name].judge(d, mode)
		}
	}
	return out
}

// loadPins returns the pins of a server, by its names of the tools. If the server has none, it pins all definitions, unless mode is RequirePin.
func (p *Pins) loadPins(server string, mode PinMode, defs []*definition, now time.Time) (map[string]*pin, error) {
	if p == nil {
		return nil, errNoPins
	}
	file, err := p.read()
	if err == nil && len(file.Servers[server]) == 0 && mode != RequirePin && len(defs) > 0 {
		err = p.change(func(f *pinFile) bool {
			file = f
			if len(f.Servers[server]) > 0 { // another process has stored pins in the meantime
				return false
			}
			f.set(server, defs, "first_use", now)
			return true
		})
	}
	if err != nil {
		return nil, fmt.Errorf("pins: %w", err)
	}
	return file.Servers[server], nil
}

// judge compares a definition with its pin, which is nil if the definition has none.
func (p *pin) judge(d *definition, mode PinMode) verdict {
	switch {
	case p == nil && mode == RequirePin:
		return verdict{reason: "not accepted yet"}
	case p == nil:
		return verdict{reason: "new on a server that was pinned before"}
	}
	v := verdict{ok: p.SHA256 == d.digest, at: p.Accepted}
	if !v.ok {
		v.reason, v.changed = "its definition has changed", d.parts.changed(p.Parts)
	}
	if accepted := compact(p.Definition); sum(accepted) == p.SHA256 { // false if the file was edited
		v.accepted = accepted
	}
	return v
}

func (d *definition) pin(by string, now time.Time) *pin {
	p := &pin{SHA256: d.digest, Parts: d.parts, Accepted: now.UTC().Truncate(time.Second), By: by}
	if len(d.canonical) <= maxPinnedDefinition {
		p.Definition = d.canonical
	}
	return p
}

// compact returns the canonical form of a stored definition, which is indented in the file; nil if none exists.
func compact(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	canonical, err := rawjson.AppendCanonical(nil, raw)
	if err != nil {
		return nil
	}
	return canonical
}

// accept pins the current definitions, as a person has decided.
func (p *Pins) accept(server string, defs []*definition, now time.Time) error {
	if p == nil {
		return errNoPins
	}
	return p.change(func(f *pinFile) bool {
		f.set(server, defs, "person", now)
		return true
	})
}
