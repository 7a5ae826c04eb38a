package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/price"
)

// bounds returns the range in a tag. A range without an upper end ends at highest. It panics if the range is not valid.
func bounds[T ~int64](tag reflect.StructTag, parse func(string) (T, error), highest T) (lowest, most T) {
	low, high, _ := strings.Cut(tag.Get("range"), "..")
	lowest, err := parse(low)
	most = highest
	if err == nil && high != "" {
		most, err = parse(high)
	}
	if err != nil {
		panic("config: range of a setting: " + err.Error())
	}
	return lowest, most
}

// In the kinds below, off is a word that turns a limit off, or "". The field then holds the largest number, or what the comment of the kind says.

// numberKind returns the kind of a whole number. If off is not "", numbers are above 0 unless there is a range.
func numberKind(tag reflect.StructTag, off string) *kind {
	k := &kind{what: "number", text: func(v reflect.Value) string { return strconv.FormatInt(v.Int(), 10) }}
	if off != "" {
		lowest, most := int64(1), int64(math.MaxInt64-1)
		if tag.Get("range") != "" {
			lowest, most = bounds(tag, integer, most)
		}
		return k.orOff(off, math.MaxInt64, func(s string) (any, error) { return number(s, lowest, most) })
	}
	lowest, most := bounds(tag, integer, maxCount)
	zero := tag.Get("zero") != "" // 0 is stored as -1, because 0 in the field means the default
	if zero {
		k.text = func(v reflect.Value) string { return strconv.FormatInt(max(v.Int(), 0), 10) }
	}
	k.parse = func(s string) (any, error) {
		n, err := number(s, lowest, most)
		if zero && n == 0 {
			n = -1
		}
		return n, err
	}
	return k
}

// orOff makes k the kind of what parse accepts, and of the word off, which is stored as the number stored.
func (k *kind) orOff(off string, stored int64, parse func(string) (any, error)) *kind {
	text := k.text
	k.what += ", `" + off + "`"
	k.text = func(v reflect.Value) string {
		if v.Int() == stored {
			return off
		}
		return text(v)
	}
	k.parse = func(s string) (any, error) {
		if s == off {
			return stored, nil
		}
		return parse(s)
	}
	return k
}

func integer(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

func number(s string, lowest, highest int64) (int64, error) {
	n, err := integer(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a whole number", quote(s))
	}
	if n < lowest || n > highest {
		return 0, fmt.Errorf("%d is not from %d to %d", n, lowest, highest)
	}
	return n, nil
}

var sizeUnits = []struct {
	name string
	n    int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// sizeKind returns the kind of a number of bytes. With off and no range, off is stored as 0 and sizes are above 0.
func sizeKind(tag reflect.StructTag, off string) *kind {
	k := &kind{what: "size", text: func(v reflect.Value) string { return formatSize(v.Int()) }}
	if off != "" && tag.Get("range") == "" {
		return k.orOff(off, 0, func(s string) (any, error) {
			n, err := parseSize(s)
			if err == nil && n < 1 {
				err = fmt.Errorf("%s is not a size above 0", quote(s))
			}
			return n, err
		})
	}
	lowest, most := bounds(tag, parseSize, maxSize)
	k.parse = func(s string) (any, error) {
		n, err := parseSize(s)
		if err == nil && (n < lowest || n > most) {
			err = fmt.Errorf("%s is not from %s to %s", quote(s), formatSize(lowest), formatSize(most))
		}
		return n, err
	}
	if off != "" {
		return k.orOff(off, math.MaxInt64, k.parse)
	}
	return k
}

func parseSize(s string) (int64, error) {
	digits, unit := s, int64(1)
	for _, u := range sizeUnits {
		if d, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = strings.TrimRight(d, " "), u.n
			break
		}
	}
	n, err := integer(digits)
	if err != nil || n > math.MaxInt64/unit || n < 0 {
		return 0, fmt.Errorf("%s is not a size: write 65536 or 64KiB (B, KiB, MiB, GiB)", quote(s))
	}
	return n * unit, nil
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if u.n > 1 && n != 0 && n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// durationKind returns the kind of a duration. If off is not "", durations are above 0 and off is stored as -1.
func durationKind(tag reflect.StructTag, off string) *kind {
	k := &kind{what: "duration", text: func(v reflect.Value) string { return formatDuration(time.Duration(v.Int())) }}
	if off != "" {
		return k.orOff(off, -1, func(s string) (any, error) {
			d, err := parseDuration(s)
			if err == nil && d <= 0 {
				err = fmt.Errorf("%s is too short; %s turns it off", quote(s), off)
			}
			return d, err
		})
	}
	lowest, most := bounds(tag, parseDuration, math.MaxInt64)
	k.parse = func(s string) (any, error) {
		d, err := parseDuration(s)
		switch {
		case err != nil:
			return nil, err
		case d < lowest:
			return nil, fmt.Errorf("%s is too short", quote(s))
		case d > most:
			return nil, fmt.Errorf("%s is too long: %s at most", quote(s), formatDuration(most))
		}
		return d, nil
	}
	return k
}

func parseDuration(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil && n != 0 {
		return 0, fmt.Errorf("%s has no unit: write %ss", quote(s), s)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a duration: write 300ms, 30s, 15m or 1h30m", quote(s))
	}
	return d, nil
}

// formatDuration returns a duration without the zero parts that time.Duration writes: 15m instead of 15m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Unset is an amount of money that is not configured.
const Unset price.Money = -1

// moneyKind returns the kind of an exact amount of US dollars, at least 0. off is stored as [Unset].
func moneyKind(tag reflect.StructTag, off string) *kind {
	lowest, most := bounds(tag, price.Parse, math.MaxInt64)
	k := &kind{what: "amount", text: func(v reflect.Value) string { return price.Money(v.Int()).String() }}
	return k.orOff(off, int64(Unset), func(s string) (any, error) {
		m, err := price.Parse(s)
		if err == nil && (m < lowest || m > most) {
			err = fmt.Errorf("%s is not from %s to %s US dollars", s, lowest, most)
		}
		return m, err
	})
}

// floatKinds are the kinds of numbers with a fraction, by the value of the tag `is`.
var floatKinds = map[string]*kind{
	// An amount above 0 or "none", which is stored as 0.
	"dollars": {what: "amount, `none`",
		text: func(v reflect.Value) string {
			if v.Float() == 0 {
				return "none"
			}
			return strconv.FormatFloat(v.Float(), 'f', -1, 64)
		},
		parse: func(s string) (any, error) {
			if s == "none" {
				return 0.0, nil
			}
			f, err := strconv.ParseFloat(s, 64)
			if err != nil || !(f > 0) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("%s is not an amount above 0", quote(s))
			}
			return f, nil
		}},
	// A number of calls for each second, such as 0.5.
	"rate": {what: "number",
		text: func(v reflect.Value) string { return strconv.FormatFloat(v.Float(), 'g', -1, 64) },
		parse: func(s string) (any, error) {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil || !(f >= 0) || f > 1e6 {
				return nil, errors.New("is calls a second: a number from 0 to 1000000, such as 0.5")
			}
			return f, nil
		}},
}
