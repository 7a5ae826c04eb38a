package tool

import (
	"bytes"
	"container/list"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// readCache is stage 8. If the tool only reads and declares a CacheTTL, it uses the cached output of an equal call of the same principal.
func readCache(c *call) {
	w, spec := c.w, c.entry.spec
	if spec.CacheTTL <= 0 || spec.Effect != lathe.ReadOnly || w.settings.Executor == lathe.ExecutorNoop {
		return
	}
	canon, err := rawjson.AppendCanonical(nil, c.args)
	if err != nil {
		return
	}
	c.cacheKey = cacheKey{c.entry, w.info.Principal, string(canon)}
	data, blobs, ok := w.r.cache.get(c.cacheKey, w.r.now())
	if ok {
		c.data, c.blobs, c.source = data, blobs, fromCache
	}
}

// writeCache caches the output of a successful call. It does not cache a truncated output, or one in which text that looks like a key was
// replaced.
func writeCache(c *call) {
	if c.cacheKey.entry == nil || c.source != fromTool || c.toolCode != "" || c.truncated || c.hidden {
		return
	}
	data := bytes.Clone(c.data)
	if c.text {
		data = rawjson.AppendQuote(nil, string(c.data))
	}
	c.w.r.cache.put(c.cacheKey, data, c.blobs, c.w.r.now().Add(c.entry.spec.CacheTTL))
}

// A cache contains redacted outputs. If it is full, it drops the least recently used one.
type cache struct {
	limit int // in bytes

	mu    sync.Mutex
	size  int
	items map[cacheKey]*list.Element
	order *list.List // of *cacheItem, most recently used first
}

type cacheKey struct {
	entry     *entry
	principal string
	args      string // in canonical form
}

type cacheItem struct {
	key     cacheKey
	data    []byte // must not be changed
	blobs   []lathe.Blob
	expires time.Time
	size    int
}

// itemOverhead is the estimated memory of an item besides its data, in bytes.
const itemOverhead = 256

func newCache(limit int) *cache {
	return &cache{limit: limit, items: map[cacheKey]*list.Element{}, order: list.New()}
}

func (s *cache) get(key cacheKey, now time.Time) (data []byte, blobs []lathe.Blob, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	el := s.items[key]
	if el == nil {
		return nil, nil, false
	}
	it := el.Value.(*cacheItem)
	if !now.Before(it.expires) {
		s.drop(el)
		return nil, nil, false
	}
	s.order.MoveToFront(el)
	return it.data, it.blobs, true
}

func (s *cache) put(key cacheKey, data []byte, blobs []lathe.Blob, expires time.Time) {
	it := &cacheItem{key: key, data: data, blobs: blobs, expires: expires,
		size: itemOverhead + len(key.principal) + len(key.args) + len(data)}
	for _, b := range blobs {
		it.size += len(b.Data) + len(b.URL)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if el := s.items[key]; el != nil {
		s.drop(el)
	}
	if it.size > s.limit {
		return
	}
	for s.size+it.size > s.limit {
		s.drop(s.order.Back())
	}
	s.items[key] = s.order.PushFront(it)
	s.size += it.size
}

func (s *cache) drop(el *list.Element) {
	it := s.order.Remove(el).(*cacheItem)
	delete(s.items, it.key)
	s.size -= it.size
}
