package rawjson

import (
	"iter"
	"math"
	"unsafe"
)

// An Index knows where the long values of a checked text end, so that walking the text costs the values that are looked at and
// not the bytes that are passed over. Its methods take parts of that text and return what the functions of the same name do, in
// less time. For other texts, and if the Index is nil, they call these functions.
//
// It refers to the text, which must not be changed, and takes memory of at most its length. It is not changed after it was made and may be used by
// several goroutines at once.
type Index struct {
	text  []byte
	heads []uint32 // by a value's start / indexBlock: 1 + the entry of the value that ended last; 0: none
	ends  []indexEntry
}

// indexEntry is one value, text[start:end].
type indexEntry struct{ start, end, next uint32 } // next: 1 + another entry of the same block; 0: none

const (
	// indexBlock is the length of a value from which on it is in the Index, and the number of bytes that share a list of entries.
	indexBlock = 64
	// minIndexed is the length of a text below which an Index costs more than it saves.
	minIndexed = 8 << 10
	// indexShare bounds the entries: a text of n bytes has at most n/indexShare. Texts of deeply nested long values would have more.
	indexShare = 16
)

// CheckIndexed is [Check] that also returns an Index of b, or nil for a text that is too short or too long (4 GiB) for one.
func CheckIndexed(b []byte, lim Limits) (*Index, error) {
	if len(b) < minIndexed || len(b) > math.MaxUint32 {
		return nil, Check(b, lim)
	}
	x := &Index{text: b, heads: make([]uint32, len(b)/indexBlock+1), ends: make([]indexEntry, 0, len(b)/512)}
	c := checker{lim: lim.orDefault(), index: x}
	if !c.run(b) {
		return nil, &SyntaxError{Offset: c.at, Kind: c.kind}
	}
	return x, nil
}

// add records the value text[start:end].
func (x *Index) add(start, end int) {
	if end-start < indexBlock || len(x.ends) >= len(x.text)/indexShare {
		return
	}
	head := &x.heads[start/indexBlock]
	x.ends = append(x.ends, indexEntry{uint32(start), uint32(end), *head})
	*head = uint32(len(x.ends))
}

// of returns x and the offset of part in its text, and nil if x does not help with part: it is no part of the text, or short.
func (x *Index) of(part []byte) (*Index, int) {
	if x == nil || len(part) < indexBlock {
		return nil, 0
	}
	// The difference of two addresses: neither becomes a pointer again.
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(x.text)))
	if at >= uintptr(len(x.text)) || len(part) > len(x.text)-int(at) {
		return nil, 0
	}
	return x, int(at)
}

// skip is the function skip for part, which stands at the offset in the text. x may be nil.
func (x *Index) skip(part []byte, i, offset int) int {
	if x != nil && i < len(part) && (part[i] == '"' || part[i] == '{' || part[i] == '[') {
		start := uint32(offset + i)
		for e := x.heads[(offset+i)/indexBlock]; e != 0; {
			entry := &x.ends[e-1]
			if entry.start == start {
				return min(int(entry.end)-offset, len(part))
			}
			e = entry.next
		}
	}
	return skip(part, i)
}

// Members is the function [Members] for an object of the text.
func (x *Index) Members(obj []byte) iter.Seq2[[]byte, []byte] {
	x, offset := x.of(obj)
	return members(obj, x, offset)
}

// Elements is the function [Elements] for an array of the text.
func (x *Index) Elements(arr []byte) iter.Seq[[]byte] {
	x, offset := x.of(arr)
	return elements(arr, x, offset)
}

// Get is the function [Get] for an object of the text.
func (x *Index) Get(obj []byte, key string) (raw []byte, ok bool) {
	for k, v := range x.Members(obj) {
		if EqualKey(k, key) {
			return v, true
		}
	}
	return nil, false
}
