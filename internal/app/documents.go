package app

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/tool/httptool"
)

// documents caches parsed OpenAPI documents by the SHA-256 of their bytes. Parsing takes most of the time of a start with many operations,
// and a start needs each document twice: to check the configuration and to make the tools. nil caches none.
type documents map[[sha256.Size]byte]*httptool.Document

// read returns the parsed document, from the cache if possible.
func (d documents) read(doc []byte) (*httptool.Document, error) {
	sum := sha256.Sum256(doc)
	if known := d[sum]; known != nil {
		return known, nil
	}
	read, err := httptool.ReadDocument(doc)
	if err == nil && d != nil {
		d[sum] = read
	}
	return read, err
}

// checked maps configurations that have been checked and are not in use yet to their documents. An entry is removed when the tools of the
// configuration are made, or when the configuration is garbage collected.
var checked sync.Map // weak.Pointer[config.Config] → documents

// checkedDocuments returns a cache in which the check of a configuration stores documents for [takeDocuments].
func checkedDocuments(cfg *config.Config) documents {
	if len(cfg.Tools.OpenAPI) == 0 {
		return nil
	}
	key, docs := weak.Make(cfg), documents{}
	if _, again := checked.Swap(key, docs); !again {
		runtime.AddCleanup(cfg, func(key weak.Pointer[config.Config]) { checked.Delete(key) }, key)
	}
	return docs
}

// takeDocuments returns the documents that the check of the configuration has parsed, and removes them from the cache.
func takeDocuments(cfg *config.Config) documents {
	if docs, ok := checked.LoadAndDelete(weak.Make(cfg)); ok {
		return docs.(documents)
	}
	return nil
}
