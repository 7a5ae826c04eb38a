package wire

import (
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

var testNames = rawjson.NewNames("stream", "list", "inner", "name", "topP", "top_p")

// parse reads a body and returns what it drops, and the error.
func parse(body string, read func(r *Reader, o Object)) ([]string, *APIError) {
	r := NewReader([]byte(body))
	_, err := r.ParseBody(testNames, func(o Object) { read(&r, o) })
	bad, _ := err.(*APIError)
	return r.Dropped, bad
}

// The first value that is not as it must be ends the reading with an error that names it.
func TestValuesAreReadStrictly(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(o Object){
		`"p":1`:          func(o Object) { o.String("p") },
		`"q":"absent"`:   func(o Object) { o.String("p") },
		`"p":2`:          func(o Object) { o.OptString("p") },
		`"p":"true"`:     func(o Object) { o.Bool("p") },
		`"p":"1"`:        func(o Object) { o.Float("p") },
		`"p":1.5`:        func(o Object) { o.Int("p") },
		`"p":0`:          func(o Object) { o.Count("p") },
		`"p":2147483648`: func(o Object) { o.Count("p") },
		`"p":[]`:         func(o Object) { o.OptObject("p") },
		`"p":null`:       func(o Object) { o.RawObject("p") },
		`"p":"a"`:        func(o Object) { o.Object("p", testNames) },
		`"p":{}`:         func(o Object) { o.Strings("p") },
	} {
		_, err := parse("{"+name+"}", func(_ *Reader, o Object) { read(o); t.Errorf("%s was read", name) })
		if err == nil || err.Status != 400 || err.Param != "p" || err.Type != "invalid_request_error" {
			t.Errorf("%s: %+v", name, err)
		}
	}
	for _, body := range []string{"", "[]", `{"a":1,"a":2}`, `{"a"}`} {
		if _, err := parse(body, func(*Reader, Object) { t.Errorf("%s was read", body) }); err == nil || err.Param != "" {
			t.Errorf("%s: %+v", body, err)
		}
	}
	if _, err := parse(`{"a":null,"n":2147483647,"f":1e2,"b":true,"l":["x"]}`, func(_ *Reader, o Object) {
		if o.OptString("a") != "" || o.Bool("a") || o.Float("a") != nil || o.OptObject("a") != nil || o.Strings("a") != nil {
			t.Error("null is not absent")
		}
		if *o.Count("n") != 2147483647 || *o.Int("n") != 2147483647 || *o.Float("f") != 100 || !o.Bool("b") || o.Strings("l")[0] != "x" || !o.IsRead() {
			t.Error("a value is another one")
		}
	}); err != nil {
		t.Error(err)
	}
}

// Paths of errors and of dropped members lead from the request through arrays and objects to the member.
func TestPathsLeadToTheMember(t *testing.T) {
	t.Parallel()
	const body = `{"list":[{"inner":{"list":[{"name":"a"},{"name":1,"x":2}]}}],"y":3}`
	read := func(r *Reader, o Object, name string) {
		for el := range o.Elements("list") {
			inner := r.Object("", el, testNames).Object("inner", testNames)
			for el := range inner.Elements("list") {
				each := r.Object("", el, testNames)
				each.Skip("name")
				each.DropRest()
				each.OptString(name)
			}
			if err := r.Try(func() { r.Fail("[2].z", "Wrong.") }); err.Param != "list[0][2].z" || r.At("") != "list[0]" {
				t.Errorf("tried %s at %s", err.Param, r.At(""))
			}
		}
		r.Refer("list", "Foreign.")
		o.DropRest()
	}
	if dropped, err := parse(body, func(r *Reader, o Object) { read(r, o, "w"); read(r, o, "w") }); err != nil || !slices.Equal(dropped[:2], []string{"list[0].inner.list[1].x", "y"}) {
		t.Errorf("dropped %q, %v", dropped, err)
	}
	if _, err := parse(body, func(r *Reader, o Object) { read(r, o, "name") }); err == nil || err.Param != "list[0].inner.list[1].name" {
		t.Errorf("%+v", err)
	}
	if _, err := parse(`{"list":["a",1]}`, func(_ *Reader, o Object) { o.Strings("list") }); err == nil || err.Param != "list[1]" {
		t.Errorf("%+v", err)
	}
}

// An object gives its members under their decoded names, and those that were not read in their order. It refuses names that other
// readers take for those of the set.
// One large message, such as an image, does not reserve memory for many.
func TestMessageEstimateIsBounded(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{0: 0, 200_000: 200, 16 << 20: 1024} {
		r := NewReader(make([]byte, size))
		if n := r.MessageEstimate(); n != want {
			t.Errorf("body of %d bytes: %d, want %d", size, n, want)
		}
	}
}

func TestObjectsHaveMembersByName(t *testing.T) {
	t.Parallel()
	if _, err := parse(`{"n\u0061me":1,"x\u0079":null,"more":[2] , "top_p":3,"a":4}`, func(_ *Reader, o Object) {
		o = o.Rename(map[string]string{"top_p": "topP"})
		if string(o.Get("name")) != "1" || o.Get("xy") != nil || string(o.Get("topP")) != "3" {
			t.Error(o)
		}
		rest := o.Rest()
		if len(rest) != 2 || rest[0].Name != "more" || string(rest[0].Value) != "[2]" || rest[1].Name != "a" || o.IsRead() {
			t.Error(rest)
		}
	}); err != nil {
		t.Error(err)
	}
	if _, err := parse(`{"inner":{"\u017ftream":true}}`, func(_ *Reader, o Object) { o.Object("inner", testNames) }); err == nil || err.Code != "ambiguous_member" || !strings.HasPrefix(err.Param, "inner.") {
		t.Errorf("%+v", err)
	}
	if _, err := parse(`{"topP":1,"top_p":2}`, func(_ *Reader, o Object) { o.Rename(map[string]string{"topP": "topP", "top_p": "topP"}) }); err == nil || err.Code != "ambiguous_member" || err.Param != "top_p" {
		t.Errorf("%+v", err)
	}
}
