package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxStoreBytes bounds the file of tokens.
const maxStoreBytes = 16 << 20

// A Store is the file of tokens. It is read anew when a token is needed, has mode 0600, and is
// replaced as a whole; several processes may share it. One that others may read is not used.
type Store struct {
	path string
	mu   sync.Mutex
	mem  storeFile // where there is no path
}

// NewStore returns the store in the file of that path, and one in memory for "". A file that is not
// there holds nothing.
func NewStore(path string) *Store {
	return &Store{path: path, mem: storeFile{Version: storeVersion, Servers: map[string]entry{}}}
}

// storeFile is the stored form.
type storeFile struct {
	Version int              `json:"version"`
	Servers map[string]entry `json:"servers"` // by name
}

const storeVersion = 1

// An entry is what is kept of one server. Its tokens are good for URL alone, its client for Issuer alone.
type entry struct {
	URL           string       `json:"url"` // of the server, as it is configured
	Resource      string       `json:"resource,omitempty"`
	Issuer        string       `json:"issuer,omitempty"`
	TokenEndpoint string       `json:"token_endpoint,omitempty"`
	Client        registration `json:"client"`
	AccessToken   string       `json:"access_token,omitempty"`
	RefreshToken  string       `json:"refresh_token,omitempty"`
	Expires       time.Time    `json:"expires,omitzero"`
	Scopes        []string     `json:"scopes,omitempty"`
	Bound         bool         `json:"bound,omitempty"` // the server wants tokens that are bound to a key
	Key           string       `json:"key,omitempty"`
	// What the server has asked for since, for the next login.
	Wanted   bool     `json:"wanted,omitempty"`
	Want     []string `json:"want,omitempty"`
	Metadata string   `json:"metadata,omitempty"`
}

func (s *Store) read() (*storeFile, error) {
	empty := &storeFile{Version: storeVersion, Servers: map[string]entry{}}
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s may be read by others than its owner: chmod 600 it", s.path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxStoreBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxStoreBytes:
		return nil, fmt.Errorf("%s is larger than %d bytes", s.path, maxStoreBytes)
	}
	file := &storeFile{}
	if rawjson.Check(b, rawjson.Limits{}) != nil || json.Unmarshal(b, file) != nil || file.Version != storeVersion {
		return nil, fmt.Errorf("%s is damaged, or of another version: remove it and log in again", s.path)
	}
	if file.Servers == nil {
		file.Servers = empty.Servers
	}
	return file, nil
}

// get returns the entry of a name; the zero entry where there is none.
func (s *Store) get(name string) (entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" {
		return s.mem.Servers[name], nil
	}
	file, err := s.read()
	if err != nil {
		return entry{}, err
	}
	return file.Servers[name], nil
}

// change replaces the entry of a name by what fn makes of the one that is kept, while no other
// process does; nil removes it, and keep leaves it as it is.
func (s *Store) change(name string, fn func(kept entry) (e *entry, keep bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := func(f *storeFile) (changed bool) {
		e, keep := fn(f.Servers[name])
		switch {
		case keep:
			return false
		case e == nil:
			delete(f.Servers, name)
		default:
			f.Servers[name] = *e
		}
		return true
	}
	if s.path == "" {
		set(&s.mem)
		return nil
	}
	unlock, err := s.hold(s.path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	file, err := s.read()
	if err != nil {
		return err
	}
	if !set(file) {
		return nil
	}
	return s.write(file)
}

// lock keeps other processes from renewing the token of a name meanwhile. It waits for the one that does.
func (s *Store) lock(name string) (unlock func(), err error) {
	if s.path == "" {
		return func() {}, nil
	}
	return s.hold(s.path + "." + name + ".lock")
}

func (s *Store) hold(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // closing gives the lock up
}

func (s *Store) write(file *storeFile) error {
	b, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(s.path), ".tokens-*") // 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(b, '\n'))
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), s.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
