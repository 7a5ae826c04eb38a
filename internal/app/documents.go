package app

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/tool/httptool"
)

// documents are OpenAPI documents that have been read, by the SHA-256 of their bytes. Reading one takes most of the time of a start
// with many operations, and a start needs it twice: to check the configuration and to make the tools. nil keeps none.
type documents map[[sha256.Size]byte]*httptool.Document

// read returns the document of those bytes, which it keeps.
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

// checked holds the documents of configurations that were checked and are not in use yet: of each until the tools of the
// configuration are made, or the configuration is collected.
var checked sync.Map // of weak.Pointer[config.Config] to documents

// checkedDocuments returns where the check of a configuration leaves its documents for [takeDocuments].
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

// takeDocuments returns the documents that the check of the configuration has read, once: they are not kept while the
// configuration is in force.
func takeDocuments(cfg *config.Config) documents {
	if docs, ok := checked.LoadAndDelete(weak.Make(cfg)); ok {
		return docs.(documents)
	}
	return nil
}
