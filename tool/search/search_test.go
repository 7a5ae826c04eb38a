package search_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool/search"
)

func spec(name, description, schema string) *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: name, Description: description, Schema: json.RawMessage(schema)}
}

// names returns the names of the hits of a query, the best first.
func names(specs []*lathe.ToolSpec, query string) []string {
	var out []string
	for _, h := range search.NewIndex(specs).Search(query, 10) {
		out = append(out, specs[h.Position].Name)
	}
	return out
}

func TestSearchReadsEveryField(t *testing.T) {
	t.Parallel()
	specs := []*lathe.ToolSpec{
		spec("getCurrentWeather", "", ""),
		spec("b", "Lists the invoices of a customer.", ""),
		spec("c", "", `{"type":"object","properties":{"departure_airport":{"type":"string"}}}`),
		spec("d", "", `{"type":"object","properties":{"x":{"description":"The colour of the paint \u00e9toile"}}}`),
		spec("e", "", `{"properties":{"x":{"type":"array","items":{"properties":{"latitude":{"anyOf":[{"description":"degrees"}]}}}}}}`),
		spec("f", "", `{"properties":{"x":{"$ref":"#/$defs/p"}},"$defs":{"p":{"properties":{"postcode":{}}}}}`),
		spec("g", "", `{"properties":{"x":{"prefixItems":[{"description":"kilometre"}],"items":[{"description":"furlong"}]}}}`),
		spec("HTTPStatusOf", "", ""),
		spec("sha256_sum", "", ""),
		spec("i", "Показывает погоду", ""),
		spec("j", "查询天气预报", ""),
		spec("k", "मौसम दिखाता है", ""),
	}
	for query, want := range map[string]string{
		"get_current_weather": "getCurrentWeather", "WEATHER": "getCurrentWeather", "currentWeather": "getCurrentWeather",
		"which invoice?": "b", "invoicing a customer": "b", "departures": "c", "airport": "c", "paints": "d", "étoile": "d",
		"latitude": "e", "degree": "e", "postcode": "f", "kilometres": "g", "furlong": "g", "http": "HTTPStatusOf",
		"status of http": "HTTPStatusOf", "sha256": "sha256_sum", "ПОГОДУ": "i", "明天的天气": "j", "मौसम": "k",
	} {
		if got := names(specs, query); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v first, want %s", query, got, want)
		}
	}
	for _, query := range []string{"", " ,;", "what is the", "zebra", "object string", "ref", "\xff\xfe"} {
		if got := names(specs, query); len(got) > 0 {
			t.Errorf("%q finds %v, want nothing", query, got)
		}
	}
}

func TestSearchOrdersHits(t *testing.T) {
	t.Parallel()
	specs := []*lathe.ToolSpec{
		spec("a", "A long text about other things that names the tide once among many further words.", ""),
		spec("tide", "", ""), spec("tides", "", ""), spec("b", "tide", ""), spec("none", "", ""),
	}
	hits := search.NewIndex(specs).Search("tide", 10)
	var got []int
	for i, h := range hits {
		got = append(got, h.Position)
		if h.Score <= 0 || i > 0 && h.Score > hits[i-1].Score {
			t.Errorf("hit %d has the score %v", i, h.Score)
		}
	}
	if want := []int{1, 2, 3, 0}; !slices.Equal(got, want) { // 1 and 2 are equal and stay in the order of the specs
		t.Errorf("got %v, want %v", got, want)
	}
	if hits[0].Score != hits[1].Score {
		t.Errorf("the scores of equal texts are %v and %v", hits[0].Score, hits[1].Score)
	}
}

func TestBoundsHold(t *testing.T) {
	t.Parallel()
	var many []*lathe.ToolSpec
	for range search.MaxHits + 50 {
		many = append(many, spec("tide", "", ""))
	}
	x := search.NewIndex(many)
	for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, 5: 5, search.MaxHits: search.MaxHits, 1 << 40: search.MaxHits} {
		if got := len(x.Search("tide", limit)); got != want {
			t.Errorf("limit %d gives %d hits, want %d", limit, got, want)
		}
	}
	if got := search.NewIndex(nil).Search("tide", 5); len(got) != 0 {
		t.Errorf("an index of no tools finds %v", got)
	}

	nested := func(levels int) string { // the last of the levels describes itself
		return strings.Repeat(`{"items":`, levels-1) + `{"description":"tide"}` + strings.Repeat("}", levels-1)
	}
	word := strings.Repeat("x", search.MaxTermBytes)
	terms := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "w%d ", i)
		}
		return b.String()
	}
	for what, c := range map[string]struct {
		specs []*lathe.ToolSpec
		query string
		found bool
	}{
		"the last byte of a tool":         {[]*lathe.ToolSpec{spec("a", strings.Repeat(" ", search.MaxToolBytes-5)+"tide", "")}, "tide", true},
		"behind the last byte of a tool":  {[]*lathe.ToolSpec{spec("a", strings.Repeat(" ", search.MaxToolBytes-1)+"tide", "")}, "tide", false},
		"parameters behind a long text":   {[]*lathe.ToolSpec{spec("a", strings.Repeat(" ", search.MaxToolBytes), `{"description":"tide"}`)}, "tide", false},
		"the last level of a schema":      {[]*lathe.ToolSpec{spec("a", "", nested(search.MaxSchemaDepth))}, "tide", true},
		"below the last level":            {[]*lathe.ToolSpec{spec("a", "", nested(search.MaxSchemaDepth+1))}, "tide", false},
		"the last bytes of a query":       {[]*lathe.ToolSpec{spec("tide", "", "")}, strings.Repeat(" ", search.MaxQueryBytes-4) + "tide", true},
		"behind the last byte of a query": {[]*lathe.ToolSpec{spec("tide", "", "")}, strings.Repeat(" ", search.MaxQueryBytes) + "tide", false},
		"the last term of a query":        {[]*lathe.ToolSpec{spec("tide", "", "")}, terms(search.MaxQueryTerms-1) + "tide", true},
		"behind the last term":            {[]*lathe.ToolSpec{spec("tide", "", "")}, terms(search.MaxQueryTerms) + "tide", false},
		"a long word by its beginning":    {[]*lathe.ToolSpec{spec("a", word+"é1", "")}, word + "2", true},
		"a long word that differs":        {[]*lathe.ToolSpec{spec("a", word, "")}, word[1:], false},
	} {
		if got := len(search.NewIndex(c.specs).Search(c.query, 5)) > 0; got != c.found {
			t.Errorf("%s: found is %v, want %v", what, got, c.found)
		}
	}
}

// The order of the tools changes no score: what a tool scores is its own, and sums are of integers.
func TestPermutedSpecsHaveTheSameScores(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("tide tides weather get list invoice customers current HTTP 天气 погода address converting of the")
	text := func(n int) string {
		var w []string
		for range rng.IntN(n) {
			w = append(w, words[rng.IntN(len(words))])
		}
		return strings.Join(w, " ")
	}
	for range 200 {
		var specs []*lathe.ToolSpec
		for i := range 1 + rng.IntN(20) {
			schema, err := json.Marshal(map[string]any{"description": text(6), "properties": map[string]any{text(3): map[string]any{"description": text(5)}}})
			if err != nil {
				t.Fatal(err)
			}
			specs = append(specs, spec(fmt.Sprint("t", i, text(4)), text(12), string(schema)))
		}
		permuted := slices.Clone(specs)
		rng.Shuffle(len(permuted), func(i, j int) { permuted[i], permuted[j] = permuted[j], permuted[i] })
		query := text(8)
		if got, want := scores(permuted, query), scores(specs, query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("query %q:\n got %v\nwant %v", query, got, want)
		}
		first := search.NewIndex(specs).Search(query, 3)
		if all := search.NewIndex(specs).Search(query, 20); !slices.Equal(first, all[:len(first)]) {
			t.Fatalf("the first 3 hits are %v, of 20 they are %v", first, all)
		}
	}
}

func scores(specs []*lathe.ToolSpec, query string) map[string]float64 {
	out := map[string]float64{}
	for _, h := range search.NewIndex(specs).Search(query, search.MaxHits) {
		out[specs[h.Position].Name] = h.Score
	}
	return out
}

func TestIndexIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	x := search.NewIndex([]*lathe.ToolSpec{spec("tide", "Tells the tide", ""), spec("weather", "Tells the weather", "")})
	want := x.Search("tide tell", 5)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := x.Search("tide tell", 5); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// Any text in any field is indexed without a panic, the query of a tool's own name finds it unless the name has no term,
// and hits are in order and within the limit.
func FuzzSearch(f *testing.F) {
	f.Add("getWeather", "Tells the weather", `{"properties":{"city":{"description":"a city"}}}`, "weather", 5)
	f.Add("天气", "मौसम", `{"items":[{"$defs":{"a":{"description":"\ud800"}}}]`, "什么天气", 1)
	f.Add("", "\xff", `{"properties":{"":`, "\xe4", -1)
	f.Fuzz(func(t *testing.T, name, description, schema, query string, limit int) {
		specs := []*lathe.ToolSpec{spec("other", description, ""), spec(name, description, schema), spec("third", query, schema)}
		x := search.NewIndex(specs)
		hits := x.Search(query, limit)
		if len(hits) > max(limit, 0) || len(hits) > len(specs) {
			t.Fatalf("%d hits, limit %d", len(hits), limit)
		}
		for i, h := range hits {
			if !(h.Score > 0) || h.Position < 0 || h.Position >= len(specs) {
				t.Fatalf("hit %+v", h)
			}
			if p := max(i-1, 0); i > 0 && (hits[p].Score < h.Score || hits[p].Score == h.Score && hits[p].Position > h.Position) {
				t.Fatalf("hits out of order: %v", hits)
			}
		}
		if len(query) <= search.MaxQueryBytes && len(name) <= search.MaxQueryBytes {
			own := x.Search(name, 3)
			if alone := search.NewIndex(specs[1:2]).Search(name, 1); len(alone) == 1 && !slices.ContainsFunc(own, func(h search.Hit) bool { return h.Position == 1 }) {
				t.Fatalf("%q finds %v", name, own)
			}
		}
	})
}

// tools returns n tools of the leaderboard, with further names where n is above their number.
func tools(b *testing.B, n int) []*lathe.ToolSpec {
	all := corpus(b)
	var specs []*lathe.ToolSpec
	for i := range n {
		s := *all[i%len(all)]
		s.Name = fmt.Sprint(s.Name, "_", i/len(all))
		specs = append(specs, &s)
	}
	return specs
}

var sizes = []int{300, 1639, 5000}

func BenchmarkNewIndex(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			specs := tools(b, n)
			b.ReportAllocs()
			for b.Loop() {
				search.NewIndex(specs)
			}
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := search.NewIndex(tools(b, n))
			b.ReportAllocs()
			for b.Loop() {
				x.Search("convert an amount of money from dollars to euros at the current exchange rate", 5)
			}
		})
	}
}
