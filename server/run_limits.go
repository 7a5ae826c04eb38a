package server

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
)

// requestLimits are the keys of the limits that a request may narrow.
var requestLimits = sync.OnceValue(func() []string {
	return slices.DeleteFunc(setting.Keys[lathe.Limits](), func(key string) bool {
		return !setting.Find[lathe.Limits](key).Narrows("request")
	})
})

// readLimit reads the limit with the key: a number above 0, or for times a text such as "30s".
func readLimit(l *lathe.Limits, key, at string, v []byte) *problem {
	var n int64
	switch to := setting.Find[lathe.Limits](key).In(l).Addr().Interface().(type) {
	case *time.Duration:
		var s string
		if p := take(v, &s, at, `a time such as "30s"`); p != nil {
			return p
		}
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return badRequest(at, `%s must be a time above 0, such as "30s".`, at)
		}
		*to = d
	case *float64:
		if p := take(v, to, at, "a number"); p != nil {
			return p
		}
		if *to <= 0 || math.IsInf(*to, 0) {
			return badRequest(at, "%s must be above 0.", at)
		}
	case *int:
		if p := take(v, &n, at, "a whole number"); p != nil {
			return p
		}
		if n <= 0 || n > math.MaxInt32 {
			return badRequest(at, "%s must be above 0.", at)
		}
		*to = int(n)
	case *int64:
		if p := take(v, &n, at, "a whole number"); p != nil {
			return p
		}
		if n <= 0 {
			return badRequest(at, "%s must be above 0.", at)
		}
		*to = n
	}
	return nil
}
