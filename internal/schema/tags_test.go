package schema

import (
	"encoding/json"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type priority string

func (priority) Enum() []string { return []string{"low", "high"} }

type stage int

func (s *stage) UnmarshalText([]byte) error  { return nil }
func (s stage) MarshalText() ([]byte, error) { return []byte("new"), nil }
func (s *stage) Enum() []string              { return []string{"new", "done"} }

type badEnum int

func (badEnum) Enum() []string { return []string{"a"} }

type emptyEnum string

func (emptyEnum) Enum() []string { return nil }

type coded struct{ n int }

func (c coded) MarshalJSON() ([]byte, error) { return json.Marshal(c.n) }

type defaulted struct {
	N int `json:"n"`
}

func (d *defaulted) UnmarshalJSON([]byte) error { return nil }

type Tagged struct {
	Sort string `json:"sort,omitempty" jsonschema:"enum=asc,enum=desc,default=asc"`
}

// Each field of a struct narrows its schema by the words of its tag.
func TestTagsNarrowTheSchema(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		t    reflect.Type
		want string
	}{
		{reflect.TypeFor[struct {
			F string `json:"f" jsonschema:"enum=a,enum=b\\,c,enum="`
		}](), `{"enum":["a","b,c",""],"type":"string"}`},
		{reflect.TypeFor[struct {
			F *int `json:"f,omitempty" jsonschema:"enum=1,enum=2,required,title=N"`
		}](), `{"enum":[1,2],"title":"N","type":"integer"}`},
		{reflect.TypeFor[struct {
			F float64 `json:"f" jsonschema:"exclusiveMinimum=0,maximum=1e3,multipleOf=0.5,default=1.50,example=2"`
		}](), `{"default":1.50,"examples":[2],"exclusiveMinimum":0,"maximum":1000,"multipleOf":0.5,"type":"number"}`},
		{reflect.TypeFor[struct {
			F int8 `json:"f" jsonschema:"minimum=0,maximum=9"`
		}](), `{"maximum":9,"minimum":0,"type":"integer"}`},
		{reflect.TypeFor[struct {
			F string `json:"f" jsonschema:"minLength=1,maxLength=12,pattern=^[a-z]{1\\,12}$,format=hostname,description=a name\\, in short"`
		}](), `{"description":"a name, in short","format":"hostname","maxLength":12,"minLength":1,"pattern":"^[a-z]{1,12}$","type":"string"}`},
		{reflect.TypeFor[struct {
			F []string `json:"f" jsonschema:"enum=a,enum=b,minItems=1,maxItems=2,uniqueItems=true,default=a,default=b" jsonschema_description:"one, or more"`
		}](), `{"default":["a","b"],"description":"one, or more","items":{"enum":["a","b"],"type":"string"},"maxItems":2,"minItems":1,"type":"array","uniqueItems":true}`},
		{reflect.TypeFor[struct {
			F []int64 `json:"f" jsonschema:"minimum=1,enum=9007199254740993"`
		}](), `{"items":{"enum":[9007199254740993],"minimum":1,"type":"integer"},"type":"array"}`},
		{reflect.TypeFor[struct {
			F bool `json:"f" jsonschema:"default=true"`
		}](), `{"default":true,"type":"boolean"}`},
		{reflect.TypeFor[struct {
			F int64 `json:"f,string" jsonschema:"pattern=^[0-9]+$"`
		}](), `{"pattern":"^[0-9]+$","type":"string"}`},
		{reflect.TypeFor[struct {
			F any `json:"f" jsonschema:"required,title=T" jsonschema_description:"d"`
		}](), `{"description":"d","title":"T"}`},
		{reflect.TypeFor[struct {
			F string `json:"f" jsonschema:"how often, 3 by default"`
		}](), `{"description":"how often, 3 by default","type":"string"}`},
		{reflect.TypeFor[struct {
			F string `json:"f" jsonschema_description:"enum=a"`
		}](), `{"description":"enum=a","type":"string"}`},
		{reflect.TypeFor[struct {
			F []priority `json:"f"`
		}](), `{"items":{"enum":["low","high"],"type":"string"},"type":"array"}`},
		{reflect.TypeFor[struct {
			F map[string]*stage `json:"f"`
		}](), `{"additionalProperties":{"enum":["new","done"],"type":"string"},"type":"object"}`},
		{reflect.TypeFor[struct {
			F priority `json:"f" jsonschema:"enum=high"`
		}](), `{"enum":["high"],"type":"string"}`},
		{reflect.TypeFor[struct {
			F netip.Addr `json:"f"`
		}](), `{"type":"string"}`},
		{reflect.TypeFor[struct {
			F slog.Level `json:"f" jsonschema:"enum=WARN"`
		}](), `{"enum":["WARN"],"type":"string"}`},
		{reflect.TypeFor[struct {
			F coded `json:"f"`
		}](), `{}`},
		{reflect.TypeFor[struct {
			F defaulted `json:"f"`
		}](), `{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`},
		{reflect.TypeFor[struct {
			F time.Duration `json:"f,format:sec"`
		}](), `{}`},
		{reflect.TypeFor[struct {
			F [16]byte `json:"f"`
		}](), `{"contentEncoding":"base64","type":"string"}`},
	} {
		got, err := For(tc.t)
		if want := `{"additionalProperties":false,"properties":{"f":` + tc.want + `},"required":["f"],"type":"object"}`; err != nil || string(got) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", tc.t, got, err, want)
		}
	}
}

// The fields of an embedded struct are members of the outer object, unless it has a name.
func TestEmbeddedStructs(t *testing.T) {
	t.Parallel()
	type outer struct {
		*Tagged
		Named Tagged `json:"named"`
	}
	type named struct {
		Tagged `json:"tagged"`
		Sort   int `json:"sort"`
	}
	type hiding struct {
		Tagged
		Sort int `json:"sort"`
	}
	const sort = `"sort":{"default":"asc","enum":["asc","desc"],"type":"string"}`
	for want, typ := range map[string]reflect.Type{
		`{"additionalProperties":false,"properties":{"named":{"additionalProperties":false,"properties":{` + sort + `},"type":"object"},` + sort + `},"required":["named"],"type":"object"}`:                       reflect.TypeFor[outer](),
		`{"additionalProperties":false,"properties":{"sort":{"type":"integer"},"tagged":{"additionalProperties":false,"properties":{` + sort + `},"type":"object"}},"required":["tagged","sort"],"type":"object"}`: reflect.TypeFor[named](),
		`{"additionalProperties":false,"properties":{"sort":{"type":"integer"}},"required":["sort"],"type":"object"}`:                                                                                              reflect.TypeFor[hiding](),
	} {
		if got, err := For(typ); err != nil || string(got) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", typ, got, err, want)
		}
	}
}

// A tag that contradicts the type of its field or itself is an error that names the type, the field and the word.
func TestTagsThatContradict(t *testing.T) {
	t.Parallel()
	type T struct {
		Sub []struct {
			Field string `json:"f" jsonschema:"minimum=1"`
		} `json:"sub"`
	}
	for _, tc := range []struct {
		t    reflect.Type
		want string
	}{
		{reflect.TypeFor[T](), `field Sub of schema.T: field Field of struct`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"minimum=1"`
		}](), `minimum=1, which restricts a number, and the JSON form of the field is of type string`},
		{reflect.TypeFor[struct {
			F int `jsonschema:"enum=a"`
		}](), `enum=a, and "a" is not an integer`},
		{reflect.TypeFor[struct {
			F int `jsonschema:"default=1.5"`
		}](), `"1.5" is not an integer`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"enmu=a"`
		}](), `enmu=a, and there is no word enmu: did you mean enum?`},
		{reflect.TypeFor[struct {
			F int `json:"f" jsonschema:"minimun: 1"`
		}](), `write minimum=VALUE`},
		{reflect.TypeFor[struct {
			F string `json:"f" jsonschema:"Enum: a, b"`
		}](), `write enum=VALUE`},
		{reflect.TypeFor[struct {
			F int `json:"f" jsonschema:"a number,minimun=1"`
		}](), `the tag has "a number", which is not WORD=VALUE`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"oneof_required=a"`
		}](), `no word oneof_required: the words are default, `},
		{reflect.TypeFor[struct {
			F string `jsonschema:"pattern=["`
		}](), `the tag makes a schema that is not valid`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"description=the city, in English"`
		}](), `" in English", which is not WORD=VALUE: write a comma within a value as \\,`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"the order,enum=a"`
		}](), `"the order", which is not WORD=VALUE`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"required,the order"`
		}](), `"the order", which is not WORD=VALUE`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"required,pattern"`
		}](), `pattern without a value: write pattern=VALUE`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"minLength=-1"`
		}](), `"-1" is not an integer of 0 or more`},
		{reflect.TypeFor[struct {
			F int `jsonschema:"minimum=low"`
		}](), `"low" is not a number`},
		{reflect.TypeFor[struct {
			F int `jsonschema:"minimum=2,maximum=1"`
		}](), `minimum 2 is above maximum 1`},
		{reflect.TypeFor[struct {
			F int8 `jsonschema:"maximum=300"`
		}](), `maximum=300, and the bound of the Go type is 127`},
		{reflect.TypeFor[struct {
			F [2]int `jsonschema:"minItems=1"`
		}](), `minItems=1, and the bound of the Go type is 2`},
		{reflect.TypeFor[struct {
			F int `jsonschema:"multipleOf=0"`
		}](), `not valid`},
		{reflect.TypeFor[struct {
			F int `jsonschema:"minimum=1,minimum=2"`
		}](), `minimum twice`},
		{reflect.TypeFor[struct {
			F int `jsonschema:"default=1,default=2"`
		}](), `there is another default`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"enum=a,enum=a"`
		}](), `occurs twice`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"enum=a,default=b"`
		}](), `the value "b", and its other words do not allow it`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"enum=abc,maxLength=2"`
		}](), `the value "abc"`},
		{reflect.TypeFor[struct {
			F []string `jsonschema:"uniqueItems=yes"`
		}](), `"yes" is neither true nor false`},
		{reflect.TypeFor[struct {
			F any `jsonschema:"enum=a"`
		}](), `not known from its type`},
		{reflect.TypeFor[struct {
			F map[string]string `jsonschema:"enum=a"`
		}](), `a tag cannot hold a value of the field, whose JSON form is of type object`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"-"`
		}](), `write json:"-"`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"a" jsonschema_description:"b"`
		}](), `two descriptions`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"description=a" jsonschema_description:"b"`
		}](), `two descriptions`},
		{reflect.TypeFor[struct {
			F string `jsonschema:"title="`
		}](), `it has no value`},
		{reflect.TypeFor[struct {
			F priority `jsonschema:"enum=medium"`
		}](), `enum=medium, which the method Enum of its type does not return`},
		{reflect.TypeFor[struct{ F badEnum }](), `schema.badEnum has the method Enum, and its JSON form is of type integer, not a string: add the methods MarshalText and UnmarshalText`},
		{reflect.TypeFor[struct{ F emptyEnum }](), `returns no value`},
		{reflect.TypeFor[struct{ F time.Duration }](), `field F of struct`},
		{reflect.TypeFor[node3](), `schema.node3 contains itself`},
		{reflect.TypeFor[struct{ F chan int }](), `chan int has no JSON form`},
	} {
		if got, err := For(tc.t); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s\n got %v\nwant %s", tc.t, got, err, tc.want)
		}
	}
}
