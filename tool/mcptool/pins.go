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

// maxPinsBytes bounds the file of pins.
const maxPinsBytes = 16 << 20

// Pins is the file of the accepted definitions: it holds the hashes of each accepted tool of each server. The file has mode
// 0600, is read at each use and replaced atomically; several processes may share it. If the file cannot be read, or if other
// users may write to it, no definition counts as accepted.
type Pins struct {
	file private.File
	mu   sync.Mutex
}

// NewPins returns the pins in the file of that path. A file that is not there holds none.
func NewPins(path string) *Pins {
	return &Pins{file: private.File{Path: path, Max: maxPinsBytes, Open: true}}
}

// Path returns the path of the file.
func (p *Pins) Path() string { return p.file.Path }

// maxPinnedDefinition bounds a definition that is stored with its pin, in bytes.
const maxPinnedDefinition = 16 << 10

// pinFile is the stored form.
type pinFile struct {
	Version int                        `json:"version"`
	Servers map[string]map[string]*pin `json:"servers"` // by server, then by the server's name of the tool
}

type pin struct {
	SHA256   string    `json:"sha256"` // over the RFC 8785 form of the definition
	Parts    parts     `json:"parts"`
	Accepted time.Time `json:"accepted"`
	By       string    `json:"by"` // first_use or person
	// Definition is what was accepted, in the RFC 8785 form; absent above maxPinnedDefinition, and in pins of versions that
	// did not store it.
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

// change reads the file, changes it, and puts it back, while no other process does.
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

// verdict says what a pin says of a definition.
type verdict struct {
	ok      bool
	reason  string   // why not
	changed []string // the parts that have changed
	// accepted is the definition of the pin and at when it was accepted; nil: it is not known.
	accepted json.RawMessage
	at       time.Time
}

// judge compares the definitions of a server with their pins, by the server's names. Under mode
// TrustFirstUse a server without any pin has all of them pinned now.
func (p *Pins) judge(server string, mode PinMode, defs []*definition, now time.Time) map[string]verdict {
	out := make(map[string]verdict, len(defs))
	all := func(reason string) map[string]verdict {
		for _, d := range defs {
			out[d.name] = verdict{reason: reason}
		}
		return out
	}
	if p == nil {
		return all("there is no file of pins")
	}
	file, err := p.read()
	if err != nil {
		return all("pins: " + err.Error())
	}
	if len(file.Servers[server]) == 0 && mode != RequirePin && len(defs) > 0 {
		err := p.change(func(f *pinFile) bool {
			file = f
			if len(f.Servers[server]) > 0 { // another process was faster
				return false
			}
			f.Servers[server] = map[string]*pin{}
			for _, d := range defs {
				f.Servers[server][d.name] = d.pin("first_use", now)
			}
			return true
		})
		if err != nil {
			return all("pins: " + err.Error())
		}
	}
	for _, d := range defs {
		have := file.Servers[server][d.name]
		switch {
		case have == nil && mode == RequirePin:
			out[d.name] = verdict{reason: "not accepted yet"}
		case have == nil:
			out[d.name] = verdict{reason: "new on a server that was pinned before"}
		case have.SHA256 != d.digest:
			out[d.name] = verdict{reason: "its definition has changed", changed: d.parts.changed(have.Parts)}
		default:
			out[d.name] = verdict{ok: true}
		}
		if v := out[d.name]; have != nil {
			v.at = have.Accepted
			if sum(compact(have.Definition)) == have.SHA256 { // the file may have been edited
				v.accepted = compact(have.Definition)
			}
			out[d.name] = v
		}
	}
	return out
}

func (d *definition) pin(by string, now time.Time) *pin {
	p := &pin{SHA256: d.digest, Parts: d.parts, Accepted: now.UTC().Truncate(time.Second), By: by}
	if len(d.said) <= maxPinnedDefinition {
		p.Definition = d.said
	}
	return p
}

// compact returns the canonical form of a stored definition, which the file holds with indentation; nil if there is none.
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

// accept pins definitions as they are, by a person's word.
func (p *Pins) accept(server string, defs []*definition, now time.Time) error {
	if p == nil {
		return errors.New("there is no file of pins")
	}
	return p.change(func(f *pinFile) bool {
		if f.Servers[server] == nil {
			f.Servers[server] = map[string]*pin{}
		}
		for _, d := range defs {
			f.Servers[server][d.name] = d.pin("person", now)
		}
		return true
	})
}
