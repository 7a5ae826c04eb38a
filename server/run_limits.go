package server

import (
	"encoding/json"
	"math"
	"reflect"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
)

// readLimit reads the value of the limit key into l: a number above 0, or a duration above 0 such as "30s". at is the path
// of the value in the request, for errors.
func readLimit(l *lathe.Limits, key, at string, v []byte) *problem {
	to := setting.Find[lathe.Limits](key).In(l)
	want, err := "a number above 0", error(nil)
	if d, is := to.Addr().Interface().(*time.Duration); is {
		want = `a time above 0, such as "30s"`
		var text string
		if err = json.Unmarshal(v, &text); err == nil {
			*d, err = time.ParseDuration(text)
		}
	} else {
		err = json.Unmarshal(v, to.Addr().Interface())
	}
	isPositive := to.CanInt() && to.Int() > 0 || to.CanFloat() && to.Float() > 0
	isTooLarge := to.Kind() == reflect.Int && to.Int() > math.MaxInt32
	if err != nil || isTooLarge || !isPositive {
		return badRequest(at, "%s must be %s.", at, want)
	}
	return nil
}
