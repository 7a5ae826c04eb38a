package oauth

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/private"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxStoreBytes limits the size of the file of tokens.
const maxStoreBytes = 16 << 20

// A Store stores tokens in a file. The file is read whenever a token is needed, has mode 0600, and is replaced as a whole; several
// processes may share it. A file that other users may read is not used.
type Store struct {
	file private.File
	mu   sync.Mutex
	mem  storeFile // content if there is no path
}

// A StoreError means that the file of tokens is unusable. Its text contains the path, which operators may see and models may not.
type StoreError struct{ Err error }

func (e *StoreError) Error() string { return "the file of tokens: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *StoreError) Unwrap() error { return e.Err }

// NewStore returns a store with the file at path, or a store in memory if path is "". A missing file is an empty store.
func NewStore(path string) *Store {
	return &Store{file: private.File{Path: path, Max: maxStoreBytes}, mem: storeFile{Version: storeVersion, Servers: map[string]entry{}}}
}

// storeFile is the format of the file.
type storeFile struct {
	Version int              `json:"version"`
	Servers map[string]entry `json:"servers"` // by name of the entry
}

const storeVersion = 1

// An entry is the stored data for one server. Its tokens are valid only for URL and Identity, and its client only for Issuer.
type entry struct {
	URL           string       `json:"url"`                // configured URL of the server
	Identity      string       `json:"identity,omitempty"` // identity with which the tokens were obtained
	Resource      string       `json:"resource,omitempty"`
	Issuer        string       `json:"issuer,omitempty"`
	TokenEndpoint string       `json:"token_endpoint,omitempty"`
	Client        registration `json:"client"`
	AccessToken   string       `json:"access_token,omitempty"`
	RefreshToken  string       `json:"refresh_token,omitempty"`
	Expires       time.Time    `json:"expires,omitzero"`
	Scopes        []string     `json:"scopes,omitempty"`
	Bound         bool         `json:"bound,omitempty"` // written by earlier versions: the token is bound to a key; such an entry is not used
	// Requested by the server for the next login: whether, with which scopes and metadata URL.
	LoginRequested  bool     `json:"wanted,omitempty"`
	RequestedScopes []string `json:"want,omitempty"`
	Metadata        string   `json:"metadata,omitempty"`
}

func (s *Store) read() (*storeFile, error) {
	empty := &storeFile{Version: storeVersion, Servers: map[string]entry{}}
	b, err := s.file.Read()
	if err != nil || b == nil {
		return empty, err
	}
	file := &storeFile{}
	if rawjson.Check(b, rawjson.Limits{}) != nil || json.Unmarshal(b, file) != nil || file.Version != storeVersion {
		return nil, fmt.Errorf("%s is damaged, or of another version: remove it and log in again", s.file.Path)
	}
	if file.Servers == nil {
		file.Servers = empty.Servers
	}
	return file, nil
}

// get returns the entry with this name, or the zero entry.
func (s *Store) get(name string) (entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file.Path == "" {
		return s.mem.Servers[name], nil
	}
	file, err := s.read()
	if err != nil {
		return entry{}, &StoreError{err}
	}
	return file.Servers[name], nil
}

// change replaces the entry with this name by the result of fn for the stored entry, while other processes cannot change the file. fn returns
// stored if the entry must not change, and nil to remove it.
func (s *Store) change(name string, fn func(stored *entry) *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	apply := func(f *storeFile) (changed bool) {
		stored := f.Servers[name]
		next := fn(&stored)
		if next == &stored {
			return false
		}
		if next == nil {
			delete(f.Servers, name)
		} else {
			f.Servers[name] = *next
		}
		return true
	}
	if s.file.Path == "" {
		apply(&s.mem)
		return nil
	}
	unlock, err := s.file.Lock("")
	if err != nil {
		return &StoreError{err}
	}
	defer unlock()
	file, err := s.read()
	if err != nil {
		return &StoreError{err}
	}
	if !apply(file) {
		return nil
	}
	if err := s.write(file); err != nil {
		return &StoreError{err}
	}
	return nil
}

// lock prevents other processes from renewing the token of an entry. It blocks while another process has the lock.
func (s *Store) lock(name string) (unlock func(), err error) {
	if s.file.Path == "" {
		return func() {}, nil
	}
	if unlock, err = s.file.Lock("." + name); err != nil {
		return nil, &StoreError{err}
	}
	return unlock, nil
}

func (s *Store) write(file *storeFile) error {
	b, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	return s.file.Replace(append(b, '\n'))
}
