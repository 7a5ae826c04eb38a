package digest

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// The short way of appendFloat writes what the canonical form is.
func TestAppendFloatIsCanonical(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	numbers := []float64{0, math.Copysign(0, -1), 0.7, 1, 2, 1e-6, math.Nextafter(1e-6, 0), 1e21, math.Nextafter(1e21, 0), 5e-324, math.MaxFloat64, 123456789.125, -0.5}
	for range 2_000 {
		numbers = append(numbers, math.Float64frombits(r.Uint64()), r.Float64()*math.Pow(10, float64(r.IntN(30)-8)))
	}
	for _, f := range numbers {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		want, err := rawjson.AppendCanonical(nil, strconv.AppendFloat(nil, f, 'e', -1, 64))
		if err != nil {
			t.Fatal(err)
		}
		if got := appendFloat(nil, f); string(got) != string(want) || !json.Valid(got) {
			t.Errorf("%g: got %s, want %s", f, got, want)
		}
	}
}
