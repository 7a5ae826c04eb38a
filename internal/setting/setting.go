// Package setting describes structs of settings, such as lathe.Limits, by the tags of their fields. A field with the tag key is a [Row]: a
// setting with a default, a range and the places that can narrow it. Code that treats all settings alike iterates over the rows, so that a
// new setting is one new field. All functions may be called from several goroutines at once.
package setting

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Row is one setting. The tags of its field have the same names as those of the type setting in package config.
type Row struct {
	Key   string
	Tag   reflect.StructTag
	Words []string // the allowed values of a string; nil: any
	// Guest is the highest value that a WebAssembly guest may set for its session; 0: a guest cannot set it.
	Guest int64
	// Negative allows a value below 0, which means no limit or, if ZeroIsLess is set, a limit of 0.
	Negative, ZeroIsLess bool

	index int
	def   reflect.Value // default; invalid for kinds other than numbers and strings
}

// In returns the field of the row in the struct that ptr points to.
func (r *Row) In(ptr any) reflect.Value { return reflect.ValueOf(ptr).Elem().Field(r.index) }

// Narrows reports whether the tag narrow lists a place, such as "request", in which the setting can be narrowed.
func (r *Row) Narrows(place string) bool {
	return slices.Contains(strings.Fields(r.Tag.Get("narrow")), place)
}

var tables sync.Map // reflect.Type → []*Row

// Rows returns the rows of T in the order of its fields. Callers share the slice and must not change it.
func Rows[T any]() []*Row { return rowsOf(reflect.TypeFor[T]()) }

// Find returns the row of T with the key, or nil.
func Find[T any](key string) *Row {
	for _, r := range Rows[T]() {
		if r.Key == key {
			return r
		}
	}
	return nil
}

// Keys returns the keys of T that can be narrowed in a place, or all keys if place is "", in the order of the fields.
func Keys[T any](place string) []string {
	var keys []string
	for _, r := range Rows[T]() {
		if place == "" || r.Narrows(place) {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// rowsOf returns the rows of a struct type. It panics if a tag is not valid: then every test that uses the struct fails.
func rowsOf(t reflect.Type) []*Row {
	if known, ok := tables.Load(t); ok {
		return known.([]*Row)
	}
	var rows []*Row
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("key")
		if key == "" {
			continue
		}
		r := &Row{Key: key, Tag: f.Tag, ZeroIsLess: f.Tag.Get("zero") != "", index: i}
		r.Negative = r.ZeroIsLess || f.Type == reflect.TypeFor[time.Duration]() && f.Tag.Get("off") != ""
		for _, word := range strings.Fields(f.Tag.Get("of")) {
			word, _, _ = strings.Cut(word, "=")
			r.Words = append(r.Words, word)
		}
		r.def = r.parse(f.Type, f.Tag.Get("default"))
		if most := f.Tag.Get("guest"); most != "" {
			r.Guest = r.number(most)
		}
		rows = append(rows, r)
	}
	tables.Store(t, rows)
	return rows
}

// parse returns a default as a value of type t, or the invalid value if t is not a number or a string.
func (r *Row) parse(t reflect.Type, text string) reflect.Value {
	var v any
	switch {
	case t.Kind() == reflect.String:
		v = text
	case t == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		if err != nil {
			panic("setting: default of " + r.Key + ": " + err.Error())
		}
		v = d
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		v = r.number(text)
	default:
		return reflect.Value{}
	}
	return reflect.ValueOf(v).Convert(t)
}

// number parses a number, a size in KiB or MiB, or "none", which is the largest number. It panics on any other text.
func (r *Row) number(text string) int64 {
	if text == "none" {
		return math.MaxInt64
	}
	unit := int64(1)
	if digits, ok := strings.CutSuffix(text, "KiB"); ok {
		text, unit = digits, 1<<10
	} else if digits, ok := strings.CutSuffix(text, "MiB"); ok {
		text, unit = digits, 1<<20
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("setting: " + r.Key + ": " + err.Error())
	}
	return n * unit
}

// Fill sets the numbers and strings that are zero to their defaults, in the struct that ptr points to.
func Fill(ptr any) {
	v := reflect.ValueOf(ptr).Elem()
	for _, r := range rowsOf(v.Type()) {
		if f := v.Field(r.index); r.def.IsValid() && f.IsZero() {
			f.Set(r.def)
		}
	}
}

// Check returns an error for the first field of the struct that ptr points to whose value is not allowed: a string that is not in
// its vocabulary, or a number below 0 that has no meaning. The message begins with the key. Zero fields are allowed.
func Check(ptr any) error {
	v := reflect.ValueOf(ptr).Elem()
	for _, r := range rowsOf(v.Type()) {
		switch f := v.Field(r.index); f.Kind() {
		case reflect.String:
			if s := f.String(); s != "" && r.Words != nil && !slices.Contains(r.Words, s) {
				return fmt.Errorf("%s: %q is none of %q", r.Key, s, r.Words)
			}
		case reflect.Int, reflect.Int64:
			if f.Int() < 0 && !r.Negative {
				return fmt.Errorf("%s: %d is negative", r.Key, f.Int())
			}
		case reflect.Float64:
			if n := f.Float(); n < 0 || math.IsNaN(n) {
				return fmt.Errorf("%s: %v is not an amount", r.Key, n)
			}
		}
	}
	return nil
}

// Narrow lowers each number of the struct that ptr points to, in which [Fill] has set the defaults, to the value in by if that is stricter.
// Zero fields and less strict fields of by have no effect: above is the key of the first field that is less strict, or "".
func Narrow[T any](ptr, by *T) (above string) {
	for _, r := range Rows[T]() {
		f, other := r.In(ptr), r.In(by)
		have, want := amount(f), amount(other)
		if want == 0 || want < 0 && !r.ZeroIsLess {
			continue
		}
		if have <= 0 && !r.ZeroIsLess {
			have = math.Inf(1) // the field has no limit
		}
		switch {
		case want < have || math.IsNaN(want): // NaN is copied so that Check refuses it
			f.Set(other)
		case want > max(have, 0) && above == "":
			above = r.Key
		}
	}
	return above
}

// amount returns the value of a number, or 0 for other kinds. Integers above 2^53 are rounded.
func amount(f reflect.Value) float64 {
	switch {
	case f.CanInt():
		return float64(f.Int())
	case f.CanFloat():
		return f.Float()
	}
	return 0
}
