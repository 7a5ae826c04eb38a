package schema

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type inner struct {
	Zeta  float64 `json:"zeta"`
	Alpha *int    `json:"alpha,omitempty"`
}

type embedded struct {
	Base string `json:"base"`
}

type node3 struct {
	Next *node3 `json:"next"`
}

func TestFor(t *testing.T) {
	t.Parallel()
	type in struct {
		embedded
		Name    string            `json:"name" jsonschema:"the <name> & more"`
		Tags    []string          `json:"tags,omitempty"`
		Inner   *inner            `json:"inner,omitzero"`
		Many    []inner           `json:"many"`
		Map     map[string][]bool `json:"map,omitempty"`
		Pair    [2]int            `json:"pair"`
		When    *time.Time        `json:"when,omitempty"`
		Any     any               `json:"any,omitempty"`
		Raw     json.RawMessage   `json:"raw,omitempty"`
		Number  json.Number       `json:"number,omitempty"`
		Bytes   []byte            `json:"bytes,omitempty"`
		Small   int8              `json:"small,omitempty"`
		Skipped string            `json:"-"`
		hidden  string
	}
	_ = in{}.hidden
	for _, tc := range []struct {
		t    reflect.Type
		want string
	}{
		{reflect.TypeFor[struct{}](), `{"additionalProperties":false,"type":"object"}`},
		{reflect.TypeFor[*struct{}](), `{"additionalProperties":false,"type":"object"}`},
		{reflect.TypeFor[string](), `{"type":"string"}`},
		{reflect.TypeFor[[]*string](), `{"items":{"type":"string"},"type":"array"}`},
		{reflect.TypeFor[map[string]any](), `{"additionalProperties":true,"type":"object"}`},
		{reflect.TypeFor[in](), `{"additionalProperties":false,"properties":{` +
			`"any":{},"base":{"type":"string"},"bytes":{"contentEncoding":"base64","type":"string"},` +
			`"inner":{"additionalProperties":false,"properties":{"alpha":{"type":"integer"},"zeta":{"type":"number"}},"required":["zeta"],"type":"object"},` +
			`"many":{"items":{"additionalProperties":false,"properties":{"alpha":{"type":"integer"},"zeta":{"type":"number"}},"required":["zeta"],"type":"object"},"type":"array"},` +
			`"map":{"additionalProperties":{"items":{"type":"boolean"},"type":"array"},"type":"object"},` +
			`"name":{"description":"the <name> & more","type":"string"},` +
			`"number":{"type":"number"},` +
			`"pair":{"items":{"type":"integer"},"maxItems":2,"minItems":2,"type":"array"},` +
			`"raw":{},"small":{"maximum":127,"minimum":-128,"type":"integer"},` +
			`"tags":{"items":{"type":"string"},"type":"array"},` +
			`"when":{"type":"string"}},` +
			`"required":["base","name","many","pair"],"type":"object"}`},
	} {
		got, err := For(tc.t)
		if err != nil {
			t.Errorf("%s: %v", tc.t, err)
			continue
		}
		if string(got) != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.t, got, tc.want)
		}
		for range 10 {
			if again, _ := For(tc.t); string(again) != string(got) {
				t.Errorf("%s: the bytes change", tc.t)
			}
		}
		if _, err := Compile(got); err != nil {
			t.Errorf("%s: %v", tc.t, err)
		}
	}
}

func TestForRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []reflect.Type{
		nil, reflect.TypeFor[chan int](), reflect.TypeFor[func()](), reflect.TypeFor[complex128](), reflect.TypeFor[map[bool]int](),
		reflect.TypeFor[node3](), reflect.TypeFor[struct{ C chan int }](),
	} {
		if got, err := For(bad); err == nil {
			t.Errorf("%v: got %s, want an error", bad, got)
		}
	}
}
