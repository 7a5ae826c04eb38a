package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// mostKeys is the largest number of keys that is measured.
const mostKeys = 100_000

// keys measures the start of an application with many keys of clients, and a request with one of them.
func keys(s *settings) (*Chart, error) {
	c := &Chart{Title: "Keys of clients", Size: "keys in the configuration"}
	c.note("The keys are in a file of their own (serve.keys_file).")
	sizes := steps(10, mostKeys)
	if s.quick {
		sizes = []int{1, 10, 100}
	}
	return c, s.operations(c, "CPU time", sizes, []measurement{
		{name: "read the configuration and start", prepare: func(n int) (func() error, func(), error) {
			path, err := s.keysConfig(n, nowhere)
			return func() error {
				a, err := newApp(path)
				if err != nil {
					return err
				}
				return a.Close()
			}, nil, err
		}},
		{name: "a request", prepare: func(n int) (func() error, func(), error) {
			return askApp(clientKey(n/2), func(model string) (string, error) { return s.keysConfig(n, model) })
		}},
	})
}

func clientKey(i int) string { return fmt.Sprintf("key-of-client-%08d", i) }

// keysConfig writes a configuration and a file with n keys, in a folder of their own.
func (s *settings) keysConfig(n int, model string) (string, error) {
	dir, err := os.MkdirTemp(s.dir, "keys")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "c%d %x client\n", i, sha256.Sum256([]byte(clientKey(i))))
	}
	if err := os.WriteFile(filepath.Join(dir, "keys.txt"), b.Bytes(), 0o600); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "lathe.yaml")
	return path, os.WriteFile(path, []byte("models: {m: {base_url: \""+model+"\", max_attempts: 1}}\nserve: {keys_file: keys.txt}\nkeys: {client: {}}\n"), 0o600)
}
