// Package search finds tools by their purpose: an inverted index in memory over the definitions of tools, ranked by BM25.
//
// The ranking function is that of S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
// Foundations and Trends in Information Retrieval 3(4), 2009, in its form for weighted fields (section 3.6, BM25F): the
// occurrences of a term in the fields of a tool are added with the weights of the fields before they saturate. The fields
// are the name (weight 2), the description (1), the names of the parameters (1) and their descriptions (0.5).
//
// Names and texts are split into words at each character that is neither a letter nor a digit of any language, and where an upper-case
// letter begins a word (getCurrentWeather, get_current_weather and "get current weather" have the same words). Words are converted to lower
// case; English stop words are ignored, and English suffixes are removed. Text of languages without spaces between words is indexed by
// pairs of characters.
//
// All functions are pure: they use no clock and no I/O, and have no state between calls.
package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/lathe-run/lathe"
)

// Limits of an index and of a search. The schemas of registered tools are limited elsewhere.
const (
	// maxToolBytes is the maximum size of the indexed text of one tool, in bytes: its name, its description, and the names and descriptions
	// of its parameters, in this order. Text beyond it is not searched.
	maxToolBytes = 32 << 10
	// maxSchemaDepth is the number of indexed levels of a parameter schema; the schema itself is the first. The schemas of properties and
	// of array elements are one level below the schema that contains them.
	maxSchemaDepth = 16
	// maxQueryBytes is the maximum length of a query, in bytes; text beyond it is ignored.
	maxQueryBytes = 4 << 10
	// maxQueryTerms is the maximum number of different terms in a query; further terms are ignored.
	maxQueryTerms = 256
	// MaxHits is the maximum number of hits that [Index.Search] returns.
	MaxHits = 100
	// maxTermBytes is the maximum length of a term, in bytes; the rest of a longer word is ignored.
	maxTermBytes = 64
)

// The parameters of BM25: k1 determines how fast further occurrences of a term lose weight, and b how much the length of a tool's text
// counts.
const (
	k1 = 1.2
	b  = 0.75
)

// The weights of the fields, in halves, so that lengths are exact integers and the score of a tool does not depend on the order in which
// tools are added.
const (
	nameWeight                 = 4
	descriptionWeight          = 2
	parameterWeight            = 2
	parameterDescriptionWeight = 1
)

// An Index is a full-text index of tool definitions. It is immutable and may be used by several goroutines at once.
type Index struct {
	postings map[string][]posting
	norms    []float64 // per tool: k1 × (1 - b + b × its length / the mean length)
}

// A posting is the weight of a term in one tool.
type posting struct {
	tool   int32
	weight int32 // sum of the weights of the fields in which the term occurs, once per occurrence, in halves
}

// A Hit is a tool that contains at least one term of the query.
type Hit struct {
	Position int     // index in the slice that was passed to [NewIndex]
	Score    float64 // above 0; comparable only within one search
}

// NewIndex returns an index of all specs, hidden ones included. It reads at most 32 KiB of text of each tool and 16 levels of its schema.
// Time and memory are linear in the size of the specs. The index retains no part of them.
func NewIndex(specs []*lathe.ToolSpec) *Index {
	x := &Index{postings: make(map[string][]posting, 4*len(specs)), norms: make([]float64, len(specs))}
	w := writer{postings: x.postings}
	lengths, total := make([]int, len(specs)), 0
	for i, spec := range specs {
		lengths[i] = w.add(int32(i), spec)
		total += lengths[i]
	}
	mean := max(float64(total)/float64(max(len(specs), 1)), 1)
	for i, length := range lengths {
		x.norms[i] = k1 * (1 - b + float64(b*float64(length)/mean))
	}
	return x
}

// Search returns the tools that contain terms of the query, best first, and in index order if scores are equal. It returns at most limit
// and at most [MaxHits] hits; none if limit is 0 or less, or if the query has no terms: it is empty or has only stop words. Time is linear
// in the number of tools.
func (x *Index) Search(query string, limit int) []Hit {
	limit = min(limit, MaxHits, len(x.norms))
	if limit <= 0 {
		return nil
	}
	scores := make([]float64, len(x.norms))
	for _, postings := range x.terms(query) {
		n, tools := float64(len(postings)), float64(len(x.norms))
		idf := math.Log(1 + (tools-n+0.5)/(n+0.5))
		for _, p := range postings {
			frequency := float64(p.weight) / descriptionWeight
			// The conversion prevents fused multiply-add, so that all processors compute the same score.
			scores[p.tool] += float64(idf * frequency * (k1 + 1) / (frequency + x.norms[p.tool]))
		}
	}
	hits := make([]Hit, 0, limit+1)
	for position, score := range scores {
		if score == 0 || len(hits) == limit && score <= hits[limit-1].Score {
			continue // of tools with equal score, the first ones are kept
		}
		hit := Hit{Position: position, Score: score}
		at, _ := slices.BinarySearchFunc(hits, hit, compare)
		hits = slices.Insert(hits, at, hit)
		hits = hits[:min(len(hits), limit)]
	}
	return hits
}

// compare orders hits: higher score first, then lower position.
func compare(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Position, b.Position))
}

// terms returns the postings of the different terms of the query that occur in any tool.
func (x *Index) terms(query string) [][]posting {
	seen := make(map[string]bool, 16)
	var found [][]posting
	for _, term := range termsOf(query[:min(len(query), maxQueryBytes)]) {
		if seen[term] || len(seen) == maxQueryTerms {
			continue
		}
		seen[term] = true
		if p := x.postings[term]; len(p) > 0 {
			found = append(found, p)
		}
	}
	return found
}
