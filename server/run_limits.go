package server

import (
	"math"
	"reflect"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
)

// readLimit reads the value of a limit: a number above 0, or a duration such as "30s".
func readLimit(l *lathe.Limits, key, at string, v []byte) *problem {
	to := setting.Find[lathe.Limits](key).In(l)
	switch {
	case to.Type() == reflect.TypeFor[time.Duration]():
		var s string
		if p := take(v, &s, at, `a time such as "30s"`); p != nil {
			return p
		}
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return badRequest(at, `%s must be a time above 0, such as "30s".`, at)
		}
		to.SetInt(int64(d))
	case to.CanFloat():
		var f float64
		if p := take(v, &f, at, "a number"); p != nil {
			return p
		}
		if f <= 0 {
			return badRequest(at, "%s must be above 0.", at)
		}
		to.SetFloat(f)
	default:
		var n int64
		if p := take(v, &n, at, "a whole number"); p != nil {
			return p
		}
		if n <= 0 || to.Kind() == reflect.Int && n > math.MaxInt32 {
			return badRequest(at, "%s must be above 0.", at)
		}
		to.SetInt(n)
	}
	return nil
}
